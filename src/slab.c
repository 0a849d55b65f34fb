/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow half of slabs: making, carving, retiring, and the walks that check a free list.
 */
#include "slab.h"

/* Blocks above this are carved one at a time. */
#define CARVE_ALONE ((size_t)2048)

/* The inverse of an odd number modulo 2^64, by Newton's iteration: each step doubles the number of
 * right bits, and an odd number is its own inverse modulo 8. */
static uint64_t inverse_of(uint64_t odd) {
  uint64_t x = odd;
  for (int right = 3; right < 64; right *= 2)
    x *= 2 - odd * x;
  return x;
}

struct wr_span *wr_slab_make(struct wr_spans *spans, unsigned class, struct wr_heap *owner) {
  size_t block = wr_sizeclass_block(class);
  struct wr_span *slab = wr_span_take_slab(spans, wr_sizeclass_units(class), owner);
  if (slab == NULL)
    return NULL;
  slab->class = (uint8_t) class;
  slab->block = (uint32_t)block;
  slab->shift = (uint8_t)wr_bits_lowest(block);
  slab->inverse = inverse_of(block >> slab->shift);
  slab->count = (uint32_t)(wr_span_length(slab) / block);
  slab->extent = slab->count * block;
  slab->start = slab->bump = slab->base;
  wr_slab_set_free(slab, NULL);
  atomic_store_explicit(&slab->use, 0, memory_order_relaxed);
  return slab;
}

bool wr_slab_carve(struct wr_span *slab) {
  size_t page = slab->spans->source->page;
  size_t from = (size_t)(slab->bump - slab->base);
  size_t to = from + slab->block;
  struct wr_block *first = (struct wr_block *)slab->bump;
  if (from >= slab->extent)
    return false;
  /* All blocks that end in the page in which the first one ends. */
  if (slab->block <= CARVE_ALONE)
    to = wr_bits_min(wr_bits_up(to, page) / slab->block * slab->block, slab->extent);
  WR_ASSERT(to > from && wr_slab_free(slab) == NULL);
  wr_span_touch_slab(slab, wr_bits_min(wr_bits_up(to, page), wr_span_length(slab)));
  for (size_t at = from; at < to; at += slab->block) {
    struct wr_block *block = (struct wr_block *)(slab->base + at);
    block->next = at + slab->block < to ? (struct wr_block *)(slab->base + at + slab->block) : NULL;
    block->mark = wr_slab_mark(slab);
  }
  slab->bump = slab->base + to;
  wr_slab_set_free(slab, first);
  return true;
}

void wr_slab_verify(const struct wr_span *slab) {
  const struct wr_block *block = wr_slab_free(slab);
  if (block != NULL && !wr_slab_holds(slab, block))
    wr_misuse_stop(WR_MISUSE_FREE_LIST, block);
}

bool wr_slab_is_free(const struct wr_span *slab, const void *address) {
  const struct wr_block *block = wr_slab_free(slab);
  /* A list that was overwritten may run in a circle; it is no longer than the slab. */
  for (uint32_t i = 0; i < slab->count && block != NULL; i++, block = block->next) {
    if (block == address)
      return true;
    if (!wr_slab_holds(slab, block))
      wr_misuse_stop(WR_MISUSE_FREE_LIST, block);
  }
  return false;
}

bool wr_slab_steal(struct wr_span *slab) {
#if WR_CHECK_CHEAP
  /* In no slab, so that wr_slab_pop takes it for the end of the list. */
  struct wr_block *const closed = (struct wr_block *)1;
  struct wr_block *list = wr_slab_free(slab), *seen = closed;
  wr_slab_set_free(slab, closed);
  /* Makes every thread either see the closed list, or have its use counted before we read. */
  if (wr_os_barrier() && wr_slab_used(slab) == 0)
    return true;
  /* A taker that saw the list stores its rest, before this (which then does nothing) or after it
   * (which then makes no difference); one that saw it closed waits for the lock. */
  atomic_compare_exchange_strong_explicit(&slab->free, &seen, list, memory_order_relaxed,
                                          memory_order_relaxed);
#else
  (void)slab;
#endif
  return false;
}

size_t wr_slab_purge(struct wr_span *slab) {
  size_t bytes = wr_span_purge_slab(slab);
  slab->bump = slab->base;
  wr_slab_set_free(slab, NULL);
  return bytes;
}

void wr_slab_retire(struct wr_span *slab) {
  WR_ASSERT(wr_slab_used(slab) == 0);
  wr_span_give_slab(slab);
}
