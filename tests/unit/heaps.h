/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of heaps share: an arena over the fake with one heap, whose thread the test plays;
 * and, by turns, every other thread.
 */
#ifndef HEAPS_H
#define HEAPS_H

#include "alloc.h"
#include "fake.h"
#include "free.h"
#include "unit.h"

static struct wr_arena *arena;
static struct wr_heap *heap;
static size_t stale; /* of the block that the slow path gave last */

static inline void begin(size_t mark) {
  arena = fake_arena(4096, mark);
  heap = wr_heap_make(arena);
  ck_assert_ptr_nonnull(heap);
  wr_heap_attend(heap, true);
  wr_heap_self = heap;
}

static inline void check(void) {
  wr_heap_check(heap);
  wr_span_check(&arena->spans);
}

static inline void *take(unsigned class) {
  void *block = wr_heap_take(heap, class);
  if (block == NULL)
    block = wr_heap_refill(heap, class, &stale);
  ck_assert_ptr_nonnull(block);
  return block;
}

/* As another thread does it. */
static inline void give_remote(void *block) {
  wr_heap_self = &wr_heap_unborn;
  wr_free_give(block);
  wr_heap_self = heap;
}

static inline struct wr_span *slab_of(const void *block) {
  return wr_pagemap_find(block);
}

static inline void count_slab(void *context, const struct wr_span *span) {
  (void)span;
  ++*(size_t *)context;
}

/* How many spans are in use. */
static inline size_t slabs(void) {
  size_t count = 0;
  wr_spans_each(&arena->spans, count_slab, &count);
  return count;
}

#endif
