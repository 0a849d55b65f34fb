/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page sources: see source.h. The only caller of the system layer's memory functions.
 */
#include "source.h"

#include <errno.h>
#include <stdint.h>

#include "bits.h"
#include "os.h"

#define MOVES_MAX 1000

static int os_map(struct wr_source *source, void *hint, size_t length, void **address) {
  (void)source;
  return wr_os_map(hint, length, address);
}

static int os_unmap(struct wr_source *source, void *address, size_t length) {
  (void)source;
  return wr_os_unmap(address, length);
}

static int os_purge(struct wr_source *source, void *address, size_t length) {
  (void)source;
  return wr_os_purge(address, length);
}

static int os_move(struct wr_source *source, void *from, void *to, size_t length) {
  (void)source;
  return wr_os_move(from, to, length);
}

static int os_resident(struct wr_source *source, void *address, size_t length, size_t *end) {
  (void)source;
  return wr_os_resident(address, length, end);
}

static int os_huge(struct wr_source *source, void *address, size_t length, bool huge) {
  (void)source;
  return wr_os_huge(address, length, huge);
}

static int os_lock(struct wr_source *source, void *address, size_t length) {
  (void)source;
  return wr_os_lock_memory(address, length);
}

void wr_source_init_os(struct wr_source *source, enum wr_thp thp) {
  static const struct wr_source_ops ops = {os_map,      os_unmap, os_purge, os_move,
                                           os_resident, os_huge,  os_lock};
  source->ops = &ops;
  source->page = wr_os_page_size();
  source->thp = thp;
}

static int buffer_map(struct wr_source *source, void *hint, size_t length, void **address) {
  (void)hint;
  if (length > source->left)
    return ENOMEM;
  *address = source->buffer;
  source->buffer += length;
  source->left -= length;
  return 0;
}

static int buffer_unmap(struct wr_source *source, void *address, size_t length) {
  (void)source, (void)address, (void)length;
  return ENOSYS;
}

static int buffer_purge(struct wr_source *source, void *address, size_t length) {
  (void)source, (void)address, (void)length;
  return 0;
}

static int buffer_move(struct wr_source *source, void *from, void *to, size_t length) {
  (void)source, (void)from, (void)to, (void)length;
  return ENOSYS;
}

static int buffer_resident(struct wr_source *source, void *address, size_t length, size_t *end) {
  (void)source, (void)address;
  *end = length;
  return 0;
}

static int buffer_huge(struct wr_source *source, void *address, size_t length, bool huge) {
  (void)source, (void)address, (void)length, (void)huge;
  return ENOSYS;
}

static int buffer_lock(struct wr_source *source, void *address, size_t length) {
  (void)source, (void)address, (void)length;
  return 0;
}

void wr_source_init_buffer(struct wr_source *source, char *buffer, size_t length, size_t page) {
  static const struct wr_source_ops ops = {buffer_map,      buffer_unmap, buffer_purge, buffer_move,
                                           buffer_resident, buffer_huge,  buffer_lock};
  source->ops = &ops;
  source->page = page;
  source->buffer = buffer;
  source->left = length;
}

int wr_source_unmap(struct wr_source *source, void *address, size_t length) {
  int error = 0;
  if (length > 0) {
    wr_counter_add(&source->unmaps, 1);
    error = source->ops->unmap(source, address, length);
    if (error == 0)
      wr_counter_sub(&source->mapped, length);
  }
  return error;
}

static int map(struct wr_source *source, void *hint, size_t length, void **address) {
  int error;
  wr_counter_add(&source->maps, 1);
  error = source->ops->map(source, hint, length, address);
  if (error == 0)
    wr_counter_add(&source->mapped, length);
  return error;
}

/* Locks what was mapped, if the source is such; else it is unmapped again. */
static int lock(struct wr_source *source, void *address, size_t length) {
  int error = source->lock ? source->ops->lock(source, address, length) : 0;
  if (error != 0) {
    source->unlockable = true;
    (void)wr_source_unmap(source, address, length);
  }
  return error;
}

/* Maps enough that an aligned part of `length` bytes lies inside, and unmaps the rest. */
static int map_wider(struct wr_source *source, size_t length, size_t alignment, void **address) {
  size_t wider = length + alignment - source->page;
  void *got;
  char *first, *start;
  int error = map(source, NULL, wider, &got);
  if (error != 0)
    return error;
  first = got;
  start = first + (-(uintptr_t)first & (alignment - 1));
  (void)wr_source_unmap(source, first, (size_t)(start - first));
  (void)wr_source_unmap(source, start + length, (size_t)(first + wider - (start + length)));
  *address = start;
  return 0;
}

int wr_source_map(struct wr_source *source, void *hint, size_t length, size_t alignment,
                  void **address) {
  int error;
  if (length > SIZE_MAX - alignment)
    return ENOMEM;
  error = map(source, hint, length, address);
  if (error == 0 && ((uintptr_t)*address & (alignment - 1)) != 0) {
    (void)wr_source_unmap(source, *address, length);
    error = map_wider(source, length, alignment, address);
  }
  if (error == 0 && source->thp != WR_THP_DEFAULT) {
    wr_counter_add(&source->advices, 1);
    /* A kernel without huge pages refuses; the memory is as good without. */
    (void)source->ops->huge(source, *address, length, source->thp == WR_THP_ALWAYS);
  }
  return error == 0 ? lock(source, *address, length) : error;
}

int wr_source_purge(struct wr_source *source, void *address, size_t length) {
  wr_counter_add(&source->purges, 1);
  return source->ops->purge(source, address, length);
}

bool wr_source_may_move(const struct wr_source *source) {
  return wr_counter_read(&source->moves) < MOVES_MAX &&
         !atomic_load_explicit(&source->immovable, memory_order_relaxed);
}

int wr_source_move(struct wr_source *source, void *from, void *to, size_t length) {
  int error;
  wr_counter_add(&source->moves, 1);
  error = source->ops->move(source, from, to, length);
  if (error == ENOSYS)
    atomic_store_explicit(&source->immovable, true, memory_order_relaxed);
  return error;
}

int wr_source_resident(struct wr_source *source, void *address, size_t length, size_t *end) {
  wr_counter_add(&source->probes, 1);
  return source->ops->resident(source, address, length, end);
}
