/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which heaps a thread has: of each arena one, given at its first allocation there, taken back at
 * the thread's end, and kept in the arena's pool between. The pools have one lock of their own.
 */
#ifndef WR_THREAD_H
#define WR_THREAD_H

#include "heap.h"

/* Prepares for the ends of threads. Once, at bring-up. */
void wr_thread_init(void);

/*
 * The heap for one slow operation of the calling thread: its own, adopted or made at first use; or,
 * after the thread's teardown, one lent from the pool. NULL when memory is out. Every call with a
 * result is followed by wr_thread_leave.
 */
struct wr_heap *wr_thread_enter(struct wr_arena *arena);
void wr_thread_leave(struct wr_heap *heap);

/* Makes a heap for a thread that is still to come. False when memory is out. */
bool wr_thread_stock(struct wr_arena *arena);

/* Takes the heaps of an arena that ends away from all threads. The arena is in no list any more
 * when this returns, and no thread that ends is here with a heap of it. */
void wr_thread_forget(struct wr_arena *arena);

/* Before fork: takes the lists' locks, the pools' and those of all arenas and heaps. After it, in
 * the parent: gives them back; in the child: makes them new, and puts the heaps of the other
 * threads into the pools. */
void wr_thread_lock_all(void);
void wr_thread_unlock_all(void);
void wr_thread_forked(void);

#endif
