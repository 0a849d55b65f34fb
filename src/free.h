/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving a block back: whose it is decides where it goes, and this is the only place that decides.
 */
#ifndef WR_FREE_H
#define WR_FREE_H

#include "heap.h"

/* What is not a good block of a listed slab of the thread's own heap: everything else, NULL and
 * misuse included. */
void wr_free_slow(void *block, struct wr_span *span);

/* A block of the thread's own heap that did not pass the cheap checks. */
void wr_free_suspect(void *block, struct wr_span *slab);

/* Finds the span of a live block and how many bytes of it may be used; stops the program when
 * `block` is none. No lock. */
struct wr_span *wr_free_find(const void *block, size_t *usable);

WR_INLINE void wr_free_give(void *block) {
  struct wr_span *span = wr_pagemap_find(block);
  struct wr_heap *heap = wr_heap_self;
  /* Acquire: pairs with the releases in enlist (heap.c) and set_owner (span.c). */
  if (WR_UNLIKELY(span == NULL ||
                  atomic_load_explicit(&span->owner, memory_order_acquire) != (uintptr_t)heap)) {
    wr_free_slow(block, span);
    return;
  }
#if WR_CHECK_CHEAP
  if (WR_UNLIKELY(!wr_slab_holds(span, block) || wr_slab_is_marked(span, block))) {
    wr_free_suspect(block, span);
    return;
  }
#endif
  wr_heap_give(heap, span, block);
}

#endif
