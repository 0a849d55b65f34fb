/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking for blocks that are on their way back to a heap. Takes the heap's lock.
 */
#include "heap.h"

static bool is_pending(const struct wr_heap *heap, const struct wr_block *list, const void *block) {
  for (; list != NULL; list = list->next) {
    if (list == block)
      return true;
    (void)wr_heap_slab_of(heap, list);
  }
  return false;
}

bool wr_heap_is_free(struct wr_heap *heap, struct wr_span *slab, const void *block) {
  bool found;
  wr_lock_take(&heap->lock);
  found = wr_slab_is_free(slab, block) || is_pending(heap, heap->incoming, block) ||
          is_pending(heap, heap->deferred, block) ||
          is_pending(heap, wr_remote_peek(&heap->remote), block);
  wr_lock_give(&heap->lock);
  return found;
}

void wr_heap_each_pending(struct wr_heap *heap,
                          void (*visit)(void *context, const struct wr_span *slab), void *context) {
  const struct wr_block *list[3];
  wr_lock_take(&heap->lock);
  list[0] = heap->incoming;
  list[1] = heap->deferred;
  list[2] = wr_remote_peek(&heap->remote);
  for (int i = 0; i < 3; i++)
    for (; list[i] != NULL; list[i] = list[i]->next)
      visit(context, wr_heap_slab_of(heap, list[i]));
  wr_lock_give(&heap->lock);
}
