/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writing half of the page map: see pagemap.h.
 */
#include "pagemap.h"

#include "bits.h"

struct wr_pagemap wr_pagemap;

#define LEAF_BYTES (WR_UNIT << WR_PAGEMAP_LEAF_BITS)
#define MAP_BITS \
  (WR_UNIT_SHIFT + WR_PAGEMAP_LEAF_BITS + WR_PAGEMAP_MIDDLE_BITS + WR_PAGEMAP_ROOT_BITS)

/* The node in *slot, made when there is none; NULL when memory is out. */
static void *make_node(struct wr_meta *meta, _Atomic(void *) *slot, size_t size) {
  /* Acquire: pairs with the release below, when another arena's thread made the node. */
  void *node = atomic_load_explicit(slot, memory_order_acquire);
  void *fresh;
  if (node != NULL)
    return node;
  fresh = wr_meta_take(meta, size, 4096);
  if (fresh == NULL)
    return NULL;
  /* Release: pairs with the acquires above and in wr_pagemap_find. A thread that loses the race
   * leaves its zeroed node unused. */
  if (atomic_compare_exchange_strong_explicit(slot, &node, fresh, memory_order_release,
                                              memory_order_acquire))
    return fresh;
  return node;
}

bool wr_pagemap_cover(struct wr_meta *meta, const void *address, size_t length) {
  uintptr_t first = wr_bits_down((uintptr_t)address, LEAF_BYTES);
  uintptr_t last = (uintptr_t)address + length - 1;
#if UINTPTR_MAX > UINT32_MAX
  if (last >> MAP_BITS != 0)
    return false;
#endif
  for (uintptr_t at = first; at <= last; at += LEAF_BYTES) {
    struct wr_pagemap_middle *middle =
        make_node(meta,
                  (_Atomic(void *) *)&wr_pagemap.middle[WR_PAGEMAP_INDEX(
                      at, WR_PAGEMAP_LEAF_BITS + WR_PAGEMAP_MIDDLE_BITS, WR_PAGEMAP_ROOT_BITS)],
                  sizeof *middle);
    if (middle == NULL ||
        make_node(meta,
                  (_Atomic(void *) *)&middle
                      ->leaf[WR_PAGEMAP_INDEX(at, WR_PAGEMAP_LEAF_BITS, WR_PAGEMAP_MIDDLE_BITS)],
                  sizeof(struct wr_pagemap_leaf)) == NULL)
      return false;
    if (at > UINTPTR_MAX - LEAF_BYTES)
      break;
  }
  return true;
}

void wr_pagemap_set(const void *address, size_t length, struct wr_span *span) {
  for (size_t done = 0; done < length; done += WR_UNIT) {
    const char *at = (const char *)address + done;
    struct wr_pagemap_middle *middle = atomic_load_explicit(
        &wr_pagemap.middle[WR_PAGEMAP_INDEX(at, WR_PAGEMAP_LEAF_BITS + WR_PAGEMAP_MIDDLE_BITS,
                                            WR_PAGEMAP_ROOT_BITS)],
        memory_order_relaxed);
    struct wr_pagemap_leaf *leaf = atomic_load_explicit(
        &middle->leaf[WR_PAGEMAP_INDEX(at, WR_PAGEMAP_LEAF_BITS, WR_PAGEMAP_MIDDLE_BITS)],
        memory_order_relaxed);
    atomic_store_explicit(&leaf->span[WR_PAGEMAP_INDEX(at, 0, WR_PAGEMAP_LEAF_BITS)], span,
                          memory_order_relaxed);
  }
}
