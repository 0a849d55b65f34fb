/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which heap a thread has: given at its first allocation, taken back at its end, and kept in a pool
 * between. The pool has its own lock.
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

/* Before fork: takes the pool's lock and those of all heaps. After it, in the parent: gives them
 * back; in the child: makes them new, and puts the heaps of the other threads into the pool. */
void wr_thread_lock_all(struct wr_arena *arena);
void wr_thread_unlock_all(struct wr_arena *arena);
void wr_thread_forked(struct wr_arena *arena);

#endif
