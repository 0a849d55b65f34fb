/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An arena: a page source with weir's own memory, the spans cut from it, and the heaps whose slabs
 * they are. The process has one in static memory, valid when it is zero and not yet initialised,
 * from which malloc is served; and as many others as it makes, each of which has its own structure
 * in its own memory, and stands in a list. One lock guards the list, and which heaps the threads
 * have (thread.c).
 */
#ifndef WR_ARENA_H
#define WR_ARENA_H

#include <stdint.h>
#include <weir/arena.h>

#include "meta.h"
#include "options.h"
#include "source.h"
#include "span.h"

/* A table (heap.h) begins with two words; each other one belongs to the arena of a slot. */
#define WR_ARENA_SLOT_BYTES (sizeof(void *))
#define WR_ARENA_SLOT_FIRST (2 * WR_ARENA_SLOT_BYTES)

/* The small parts come first: what bring-up writes, and what taking and giving a payload reads, is
 * one page of the default arena. */
struct wr_arena {
  size_t slot; /* offset of its heap in each thread's table; 0: the default arena. Constant */
  struct wr_pagemap_range range; /* where its spans are found at once, or most; see lifetime.c */
  struct wr_source source;
  struct wr_meta meta;
  /* Every heap ever made, newest first; heaps are never unmade. Release when one is added, acquire
   * when the list is walked. */
  _Atomic(struct wr_heap *) heaps;
  wr_counter heap_count;
  wr_counter out_of_memory;
  wr_counter over_limit;
  struct wr_spans spans;
  struct wr_heap *idle;   /* heaps without a thread; guarded by thread.c's lock */
  struct wr_link listed;  /* in the list of arenas, lowest slot first */
  struct wr_link buffers; /* in the list of those in a buffer */
  char *buffer;           /* the caller's, or NULL */
  size_t buffer_size;
  bool buffer_locked; /* by weir, and by nobody else before */
  char name[WEIR_ARENA_NAME_MAX];
};

extern struct wr_arena wr_arena_default;

/* While it is held, no arena ends. For whoever is somewhere in an arena that he does not use: a
 * thread that ends and leaves its heaps, a report on all arenas. Taken before all other locks, and
 * unlike them held while memory is given back to the kernel. */
extern struct wr_lock wr_arena_ends_lock;

/* Guards the list of arenas. Taken before all other locks but that. */
extern struct wr_lock wr_arena_list_lock;

/* The newest heap, linked by wr_heap.next, or NULL. */
WR_INLINE struct wr_heap *wr_arena_heaps(struct wr_arena *arena) {
  /* Acquire: pairs with the release in wr_heap_make. */
  return atomic_load_explicit(&arena->heaps, memory_order_acquire);
}

WR_INLINE struct wr_arena *wr_arena_of(const struct wr_span *span) {
  return WR_LIST_MEMBER(span->spans, struct wr_arena, spans);
}

/* Takes over a source that is filled in; `hint` is where its address space may begin, or NULL. */
void wr_arena_init(struct wr_arena *arena, size_t mark, void *hint);

/* Gives the arena the lowest slot that is free, and lists it. */
void wr_arena_enlist(struct wr_arena *arena);
/* Takes it out of the list. */
void wr_arena_delist(struct wr_arena *arena);

/* Whoever looks at what lies beside his own address space may have found a descriptor of an arena
 * that ends. When this returns, after its address space was forgotten, nobody has it any more. */
void wr_arena_outwait(void);

/* The next arena, the default one being the first, or NULL. For the holder of the list's lock. */
struct wr_arena *wr_arena_after(struct wr_arena *arena);
/* The next one behind a slot, that of the default one being 0. For the holder of the lock of ends,
 * who may have given it up between two calls. */
struct wr_arena *wr_arena_next(size_t slot);

/* The arena in a buffer in which the address lies, or NULL. Time in proportion to the number of
 * those. */
struct wr_arena *wr_arena_in_buffer(const void *address);

/* Before fork: takes every lock of the arena, in order. After it, in the parent: gives them back;
 * in the child: makes them new. */
void wr_arena_lock_all(struct wr_arena *arena);
void wr_arena_unlock_all(struct wr_arena *arena);
void wr_arena_forked(struct wr_arena *arena);
/* The same for the lists, with the list's lock before all of those of any arena. */
void wr_arena_lock_lists(void);
void wr_arena_unlock_lists(void);
void wr_arena_forked_lists(void);

#endif
