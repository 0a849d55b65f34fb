/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir's own memory: see meta.h.
 */
#include "meta.h"

#include "bits.h"

/* A chunk is small, because every page of it is resident in a process that locks its memory. */
#define CHUNK ((size_t)64 << 10)

static bool grow(struct wr_meta *meta, size_t size, size_t alignment) {
  size_t wanted = size + wr_bits_max(alignment, sizeof(struct wr_meta_chunk));
  size_t length = wr_bits_up(wr_bits_max(wanted, CHUNK), wr_bits_max(meta->source->page, 4096));
  void *address;
  /* Next to the last chunk, so that the kernel sees one mapping. */
  if (wr_source_map(meta->source, meta->end, length, meta->source->page, &address) != 0)
    return false;
  if (address != meta->end) {
    struct wr_meta_chunk *chunk = address;
    chunk->older = meta->chunks;
    chunk->length = 0;
    meta->chunks = chunk;
    meta->next = (char *)(chunk + 1);
  }
  meta->chunks->length += length;
  meta->end = (char *)address + length;
  return true;
}

static char *aligned(const struct wr_meta *meta, size_t alignment) {
  return meta->next + (-(uintptr_t)meta->next & (alignment - 1));
}

void *wr_meta_take(struct wr_meta *meta, size_t size, size_t alignment) {
  char *taken = NULL;
  wr_lock_take(&meta->lock);
  if (meta->next == NULL || aligned(meta, alignment) + size > meta->end) {
    if (!grow(meta, size, alignment))
      goto out;
  }
  taken = aligned(meta, alignment);
  meta->next = taken + size;
  wr_counter_add(&meta->used, size);
out:
  wr_lock_give(&meta->lock);
  return taken;
}

bool wr_meta_reserve(struct wr_meta *meta, size_t size) {
  bool reserved;
  wr_lock_take(&meta->lock);
  reserved = (size_t)(meta->end - meta->next) >= size || grow(meta, size, 1);
  wr_lock_give(&meta->lock);
  return reserved;
}

void wr_meta_prefault(struct wr_meta *meta) {
  wr_lock_take(&meta->lock);
  for (volatile char *at = meta->next; at < meta->end; at += meta->source->page)
    *at = 0;
  wr_lock_give(&meta->lock);
}

void wr_meta_unmap(struct wr_meta *meta) {
  struct wr_meta_chunk *chunk = meta->chunks;
  while (chunk != NULL) {
    struct wr_meta_chunk *older = chunk->older;
    (void)wr_source_unmap(meta->source, chunk, chunk->length);
    chunk = older;
  }
  meta->chunks = NULL;
}
