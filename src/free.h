/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving a block back: whose it is decides where it goes, and this is the only place that decides.
 */
#ifndef WR_FREE_H
#define WR_FREE_H

#include "heap.h"

/* What is not a good block of a listed slab of the thread's own heap: everything else, NULL and
 * misuse included. `span` is what the block's address leads to, or NULL. */
void wr_free_slow(void *block, struct wr_span *span);
/* The same for a block that is most likely of this arena. */
void wr_free_slow_in(struct wr_arena *arena, void *block, struct wr_span *span);

/* A block of the thread's own heap that did not pass the cheap checks. */
void wr_free_suspect(void *block, struct wr_span *slab);

/* Finds the span of a live block and how many bytes of it may be used; stops the program when
 * `block` is none. No lock, but for that of the list of arenas in buffers. */
struct wr_span *wr_free_find(const void *block, size_t *usable);

/* Gives a block back if `span` is a slab of the thread's `heap` with a free block or room for one;
 * false when it is anything else. */
WR_INLINE bool wr_free_quick(struct wr_heap *heap, struct wr_span *span, void *block) {
  /* Acquire: pairs with the releases in enlist (heap.c) and wr_extent_set_owner. */
  if (WR_UNLIKELY(span == NULL ||
                  atomic_load_explicit(&span->owner, memory_order_acquire) != (uintptr_t)heap))
    return false;
#if WR_CHECK_CHEAP
  if (WR_UNLIKELY(!wr_slab_holds(span, block) || wr_slab_is_marked(span, block))) {
    wr_free_suspect(block, span);
    return true;
  }
#endif
  wr_heap_give(heap, span, block);
  return true;
}

/* A block that is most likely the default arena's. */
WR_INLINE void wr_free_give(void *block) {
  struct wr_span *span = wr_pagemap_find(block);
  if (WR_UNLIKELY(!wr_free_quick(wr_heap_self, span, block)))
    wr_free_slow(block, span);
}

/* A block that is most likely of this arena, which is not the default one. */
WR_INLINE void wr_free_give_in(struct wr_arena *arena, void *block) {
  struct wr_span *span = NULL;
  if (WR_LIKELY(wr_pagemap_range_holds(&arena->range, block)))
    span = wr_pagemap_range_find(&arena->range, block);
  if (WR_UNLIKELY(!wr_free_quick(wr_heap_in(arena), span, block)))
    wr_free_slow_in(arena, block, span);
}

#endif
