/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and their heaps: see thread.h.
 *
 * A thread's end is learnt from the destructor of a thread-specific key. Other keys' destructors
 * may allocate after it, and libc frees a few blocks of its own after all of them: they find the
 * dead heap, and borrow one. A thread whose first allocation is made by a destructor is given a
 * heap, and ours is called in the next round.
 */
#include "thread.h"

#include <pthread.h>

static struct wr_lock pool_lock;
static struct wr_heap *pool; /* linked by next_idle; guarded by pool_lock */
static pthread_key_t key;
static bool has_key;

/* An unattended heap that nobody else has, or NULL when memory is out. A heap is made with the lock
 * held, so that none is made while fork copies the process. */
static struct wr_heap *take_idle(struct wr_arena *arena) {
  struct wr_heap *heap;
  wr_lock_take(&pool_lock);
  heap = pool;
  if (heap != NULL)
    pool = heap->next_idle;
  else
    heap = wr_heap_make(arena);
  wr_lock_give(&pool_lock);
  return heap;
}

static void give_idle(struct wr_heap *heap) {
  wr_lock_take(&pool_lock);
  heap->next_idle = pool;
  pool = heap;
  wr_lock_give(&pool_lock);
}

static void at_thread_end(void *argument) {
  struct wr_heap *heap = argument;
  wr_heap_self = &wr_heap_dead;
  wr_heap_attend(heap, false);
  give_idle(heap);
}

void wr_thread_init(void) {
  has_key = pthread_key_create(&key, at_thread_end) == 0;
}

struct wr_heap *wr_thread_enter(struct wr_arena *arena) {
  struct wr_heap *heap = wr_heap_self;
  if (wr_heap_is_alive(heap))
    return heap;
  heap = take_idle(arena);
  if (heap == NULL || wr_heap_self == &wr_heap_dead)
    return heap;
  wr_heap_attend(heap, true);
  /* First, because pthread_setspecific may allocate: then the heap is found. */
  wr_heap_self = heap;
  if (has_key)
    (void)pthread_setspecific(key, heap);
  return heap;
}

void wr_thread_leave(struct wr_heap *heap) {
  if (WR_UNLIKELY(heap != wr_heap_self))
    give_idle(heap);
}

void wr_thread_lock_all(struct wr_arena *arena) {
  wr_lock_hold(&pool_lock);
  for (struct wr_heap *heap = wr_arena_heaps(arena); heap != NULL; heap = heap->next)
    wr_lock_hold(&heap->lock);
}

void wr_thread_unlock_all(struct wr_arena *arena) {
  for (struct wr_heap *heap = wr_arena_heaps(arena); heap != NULL; heap = heap->next)
    wr_lock_give(&heap->lock);
  wr_lock_give(&pool_lock);
}

void wr_thread_forked(struct wr_arena *arena) {
  wr_lock_init(&pool_lock);
  pool = NULL;
  for (struct wr_heap *heap = wr_arena_heaps(arena); heap != NULL; heap = heap->next) {
    wr_lock_init(&heap->lock);
    if (heap == wr_heap_self)
      continue;
    atomic_store_explicit(&heap->attended, false, memory_order_relaxed);
    heap->next_idle = pool;
    pool = heap;
  }
}
