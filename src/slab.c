/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow half of slabs: making, carving, retiring, and the walks that check a free list.
 */
#include "slab.h"

/* How much is carved at once of memory that is resident anyway: enough that the slow path is rare,
 * little enough that the first blocks are still in the cache when they are taken. */
#define CARVE_WARM ((size_t)16 << 10)

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
  unsigned units = wr_sizeclass_units(class, spans->shift);
  size_t spacing = wr_sizeclass_spacing(class, spans->shift), step = block + spacing;
  unsigned least = (unsigned)wr_extent_units(spans, block);
  struct wr_span *slab = wr_span_take_slab(spans, units, block, spacing);
  /* When memory is short, a slab of one block or a few may still be had. */
  if (slab == NULL && units > least)
    slab = wr_span_take_slab(spans, least, block, spacing);
  if (slab == NULL)
    return NULL;
  slab->class = (uint8_t) class;
  slab->block = (uint32_t)block;
  slab->shift = (uint8_t)wr_bits_lowest(step);
  slab->inverse = inverse_of(step >> slab->shift);
  slab->extent = (wr_extent_length(slab) - wr_slab_lead(slab) + spacing) / step * step;
  atomic_store_explicit(&slab->count, 0, memory_order_relaxed);
  slab->rest = NULL;
  slab->dying = false;
  slab->deferred = 0;
  slab->seen = 0;
  slab->dry = false;
  slab->start = slab->bump = slab->base;
  wr_slab_set_free(slab, NULL);
  atomic_store_explicit(&slab->use, 0, memory_order_relaxed);
  /* Release: pairs with the acquires in span.c and wr_free_give. */
  atomic_store_explicit(&slab->owner, (uintptr_t)owner, memory_order_release);
  return slab;
}

bool wr_slab_carve(struct wr_span *slab) {
  size_t page = slab->spans->source->page;
  size_t step = wr_slab_step(slab), lead = wr_slab_lead(slab), spacing = step - slab->block;
  size_t from = (size_t)(slab->bump - slab->start);
  size_t to = from + step, warm = wr_extent_touched(slab) + spacing;
  struct wr_block *first = (struct wr_block *)slab->bump;
  if (from >= slab->extent)
    return false;
  /* All blocks that end in the page in which the first one ends; and what follows, if the memory
   * was touched in an earlier life of the slab's. */
  if (slab->block <= page / 2)
    to = (wr_bits_up(lead + to - spacing, page) + spacing - lead) / step * step;
  warm = warm > lead ? wr_bits_min(warm - lead, from + CARVE_WARM) / step * step : 0;
  to = wr_bits_min(wr_bits_max(to, warm), slab->extent);
  WR_ASSERT(to > from && wr_slab_free(slab) == NULL);
  if (!wr_span_touch_slab(slab, wr_bits_up(lead + to - spacing, page)))
    return false;
  for (size_t at = from; at < to; at += step) {
    struct wr_block *block = (struct wr_block *)(slab->start + at);
    block->next = at + step < to ? (struct wr_block *)(slab->start + at + step) : NULL;
    block->mark = wr_slab_mark(slab, block);
  }
  slab->bump = slab->start + to;
  atomic_store_explicit(&slab->count, (uint32_t)(to / step), memory_order_relaxed);
  wr_slab_set_free(slab, first);
  return true;
}

void wr_slab_verify(const struct wr_span *slab) {
  const struct wr_block *block = wr_slab_free(slab);
  if (block != NULL && block != WR_SLAB_CLOSED && !wr_slab_holds(slab, block))
    wr_misuse_stop(WR_MISUSE_FREE_LIST, block);
}

static bool is_listed(const struct wr_span *slab, const struct wr_block *list,
                      const void *address) {
  size_t length = slab->extent / wr_slab_step(slab);
  /* A list that was overwritten may run in a circle; it is no longer than the slab. */
  for (size_t i = 0; i < length && list != NULL && list != WR_SLAB_CLOSED; i++) {
    if (list == address)
      return true;
    if (!wr_slab_holds(slab, list))
      wr_misuse_stop(WR_MISUSE_FREE_LIST, list);
    list = list->next;
  }
  return false;
}

bool wr_slab_is_free(const struct wr_span *slab, const void *address) {
  return is_listed(slab, wr_slab_free(slab), address) || is_listed(slab, slab->rest, address);
}

bool wr_slab_steal(struct wr_span *slab) {
#if WR_CHECK_CHEAP
  size_t use = wr_slab_use(slab);
  struct wr_block *list;
  if ((use & WR_SLAB_USED) != 0 || slab->rest != NULL)
    return false;
  /* At one stroke, because the owner may store the rest of the list at any time. */
  list = atomic_exchange_explicit(&slab->free, WR_SLAB_CLOSED, memory_order_relaxed);
  /* After the barrier the owner either sees the closed list, or we see that it took a block. If
   * nothing was taken, there was nothing to give back either. */
  if (wr_os_barrier() && wr_slab_use(slab) == use)
    return true;
  slab->rest = list;
#else
  /* Without checks, wr_slab_pop knows no end of a list but NULL. */
  (void)slab;
#endif
  return false;
}

bool wr_slab_purge(struct wr_span *slab, bool ask) {
  bool taken = !ask || wr_span_purge_slab(slab);
  slab->bump = slab->start;
  atomic_store_explicit(&slab->count, 0, memory_order_relaxed);
  wr_slab_set_free(slab, NULL);
  return taken;
}

void wr_slab_retire(struct wr_span *slab) {
  WR_ASSERT(wr_slab_used(slab) == 0);
  wr_span_give_slab(slab);
}
