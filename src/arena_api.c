/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public functions of arenas: argument rules and errno, then one call down. Contracts:
 * weir/arena.h.
 */
#include <errno.h>
#include <weir/arena.h>

#include "alloc.h"
#include "free.h"
#include "init.h"
#include "lifetime.h"
#include "pool.h"
#include "realloc.h"
#include "report.h"

/* A static program that has no pools of buffers has not their code either. */
#pragma weak wr_pool_forget

static void forget_pools(const weir_arena_t *arena) {
  if (wr_pool_forget != NULL)
    wr_pool_forget(arena);
}

static struct wr_arena *or_default(weir_arena_t *arena) {
  if (arena != NULL)
    return arena;
  wr_init();
  return &wr_arena_default;
}

static bool is_known(const weir_arena_options_t *options) {
  return options->size == sizeof *options;
}

/* In a buffer, or over the kernel if `size` is 0. */
static weir_arena_t *make(void *buffer, size_t size, const weir_arena_options_t *options) {
  const weir_arena_options_t plain = WEIR_ARENA_OPTIONS_INIT;
  struct wr_arena *arena = NULL;
  int saved = errno;
  int error = EINVAL;
  if (options == NULL)
    options = &plain;
  if (is_known(options))
    error = size == 0 ? wr_lifetime_make(options, &arena)
                      : wr_lifetime_make_in(buffer, size, options, &arena);
  errno = error != 0 ? error : saved;
  return error == 0 ? arena : NULL;
}

WR_EXPORT weir_arena_t *weir_arena_create(const weir_arena_options_t *options) {
  return make(NULL, 0, options);
}

WR_EXPORT weir_arena_t *weir_arena_create_in(void *buffer, size_t size,
                                             const weir_arena_options_t *options) {
  if (buffer != NULL && size > 0)
    return make(buffer, size, options);
  errno = EINVAL;
  return NULL;
}

WR_EXPORT size_t weir_arena_buffer_min(void) {
  return wr_lifetime_buffer_min();
}

WR_EXPORT void weir_arena_destroy(weir_arena_t *arena) {
  int saved = errno;
  if (arena != NULL) {
    forget_pools(arena);
    wr_lifetime_end(arena);
  }
  errno = saved;
}

WR_EXPORT void weir_arena_reset(weir_arena_t *arena) {
  if (arena != NULL) {
    forget_pools(arena);
    wr_lifetime_reset(arena);
  }
}

WR_EXPORT const char *weir_arena_name(const weir_arena_t *arena) {
  return arena != NULL ? arena->name : "";
}

WR_EXPORT weir_arena_t *weir_arena_of(const void *block) {
  size_t usable;
  struct wr_arena *arena = wr_arena_of(wr_free_find(block, &usable));
  return arena != &wr_arena_default ? arena : NULL;
}

WR_EXPORT WR_HOT void *weir_arena_alloc(weir_arena_t *arena, size_t size) {
  return arena != NULL ? wr_alloc_take_in(arena, size) : wr_alloc_take(size);
}

WR_EXPORT void *weir_arena_zalloc(weir_arena_t *arena, size_t count, size_t size) {
  size_t bytes;
  arena = or_default(arena);
  if (WR_UNLIKELY(!wr_bits_product(count, size, &bytes)))
    return wr_alloc_refuse(arena, 0);
  return wr_alloc_zeroed(arena, bytes);
}

WR_EXPORT void *weir_arena_aligned_alloc(weir_arena_t *arena, size_t alignment, size_t size) {
  if (WR_UNLIKELY(!wr_bits_is_pow2(alignment))) {
    errno = EINVAL;
    return NULL;
  }
  return arena != NULL ? wr_alloc_aligned_in(arena, alignment, size)
                       : wr_alloc_aligned(alignment, size);
}

WR_EXPORT void *weir_arena_realloc(weir_arena_t *arena, void *block, size_t size) {
  if (block == NULL)
    return weir_arena_alloc(arena, size);
  if (size > 0)
    return wr_realloc_resize(block, size);
  weir_arena_free(arena, block);
  return NULL;
}

WR_EXPORT WR_HOT void weir_arena_free(weir_arena_t *arena, void *block) {
  if (arena != NULL)
    wr_free_give_in(arena, block);
  else
    wr_free_give(block);
}

WR_EXPORT size_t weir_arena_usable_size(const weir_arena_t *arena, const void *block) {
  size_t usable = 0;
  (void)arena;
  if (block != NULL)
    (void)wr_free_find(block, &usable);
  return usable;
}

WR_EXPORT size_t weir_arena_retain(const weir_arena_t *arena) {
  if (arena == NULL)
    return weir_retain();
  return wr_counter_read(&arena->spans.retain.mark);
}

WR_EXPORT void weir_arena_set_retain(weir_arena_t *arena, size_t bytes) {
  wr_heap_set_mark(or_default(arena), bytes);
}

WR_EXPORT size_t weir_arena_trim(weir_arena_t *arena, size_t keep) {
  return wr_heap_trim_all(or_default(arena), keep);
}

WR_EXPORT void weir_arena_stats(weir_arena_t *arena, weir_stats_t *stats, size_t size) {
  wr_snapshot_stats(or_default(arena), stats, size);
}

WR_EXPORT int weir_arena_report(weir_arena_t *arena, int fd, weir_format_t format) {
  return wr_report_arena(or_default(arena), fd, format == WEIR_JSON);
}
