/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An arena: a page source with weir's own memory, the spans cut from it, and the heaps whose slabs
 * they are. The process has one, in static memory, valid when it is zero and not yet initialised.
 */
#ifndef WR_ARENA_H
#define WR_ARENA_H

#include "meta.h"
#include "options.h"
#include "source.h"
#include "span.h"

/* The small parts come first: what bring-up writes, and what taking and giving a payload reads, is
 * one page of the default arena. */
struct wr_arena {
  struct wr_source source;
  struct wr_meta meta;
  /* Every heap ever made, newest first; heaps are never unmade. Release when one is added, acquire
   * when the list is walked. */
  _Atomic(struct wr_heap *) heaps;
  wr_counter heap_count;
  wr_counter out_of_memory;
  struct wr_spans spans;
};

extern struct wr_arena wr_arena_default;

/* The newest heap, linked by wr_heap.next, or NULL. */
WR_INLINE struct wr_heap *wr_arena_heaps(struct wr_arena *arena) {
  /* Acquire: pairs with the release in wr_heap_make. */
  return atomic_load_explicit(&arena->heaps, memory_order_acquire);
}

/* Takes over a source that is filled in; `hint` is where its address space may begin, or NULL. */
void wr_arena_init(struct wr_arena *arena, size_t mark, void *hint);

/* Before fork: takes every lock of the arena, in order. After it, in the parent: gives them back;
 * in the child: makes them new. */
void wr_arena_lock_all(struct wr_arena *arena);
void wr_arena_unlock_all(struct wr_arena *arena);
void wr_arena_forked(struct wr_arena *arena);

#endif
