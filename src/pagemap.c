/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writing half of the page map: see pagemap.h.
 */
#include "pagemap.h"

#include "bits.h"

struct wr_pagemap wr_pagemap;
struct wr_pagemap_first wr_pagemap_first;

#define MAP_BITS \
  (WR_UNIT_SHIFT + WR_PAGEMAP_LEAF_BITS + WR_PAGEMAP_MIDDLE_BITS + WR_PAGEMAP_ROOT_BITS)

/* Puts a node where there is none, and returns the one that is there. */
static void *put_node(_Atomic(void *) *slot, void *fresh) {
  void *node = NULL;
  /* Release: pairs with the acquires here and in wr_pagemap_walk. A thread that loses the race
   * leaves its zeroed node unused. */
  if (atomic_compare_exchange_strong_explicit(slot, &node, fresh, memory_order_release,
                                              memory_order_acquire))
    return fresh;
  return node;
}

/* The node in *slot, made when there is none; NULL when memory is out. */
static void *make_node(struct wr_meta *meta, _Atomic(void *) *slot, size_t size, size_t alignment) {
  /* Acquire: pairs with the release above, when another arena's thread made the node. */
  void *node = atomic_load_explicit(slot, memory_order_acquire);
  if (node == NULL)
    node = wr_meta_take(meta, size, alignment);
  return node != NULL ? put_node(slot, node) : NULL;
}

/* Whether the range of a leaf is the first ever covered; of two that are the first at once, one. */
static bool is_first(uintptr_t at) {
  uintptr_t none = 0;
  return atomic_compare_exchange_strong_explicit(&wr_pagemap_first.not_base, &none, ~at,
                                                 memory_order_relaxed, memory_order_relaxed) ||
         none == ~at;
}

static struct wr_pagemap_leaf *make_leaf(struct wr_meta *meta, uintptr_t at) {
  _Atomic(void *) *slot;
  struct wr_pagemap_middle *middle;
  if (is_first(at))
    return &wr_pagemap_first.leaf;
  middle = make_node(meta,
                     (_Atomic(void *) *)&wr_pagemap.middle[WR_PAGEMAP_INDEX(
                         at, WR_PAGEMAP_LEAF_BITS + WR_PAGEMAP_MIDDLE_BITS, WR_PAGEMAP_ROOT_BITS)],
                     sizeof *middle, 64);
  if (middle == NULL)
    return NULL;
  slot = (_Atomic(void *) *)&middle
             ->leaf[WR_PAGEMAP_INDEX(at, WR_PAGEMAP_LEAF_BITS, WR_PAGEMAP_MIDDLE_BITS)];
  return make_node(meta, slot, sizeof(struct wr_pagemap_leaf), 4096);
}

bool wr_pagemap_cover(struct wr_meta *meta, const void *address, size_t length) {
  uintptr_t first = wr_bits_down((uintptr_t)address, WR_PAGEMAP_LEAF_BYTES);
  uintptr_t last = (uintptr_t)address + length - 1;
#if UINTPTR_MAX > UINT32_MAX
  if (last >> MAP_BITS != 0)
    return false;
#endif
  for (uintptr_t at = first; at <= last; at += WR_PAGEMAP_LEAF_BYTES) {
    struct wr_pagemap_leaf *leaf = make_leaf(meta, at);
    if (leaf == NULL)
      return false;
    if (at > UINTPTR_MAX - WR_PAGEMAP_LEAF_BYTES)
      break;
  }
  return true;
}

static struct wr_pagemap_leaf *find_leaf(const void *address) {
  uintptr_t not_base = atomic_load_explicit(&wr_pagemap_first.not_base, memory_order_relaxed);
  return (uintptr_t)address + not_base + 1 < WR_PAGEMAP_LEAF_BYTES ? &wr_pagemap_first.leaf
                                                                   : wr_pagemap_walk(address);
}

void wr_pagemap_set(const void *address, size_t length, struct wr_span *span) {
  for (size_t done = 0; done < length; done += WR_UNIT) {
    const char *at = (const char *)address + done;
    /* Release: pairs with the acquire of wr_pagemap_peek. */
    atomic_store_explicit(&find_leaf(at)->span[WR_PAGEMAP_INDEX(at, 0, WR_PAGEMAP_LEAF_BITS)], span,
                          memory_order_release);
  }
}

void wr_pagemap_clear(const void *address, size_t length) {
  for (size_t done = 0; done < length; done += WR_UNIT) {
    const char *at = (const char *)address + done;
    if (wr_pagemap_find(at) != NULL)
      wr_pagemap_set(at, WR_UNIT, NULL);
  }
}

void wr_pagemap_range_set(const struct wr_pagemap_range *range, const void *address, size_t length,
                          struct wr_span *span) {
  size_t first = ((uintptr_t)address - (uintptr_t)range->base) >> range->shift;
  for (size_t i = 0; i < length >> range->shift; i++)
    atomic_store_explicit(&range->span[first + i], span, memory_order_relaxed);
}
