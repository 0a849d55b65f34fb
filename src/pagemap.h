/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an address to the span that holds it: a radix tree of three levels over units of 64 KiB,
 * for addresses of up to 48 bits. A leaf covers 1 GiB, of which a process touches a page for each
 * 32 MiB it uses. The first leaf is found without the levels above it: most processes have no
 * other. Nodes are made on demand and never freed. Readers take no lock; writers hold the lock of
 * the arena that owns the range, and nodes are published by a compare-and-swap, so that arenas need
 * not share one.
 *
 * Entries of blocks are read relaxed: a program that passes a block to another thread orders the
 * write of the block's entry before that thread's read of it. Who looks for what lies beside his
 * own address space reads with acquire.
 */
#ifndef WR_PAGEMAP_H
#define WR_PAGEMAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attr.h"
#include "meta.h"

/* Bytes of address space an entry stands for; spans start at multiples of it. */
#define WR_UNIT_SHIFT 16
#define WR_UNIT ((size_t)1 << WR_UNIT_SHIFT)

#define WR_PAGEMAP_LEAF_BITS 14
#if UINTPTR_MAX > UINT32_MAX
#define WR_PAGEMAP_MIDDLE_BITS 6
#define WR_PAGEMAP_ROOT_BITS 12
#else
#define WR_PAGEMAP_MIDDLE_BITS 1
#define WR_PAGEMAP_ROOT_BITS 1
#endif

struct wr_span;

struct wr_pagemap_leaf {
  _Atomic(struct wr_span *) span[(size_t)1 << WR_PAGEMAP_LEAF_BITS];
};

struct wr_pagemap_middle {
  _Atomic(struct wr_pagemap_leaf *) leaf[(size_t)1 << WR_PAGEMAP_MIDDLE_BITS];
};

struct wr_pagemap {
  _Atomic(struct wr_pagemap_middle *) middle[(size_t)1 << WR_PAGEMAP_ROOT_BITS];
};

/*
 * The first gigabyte that is ever covered has its leaf in static memory and is found by one
 * comparison; the nodes above have no entry for it, which spares most processes their pages. Zero
 * is a valid state: the leaf is empty then, wherever it is. Whoever looks a block up was handed it
 * after its address was covered, so the base needs no order of its own.
 */
struct wr_pagemap_first {
  /* The complement of its address, so that 0 says that there is none yet. */
  _Atomic(uintptr_t) not_base;
  WR_ALIGNED(64) struct wr_pagemap_leaf leaf;
};

/* The process has one address space, so it has one map. */
extern struct wr_pagemap wr_pagemap;
extern struct wr_pagemap_first wr_pagemap_first;

#define WR_PAGEMAP_LEAF_BYTES (WR_UNIT << WR_PAGEMAP_LEAF_BITS)

#define WR_PAGEMAP_INDEX(address, skip, bits) \
  (((uintptr_t)(address) >> (WR_UNIT_SHIFT + (skip))) & (((uintptr_t)1 << (bits)) - 1))

/* The leaf that resolves an address outside the first gigabyte, or NULL. */
WR_INLINE struct wr_pagemap_leaf *wr_pagemap_walk(const void *address) {
  struct wr_pagemap_middle *middle;
  /* Acquire: pairs with the releases in pagemap.c, so that a new node is seen as zero. */
  middle = atomic_load_explicit(
      &wr_pagemap.middle[WR_PAGEMAP_INDEX(address, WR_PAGEMAP_LEAF_BITS + WR_PAGEMAP_MIDDLE_BITS,
                                          WR_PAGEMAP_ROOT_BITS)],
      memory_order_acquire);
  if (middle == NULL)
    return NULL;
  return atomic_load_explicit(
      &middle->leaf[WR_PAGEMAP_INDEX(address, WR_PAGEMAP_LEAF_BITS, WR_PAGEMAP_MIDDLE_BITS)],
      memory_order_acquire);
}

/*
 * The span recorded for the unit of `address`, or NULL. Bits of the address above the 48th may be
 * ignored, and an entry may be stale inside a free range: callers check that the span holds the
 * address.
 */
WR_INLINE struct wr_span *wr_pagemap_load(const void *address, memory_order order) {
  uintptr_t not_base = atomic_load_explicit(&wr_pagemap_first.not_base, memory_order_relaxed);
  uintptr_t offset = (uintptr_t)address + not_base + 1;
  struct wr_pagemap_leaf *leaf;
  if (WR_LIKELY(offset < WR_PAGEMAP_LEAF_BYTES))
    return atomic_load_explicit(&wr_pagemap_first.leaf.span[offset >> WR_UNIT_SHIFT], order);
  leaf = wr_pagemap_walk(address);
  if (WR_UNLIKELY(leaf == NULL))
    return NULL;
  return atomic_load_explicit(&leaf->span[WR_PAGEMAP_INDEX(address, 0, WR_PAGEMAP_LEAF_BITS)],
                              order);
}

WR_INLINE struct wr_span *wr_pagemap_find(const void *address) {
  return wr_pagemap_load(address, memory_order_relaxed);
}

/* The same for an address that is not known to be the caller's arena's: the descriptor may be any
 * arena's, of which no more may be read than its `spans`. */
WR_INLINE struct wr_span *wr_pagemap_peek(const void *address) {
  /* Acquire: pairs with the release of wr_pagemap_set. */
  return wr_pagemap_load(address, memory_order_acquire);
}

/* Makes the nodes for a range, so that wr_pagemap_set cannot fail there. Whether memory sufficed,
 * and the range lies below the 48th bit. */
bool wr_pagemap_cover(struct wr_meta *meta, const void *address, size_t length);

/* Records `span` for every unit of a covered range. */
void wr_pagemap_set(const void *address, size_t length, struct wr_span *span);

/* Records that nothing is there. Touches no page of the map that was not touched. */
void wr_pagemap_clear(const void *address, size_t length);

/*
 * A map of one range alone, in units of any size: for an arena in a buffer, where 64 KiB are too
 * much for a slab. Its entries are as those of the page map. Zero is a map of no range.
 */
struct wr_pagemap_range {
  char *base;
  size_t length;
  unsigned shift; /* a unit is 1 << shift bytes */
  _Atomic(struct wr_span *) *span;
};

WR_INLINE bool wr_pagemap_range_holds(const struct wr_pagemap_range *range, const void *address) {
  return (uintptr_t)address - (uintptr_t)range->base < range->length;
}

/* The span recorded for the unit of an address that the range holds, or NULL. */
WR_INLINE struct wr_span *wr_pagemap_range_find(const struct wr_pagemap_range *range,
                                                const void *address) {
  return atomic_load_explicit(
      &range->span[((uintptr_t)address - (uintptr_t)range->base) >> range->shift],
      memory_order_relaxed);
}

/* Records `span` for every unit of a part of the range. */
void wr_pagemap_range_set(const struct wr_pagemap_range *range, const void *address, size_t length,
                          struct wr_span *span);

#endif
