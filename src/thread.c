/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and their heaps: see thread.h.
 *
 * A thread's end is learnt from the destructor of a thread-specific key. Other keys' destructors
 * may allocate after it, and libc frees a few blocks of its own after all of them: they find the
 * dead heap, and borrow one. A thread whose first allocation is made by a destructor is given a
 * heap, and ours is called in the next round.
 *
 * The tables in which threads find their heaps of other arenas than the default one are memory of
 * weir's own that is never given back, but used again by the next thread. The lock of the list of
 * arenas guards them.
 */
#include "thread.h"

#include <pthread.h>

#include "place.h"

#define TABLE_MIN (16 * WR_ARENA_SLOT_BYTES)
#define TABLE_KINDS 28

static struct wr_lock pool_lock;
static pthread_key_t key;
static bool has_key;

static struct wr_heap_table *tables;                    /* those that threads have */
static struct wr_heap_table *spare_tables[TABLE_KINDS]; /* others, by size */

/* An unattended heap that nobody else has, or NULL when memory is out. A heap is made with the lock
 * held, so that none is made while fork copies the process. */
static struct wr_heap *take_idle(struct wr_arena *arena) {
  struct wr_heap *heap;
  wr_lock_take(&pool_lock);
  heap = arena->idle;
  if (heap != NULL)
    arena->idle = heap->next_idle;
  else
    heap = wr_heap_make(arena);
  wr_lock_give(&pool_lock);
  return heap;
}

/* Under the lock. */
static void add_idle(struct wr_heap *heap) {
  heap->next_idle = heap->arena->idle;
  heap->arena->idle = heap;
}

static void give_idle(struct wr_heap *heap) {
  wr_lock_take(&pool_lock);
  add_idle(heap);
  wr_lock_give(&pool_lock);
}

bool wr_thread_stock(struct wr_arena *arena) {
  struct wr_heap *heap;
  wr_lock_take(&pool_lock);
  heap = wr_heap_make(arena);
  if (heap != NULL)
    add_idle(heap);
  wr_lock_give(&pool_lock);
  return heap != NULL;
}

/* Where a table of a kind ends: the smallest has room for 14 arenas, the next is twice as large. */
static size_t table_end(unsigned kind) {
  return TABLE_MIN << kind;
}

static unsigned table_kind(size_t end) {
  unsigned kind = 0;
  while (table_end(kind) < end)
    kind++;
  return kind;
}

static struct wr_heap *heap_at(struct wr_heap_table *table, size_t slot) {
  return atomic_load_explicit(wr_heap_slot(table, slot), memory_order_relaxed);
}

static void set_heap(struct wr_heap_table *table, size_t slot, struct wr_heap *heap) {
  atomic_store_explicit(wr_heap_slot(table, slot), heap, memory_order_relaxed);
}

/* A table of no heaps with that slot, in no list. NULL when memory is out. Under the lock. */
static struct wr_heap_table *take_table(size_t slot) {
  unsigned kind = table_kind(slot + WR_ARENA_SLOT_BYTES);
  struct wr_heap_table *table = spare_tables[kind];
  if (table != NULL) {
    spare_tables[kind] = table->next;
  } else {
    table = wr_meta_take(&wr_arena_default.meta, table_end(kind), 64);
    if (table == NULL)
      return NULL;
    table->end = table_end(kind);
  }
  for (slot = WR_ARENA_SLOT_FIRST; slot < table->end; slot += WR_ARENA_SLOT_BYTES)
    set_heap(table, slot, &wr_heap_unborn);
  return table;
}

/* Under the lock. */
static void give_table(struct wr_heap_table *table) {
  struct wr_heap_table **at = &tables;
  unsigned kind = table_kind(table->end);
  if (table == &wr_heap_no_table)
    return;
  while (*at != table)
    at = &(*at)->next;
  *at = table->next;
  table->next = spare_tables[kind];
  spare_tables[kind] = table;
}

/* The thread's table with room for a slot; NULL when memory is out. Under the lock. */
static struct wr_heap_table *reserve(size_t slot) {
  struct wr_heap_table *former = wr_heap_table, *table;
  if (slot < former->end)
    return former;
  table = take_table(slot);
  if (table == NULL)
    return NULL;
  for (size_t i = WR_ARENA_SLOT_FIRST; i < former->end; i += WR_ARENA_SLOT_BYTES)
    set_heap(table, i, heap_at(former, i));
  give_table(former);
  table->next = tables;
  tables = table;
  wr_heap_table = table;
  return table;
}

/* Makes an unattended heap the thread's. Whether memory sufficed. */
static bool settle(struct wr_heap *heap) {
  size_t slot = heap->arena->slot;
  struct wr_heap_table *table;
  if (heap->arena == &wr_arena_default) {
    wr_heap_attend(heap, true);
    wr_heap_self = heap;
    return true;
  }
  wr_lock_take(&wr_arena_list_lock);
  table = reserve(slot);
  if (table != NULL)
    set_heap(table, slot, heap);
  wr_lock_give(&wr_arena_list_lock);
  if (table != NULL)
    wr_heap_attend(heap, true);
  return table != NULL;
}

/* Takes the next heap that the thread has of another arena than the default one out of its table.
 * NULL when there is none, and then the table is given back. */
static struct wr_heap *take_next(struct wr_heap_table *table, size_t *slot) {
  struct wr_heap *heap = &wr_heap_unborn;
  wr_lock_take(&wr_arena_list_lock);
  for (; heap == &wr_heap_unborn && *slot < table->end; *slot += WR_ARENA_SLOT_BYTES) {
    heap = heap_at(table, *slot);
    set_heap(table, *slot, &wr_heap_unborn);
  }
  if (heap == &wr_heap_unborn)
    give_table(table);
  wr_lock_give(&wr_arena_list_lock);
  return heap != &wr_heap_unborn ? heap : NULL;
}

static void at_thread_end(void *argument) {
  struct wr_heap *heap = wr_heap_self;
  struct wr_heap_table *table = wr_heap_table;
  size_t slot = WR_ARENA_SLOT_FIRST;
  (void)argument;
  wr_heap_self = &wr_heap_dead;
  wr_heap_table = &wr_heap_no_table;
  if (wr_heap_is_alive(heap)) {
    wr_heap_attend(heap, false);
    give_idle(heap);
  }
  if (table == &wr_heap_no_table)
    return;
  wr_lock_take(&wr_arena_ends_lock);
  while ((heap = take_next(table, &slot)) != NULL) {
    wr_heap_attend(heap, false);
    give_idle(heap);
  }
  wr_lock_give(&wr_arena_ends_lock);
}

void wr_thread_init(void) {
  has_key = pthread_key_create(&key, at_thread_end) == 0;
}

struct wr_heap *wr_thread_enter(struct wr_arena *arena) {
  struct wr_heap *heap = wr_heap_own(arena);
  if (wr_heap_is_alive(heap))
    return heap;
  heap = take_idle(arena);
  if (heap == NULL || wr_heap_self == &wr_heap_dead)
    return heap;
  /* First, because pthread_setspecific may allocate: then the heap is found. */
  if (settle(heap) && has_key)
    (void)pthread_setspecific(key, &key);
  return heap;
}

void wr_thread_leave(struct wr_heap *heap) {
  if (WR_UNLIKELY(!wr_heap_is_own(heap)))
    give_idle(heap);
}

void wr_thread_forget(struct wr_arena *arena) {
  wr_lock_take(&wr_arena_ends_lock);
  wr_lock_take(&wr_arena_list_lock);
  for (struct wr_heap_table *table = tables; table != NULL; table = table->next)
    if (arena->slot < table->end)
      set_heap(table, arena->slot, &wr_heap_unborn);
  wr_lock_give(&wr_arena_list_lock);
  wr_arena_delist(arena);
  wr_lock_give(&wr_arena_ends_lock);
}

void wr_thread_lock_all(void) {
  struct wr_arena *arena;
  wr_arena_lock_lists();
  wr_lock_hold(&pool_lock);
  for (arena = &wr_arena_default; arena != NULL; arena = wr_arena_after(arena))
    for (struct wr_heap *heap = wr_arena_heaps(arena); heap != NULL; heap = heap->next)
      wr_lock_hold(&heap->lock);
  for (arena = wr_arena_after(&wr_arena_default); arena != NULL; arena = wr_arena_after(arena))
    wr_arena_lock_all(arena);
  /* At the end, because its memory serves the others' page map; and what all that grow ask. */
  wr_arena_lock_all(&wr_arena_default);
  wr_place_lock();
}

void wr_thread_unlock_all(void) {
  struct wr_arena *arena;
  wr_place_unlock();
  for (arena = &wr_arena_default; arena != NULL; arena = wr_arena_after(arena)) {
    wr_arena_unlock_all(arena);
    for (struct wr_heap *heap = wr_arena_heaps(arena); heap != NULL; heap = heap->next)
      wr_lock_give(&heap->lock);
  }
  wr_lock_give(&pool_lock);
  wr_arena_unlock_lists();
}

/* In a child: puts the heaps of the threads that it does not have into the arena's pool. */
static void orphan(struct wr_arena *arena) {
  arena->idle = NULL;
  for (struct wr_heap *heap = wr_arena_heaps(arena); heap != NULL; heap = heap->next) {
    wr_lock_init(&heap->lock);
    if (wr_heap_is_own(heap))
      continue;
    atomic_store_explicit(&heap->attended, false, memory_order_relaxed);
    add_idle(heap);
  }
}

void wr_thread_forked(void) {
  struct wr_heap_table *table = tables;
  struct wr_arena *arena;
  wr_place_forked();
  wr_lock_init(&pool_lock);
  for (arena = &wr_arena_default; arena != NULL; arena = wr_arena_after(arena)) {
    wr_arena_forked(arena);
    orphan(arena);
  }
  while (table != NULL) {
    struct wr_heap_table *next = table->next;
    if (table != wr_heap_table)
      give_table(table);
    table = next;
  }
  wr_arena_forked_lists();
}
