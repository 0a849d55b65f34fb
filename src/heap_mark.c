/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes for all heaps of an arena: the list they are in, its mark, and trimming. Takes each
 * heap's lock in its turn.
 */
#include "heap.h"

struct wr_heap *wr_heap_make(struct wr_arena *arena) {
  struct wr_heap *heap = wr_extent_take_own(&arena->spans, sizeof *heap, 128);
  /* In a buffer, what was set aside for weir's own structures may be used up. */
  if (heap == NULL && arena->buffer != NULL)
    heap = wr_span_take_own(&arena->spans, sizeof *heap);
  if (heap == NULL)
    return NULL;
  for (unsigned class = 0; class < WR_CLASSES; class ++)
    wr_heap_set_current(heap, class, &wr_heap_no_slab);
  heap->arena = arena;
  heap->next = atomic_load_explicit(&arena->heaps, memory_order_relaxed);
  /* Release: pairs with the acquire of those who walk the list. */
  while (!atomic_compare_exchange_weak_explicit(&arena->heaps, &heap->next, heap,
                                                memory_order_release, memory_order_relaxed))
    continue;
  wr_heap_set_patience(heap);
  wr_counter_add(&arena->heap_count, 1);
  return heap;
}

/* The fence pairs with itself: a heap that is made while the mark is set either is in the list, or
 * its maker, who calls this after it has listed it, reads the new mark. */
void wr_heap_set_patience(struct wr_heap *heap) {
  const wr_counter *mark = &heap->arena->spans.retain.mark;
  size_t read;
  /* Of two threads that set the mark at once, the one that is late here sees the other's. */
  do {
    atomic_thread_fence(memory_order_seq_cst);
    read = wr_counter_read(mark);
    wr_counter_set(&heap->patience, wr_bits_min(read, WR_HEAP_PIN_MAX) >> WR_REMOTE_UNIT_SHIFT);
    atomic_thread_fence(memory_order_seq_cst);
  } while (wr_counter_read(mark) != read);
}

size_t wr_heap_trim_all(struct wr_arena *arena, size_t keep) {
  size_t before = wr_counter_read(&arena->spans.purged_bytes);
  for (struct wr_heap *heap = wr_arena_heaps(arena); heap != NULL; heap = heap->next)
    wr_heap_trim(heap);
  (void)wr_settle_to(&arena->spans, keep);
  return wr_counter_read(&arena->spans.purged_bytes) - before;
}

void wr_heap_set_mark(struct wr_arena *arena, size_t mark) {
  wr_settle_set_mark(&arena->spans, mark);
  atomic_thread_fence(memory_order_seq_cst);
  for (struct wr_heap *heap = wr_arena_heaps(arena); heap != NULL; heap = heap->next)
    wr_heap_set_patience(heap);
  if (mark < WR_HEAP_PIN_MAX)
    (void)wr_heap_trim_all(arena, mark);
}
