/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over a whole heap: see wr_heap_check.
 */
#include "heap.h"

static size_t check_list(const struct wr_span *slab, const struct wr_block *list, size_t carved) {
  size_t length = 0;
  for (; list != NULL && list != WR_SLAB_CLOSED; list = list->next, length++)
    wr_check_require(wr_slab_holds(slab, list) && wr_slab_is_marked(slab, list) && length < carved);
  return length;
}

static void check_slab(const struct wr_span *slab, unsigned class, uintptr_t owner) {
  size_t length = (size_t)(slab->bump - slab->start), carved = length / wr_slab_step(slab);
  size_t free = check_list(slab, wr_slab_free(slab), carved);
  wr_check_require(atomic_load_explicit(&slab->owner, memory_order_relaxed) == owner);
  wr_check_require(slab->class == class && slab->block == wr_sizeclass_block(class));
  wr_check_require(slab->rest != NULL || wr_slab_used(slab) + free == carved);
  wr_check_require(length == 0 || wr_counter_read(&slab->touched) >= wr_slab_lead(slab) + length -
                                                                         wr_slab_step(slab) +
                                                                         slab->block);
}

/* The current slab is listed, or has run dry since, or has no blocks at all. */
static void check_current(struct wr_heap *heap, unsigned class) {
  const struct wr_span *slab = wr_heap_current(heap, class);
  uintptr_t owner = atomic_load_explicit(&slab->owner, memory_order_relaxed);
  wr_check_require(slab->base == NULL || slab->class == class ||
                   (wr_sizeclass_may_host(slab->class, class) && owner == (uintptr_t)heap));
}

void wr_heap_check(struct wr_heap *heap) {
  size_t pinned = 0;
  wr_lock_take(&heap->lock);
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    size_t dry = 0;
    check_current(heap, class);
    for (struct wr_link *link = heap->listed[class].front; link != NULL; link = link->older) {
      check_slab(WR_SLAB_OF_LINK(link), class, (uintptr_t)heap);
      dry += WR_SLAB_OF_LINK(link)->dry;
    }
    wr_check_require(dry == heap->dry[class] && dry <= WR_HEAP_DRY_MAX);
    for (struct wr_link *link = heap->refilled[class].front; link != NULL; link = link->older)
      check_slab(WR_SLAB_OF_LINK(link), class, (uintptr_t)heap | WR_OWNER_FULL);
    wr_check_require((wr_heap_pinned(heap, class) != NULL) == (heap->pinned_size[class] > 0));
    pinned += heap->pinned_size[class];
  }
  wr_check_require(pinned == heap->pinned_bytes);
  wr_lock_give(&heap->lock);
}
