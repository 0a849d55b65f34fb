/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow half of malloc, and its zeroed and aligned forms.
 */
#include "alloc.h"

#include <errno.h>
#include <string.h>

#include "init.h"
#include "thread.h"

/* How often a request below the limit is tried while other threads take what was given up for it.
 */
#define LIMIT_TRIES 64
/* How often the heaps are looked at for empty slabs, while other threads empty some. */
#define LIMIT_ROUNDS 8

WR_COLD void *wr_alloc_refuse(struct wr_arena *arena, size_t why) {
  wr_counter_add(&arena->out_of_memory, 1);
  if (why == WR_ALLOC_LIMITED)
    wr_counter_add(&arena->over_limit, 1);
  errno = ENOMEM;
  return NULL;
}

static void *take_small(struct wr_arena *arena, unsigned class, size_t *stale) {
  struct wr_heap *heap = wr_thread_enter(arena);
  void *block;
  if (heap == NULL)
    return NULL;
  /* What led here may have been a heap that was not there yet; its slabs may be. */
  block = wr_heap_refill(heap, class, stale);
  wr_thread_leave(heap);
  return block;
}

static void *take_payload(struct wr_arena *arena, size_t size, size_t alignment, size_t *stale) {
  struct wr_span *span = wr_span_take(&arena->spans, size, alignment, stale);
  return span != NULL ? span->user : NULL;
}

/* Whether slabs serve the request. They begin at multiples of the arena's unit, of 1 << `shift`
 * bytes. */
WR_INLINE bool is_small(unsigned shift, size_t size, size_t alignment) {
  return size <= WR_BLOCK_MAX && alignment <= (size_t)1 << shift;
}

/* The size class of a request that slabs serve. */
WR_INLINE unsigned class_of(unsigned shift, size_t size, size_t alignment) {
  return alignment <= WR_BLOCK_MIN ? wr_sizeclass_of(size)
                                   : wr_sizeclass_aligned(size, alignment, shift);
}

/* A block of any kind. *stale: how many of its first bytes may be other than 0. */
static void *take_any(struct wr_arena *arena, size_t size, size_t alignment, size_t *stale) {
  unsigned shift = arena->spans.shift;
  if (!is_small(shift, size, alignment))
    return take_payload(arena, wr_bits_max(size, 1), alignment, stale);
  return take_small(arena, class_of(shift, size, alignment), stale);
}

/* What a request takes of the limit: a block as large as its class has them, in whole pages; one
 * more where blocks do not begin with a page. */
static size_t needed(const struct wr_arena *arena, size_t size, size_t alignment) {
  unsigned shift = arena->spans.shift, class;
  size_t page = arena->source.page;
  if (!is_small(shift, size, alignment))
    return wr_bits_up(wr_bits_max(size, 1), page);
  class = class_of(shift, size, alignment);
  return wr_bits_up(wr_sizeclass_block(class), page) +
         (wr_sizeclass_spacing(class, shift) > 0 ? page : 0);
}

/* What it may take besides, for weir's own structures: the thread's heap, and descriptors. */
static size_t needed_besides(struct wr_arena *arena) {
  return (wr_heap_is_alive(wr_heap_own(arena)) ? 0 : sizeof(struct wr_heap)) +
         (wr_counter_read(&arena->spans.spares) < WR_EXTENT_SPARES ? sizeof(struct wr_span_batch)
                                                                   : 0);
}

/* Whether the limit is what a request failed for. */
static bool is_limited(struct wr_arena *arena, size_t size, size_t alignment) {
  struct wr_spans *spans = &arena->spans;
  size_t bytes = needed(arena, size, alignment) + needed_besides(arena);
  bool allowed;
  wr_lock_take(&spans->lock);
  allowed = wr_extent_allows(spans, bytes);
  wr_lock_give(&spans->lock);
  return !allowed;
}

/* Gives up as much of what is free as makes `bytes` fit below the limit, and nothing if all of it
 * would not do. Whether it did. */
static bool make_room(struct wr_arena *arena, size_t bytes) {
  int rounds = wr_counter_read(&arena->heap_count) > 1 ? LIMIT_ROUNDS : 1;
  bool room = wr_settle_make_room(&arena->spans, bytes);
  for (int round = 0; !room && round < rounds; round++) {
    /* The heaps may have empty slabs. A heap that had none may have some by the time the others
     * have been looked at, and its thread what those gave. */
    (void)wr_heap_trim_all(arena, SIZE_MAX);
    room = wr_settle_make_room(&arena->spans, bytes);
  }
  return room;
}

/* As take_any for an arena with a limit, when that has failed: with what is free given up for it.
 * *limited: that was the reason. */
static void *take_below_limit(struct wr_arena *arena, size_t size, size_t alignment, size_t *stale,
                              bool *limited) {
  size_t bytes = needed(arena, size, alignment);
  void *block = NULL;
  bool room = true;
  /* Other threads may be faster. */
  for (int tries = 0; block == NULL && room && tries < LIMIT_TRIES; tries++) {
    room = make_room(arena, bytes);
    if (room)
      block = take_any(arena, size, alignment, stale);
    if (tries == 0 && block == NULL)
      bytes += needed_besides(arena);
  }
  *limited = !room;
  return block;
}

/* As take_any, and gives back what is retained and tries again when memory is out. */
static void *take_again(struct wr_arena *arena, size_t size, size_t alignment, size_t *stale) {
  int saved = errno;
  bool limited = false;
  void *block = NULL;
  /* What can never be served must not cost the memory that is retained. */
  if (WR_LIKELY(size <= WR_SPAN_MAX && alignment <= WR_SPAN_MAX - size)) {
    wr_init();
    block = take_any(arena, size, alignment, stale);
    if (WR_UNLIKELY(block == NULL) && arena->spans.limit != SIZE_MAX)
      block = take_below_limit(arena, size, alignment, stale, &limited);
    if (WR_UNLIKELY(block == NULL) && !limited) {
      /* Free memory may be in the wrong classes, or in other threads' heaps. */
      (void)wr_heap_trim_all(arena, 0);
      block = take_any(arena, size, alignment, stale);
      limited = block == NULL && is_limited(arena, size, alignment);
    }
  }
  if (WR_UNLIKELY(block == NULL))
    *stale = limited ? WR_ALLOC_LIMITED : 0;
  errno = saved;
  return block;
}

static void *take(struct wr_arena *arena, size_t size, size_t alignment, size_t *stale) {
  void *block = take_again(arena, size, alignment, stale);
  return WR_LIKELY(block != NULL) ? block : wr_alloc_refuse(arena, *stale);
}

void *wr_alloc_try(struct wr_arena *arena, size_t size, size_t *stale) {
  void *block = wr_alloc_quick(wr_heap_own(arena), size);
  /* Memory that was not carved just now was used before. */
  *stale = SIZE_MAX;
  return block != NULL ? block : take_again(arena, size, 1, stale);
}

/* What is there needs no more than this; anything else goes the long way. */
WR_INLINE void *take_simply(struct wr_arena *arena, size_t size) {
  size_t stale;
  if (size <= WR_BLOCK_MAX) {
    struct wr_heap *heap = wr_heap_own(arena);
    void *block =
        wr_heap_is_alive(heap) ? wr_heap_refill(heap, wr_sizeclass_of(size), &stale) : NULL;
    if (WR_LIKELY(block != NULL))
      return block;
  } else if (size <= WR_SPAN_MAX && wr_init_is_ready()) {
    struct wr_span *span = wr_span_take(&arena->spans, size, 1, &stale);
    if (WR_LIKELY(span != NULL))
      return span->user;
  }
  return take(arena, size, 1, &stale);
}

WR_HOT WR_NOINLINE void *wr_alloc_slow(size_t size) {
  return take_simply(&wr_arena_default, size);
}

WR_NOINLINE void *wr_alloc_slow_in(struct wr_arena *arena, size_t size) {
  return take_simply(arena, size);
}

void *wr_alloc_zeroed(struct wr_arena *arena, size_t size) {
  size_t stale;
  void *block = wr_alloc_try(arena, size, &stale);
  if (WR_UNLIKELY(block == NULL))
    return wr_alloc_refuse(arena, stale);
  /* In a buffer, memory that weir has not used was not zero to begin with. */
  if (WR_UNLIKELY(arena->buffer != NULL))
    stale = size;
  return memset(block, 0, wr_bits_min(stale, size));
}

/* `shift` is that of the arena. */
WR_INLINE void *take_aligned(struct wr_arena *arena, unsigned shift, size_t alignment,
                             size_t size) {
  struct wr_heap *heap = wr_heap_own(arena);
  void *block = NULL;
  size_t stale;
  if (alignment <= WR_BLOCK_MIN)
    block = wr_alloc_quick(heap, size);
  else if (is_small(shift, size, alignment))
    block = wr_heap_take(heap, wr_sizeclass_aligned(size, alignment, shift));
  return WR_LIKELY(block != NULL) ? block : take(arena, size, alignment, &stale);
}

void *wr_alloc_aligned(size_t alignment, size_t size) {
  return take_aligned(&wr_arena_default, WR_UNIT_SHIFT, alignment, size);
}

void *wr_alloc_aligned_in(struct wr_arena *arena, size_t alignment, size_t size) {
  return take_aligned(arena, arena->spans.shift, alignment, size);
}
