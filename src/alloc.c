/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow half of malloc, and its zeroed and aligned forms.
 */
#include "alloc.h"

#include <errno.h>
#include <string.h>

#include "init.h"
#include "thread.h"

WR_COLD void *wr_alloc_refuse(void) {
  wr_counter_add(&wr_arena_default.out_of_memory, 1);
  errno = ENOMEM;
  return NULL;
}

static void *take_small(unsigned class, size_t *stale) {
  struct wr_heap *heap = wr_thread_enter(&wr_arena_default);
  void *block;
  if (heap == NULL)
    return NULL;
  /* What led here may have been a heap that was not there yet; its slabs may be. */
  block = wr_heap_refill(heap, class, stale);
  wr_thread_leave(heap);
  return block;
}

static void *take_payload(size_t size, size_t alignment, size_t *stale) {
  struct wr_span *span = wr_span_take(&wr_arena_default.spans, size, alignment, stale);
  return span != NULL ? span->user : NULL;
}

/* A block of any kind. *stale: how many of its first bytes may be other than 0. */
static void *take_any(size_t size, size_t alignment, size_t *stale) {
  if (size > WR_BLOCK_MAX || alignment > WR_BLOCK_MAX)
    return take_payload(wr_bits_max(size, 1), alignment, stale);
  return take_small(alignment <= WR_BLOCK_MIN ? wr_sizeclass_of(size)
                                              : wr_sizeclass_aligned(size, alignment),
                    stale);
}

/* As take_any, and gives back what is retained and tries again when memory is out. */
static void *take_again(size_t size, size_t alignment, size_t *stale) {
  int saved = errno;
  void *block;
  /* What can never be served must not cost the memory that is retained. */
  if (WR_UNLIKELY(size > WR_SPAN_MAX || alignment > WR_SPAN_MAX - size))
    return NULL;
  wr_init();
  block = take_any(size, alignment, stale);
  if (WR_UNLIKELY(block == NULL)) {
    /* Free memory may be in the wrong classes, or in other threads' heaps. */
    (void)wr_heap_trim_all(&wr_arena_default, 0);
    block = take_any(size, alignment, stale);
  }
  errno = saved;
  return block;
}

static void *take(size_t size, size_t alignment, size_t *stale) {
  void *block = take_again(size, alignment, stale);
  return WR_LIKELY(block != NULL) ? block : wr_alloc_refuse();
}

void *wr_alloc_try(size_t size, size_t *stale) {
  *stale = size;
  if (size <= WR_BLOCK_MAX) {
    void *block = wr_heap_take(wr_heap_self, wr_sizeclass_of(size));
    if (WR_LIKELY(block != NULL))
      return block;
  }
  return take_again(size, 1, stale);
}

WR_HOT WR_NOINLINE void *wr_alloc_slow(size_t size) {
  size_t stale;
  /* What is there needs no more than this; anything else goes the long way. */
  if (size <= WR_BLOCK_MAX) {
    struct wr_heap *heap = wr_heap_self;
    void *block =
        wr_heap_is_alive(heap) ? wr_heap_refill(heap, wr_sizeclass_of(size), &stale) : NULL;
    if (WR_LIKELY(block != NULL))
      return block;
  } else if (size <= WR_SPAN_MAX && wr_init_is_ready()) {
    struct wr_span *span = wr_span_take(&wr_arena_default.spans, size, 1, &stale);
    if (WR_LIKELY(span != NULL))
      return span->user;
  }
  return take(size, 1, &stale);
}

void *wr_alloc_zeroed(size_t size) {
  size_t stale;
  void *block = wr_alloc_try(size, &stale);
  if (WR_UNLIKELY(block == NULL))
    return wr_alloc_refuse();
  return memset(block, 0, wr_bits_min(stale, size));
}

void *wr_alloc_aligned(size_t alignment, size_t size) {
  size_t stale;
  if (alignment <= WR_BLOCK_MIN)
    return wr_alloc_take(size);
  if (size <= WR_BLOCK_MAX && alignment <= WR_BLOCK_MAX) {
    void *block = wr_heap_take(wr_heap_self, wr_sizeclass_aligned(size, alignment));
    if (WR_LIKELY(block != NULL))
      return block;
  }
  return take(size, alignment, &stale);
}
