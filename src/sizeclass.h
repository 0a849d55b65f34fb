/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The size classes of slabs: multiples of 16 bytes up to 128, then four a doubling up to 64 KiB, so
 * that at most a fifth of a block is lost to rounding. One formula; no tables to keep in step but
 * those from a size to its class, which are made from the formula. Behind them come the aligned
 * classes, whose blocks lie at multiples of their size, from 4 KiB to 64 KiB.
 */
#ifndef WR_SIZECLASS_H
#define WR_SIZECLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attr.h"
#include "bits.h"

#define WR_BLOCK_MIN ((size_t)16)
#define WR_BLOCK_MAX ((size_t)64 << 10)
#define WR_SIZECLASS_ALIGNED 44 /* the first of the aligned classes */
#define WR_CLASSES (WR_SIZECLASS_ALIGNED + 5)

/* Up to this, block sizes are multiples of 16, above it of 256. */
#define WR_SIZECLASS_FINE_MAX ((size_t)1024)

extern const uint8_t wr_sizeclass_fine[WR_SIZECLASS_FINE_MAX / 16 + 1];
extern const uint8_t wr_sizeclass_coarse[WR_BLOCK_MAX / 256 + 1];

/* The smallest class whose blocks hold `size` bytes, and not an aligned one; size is at most
 * WR_BLOCK_MAX. */
WR_INLINE unsigned wr_sizeclass_of(size_t size) {
  if (WR_LIKELY(size <= WR_SIZECLASS_FINE_MAX))
    return wr_sizeclass_fine[(size + 15) / 16];
  return wr_sizeclass_coarse[(size + 255) / 256];
}

/* Bytes in a block of `class`, which is not an aligned one. */
WR_INLINE size_t wr_sizeclass_common_block(unsigned class) {
  if (class < 8)
    return (size_t)(class + 1) * 16;
  return (size_t)(class % 4 + 5) << (class / 4 + 3);
}

/* Bytes in a block of `class`. */
WR_INLINE size_t wr_sizeclass_block(unsigned class) {
  if (class >= WR_SIZECLASS_ALIGNED)
    return (size_t)4096 << (class - WR_SIZECLASS_ALIGNED);
  return wr_sizeclass_common_block(class);
}

/*
 * Processors copy with one instruction (`rep movsb`) what is longer than about 2 KiB, and some are
 * up to thirty times as slow at it when the target's place in its page is a little behind the
 * source's: which it is when a header stands before what is copied from one block that begins with
 * a page to another. So blocks over 2 KiB do not begin where their neighbours do: in slabs of units
 * of 64 KiB, which are not short of memory, they lie so many bytes apart. Not those of the aligned
 * classes.
 */
#define WR_SIZECLASS_SPACING ((size_t)64)

#define WR_SIZECLASS_SPACED 24 /* the first class of blocks over 2 KiB */

/* The bytes between two blocks of `class` in slabs of units of 1 << `shift` bytes. */
WR_INLINE size_t wr_sizeclass_spacing(unsigned class, unsigned shift) {
  bool spaced = class >= WR_SIZECLASS_SPACED && class < WR_SIZECLASS_ALIGNED && shift >= 16;
  return spaced ? WR_SIZECLASS_SPACING : 0;
}

/* The smallest class for `size` whose blocks all lie at multiples of `alignment`, in slabs of units
 * of 1 << `shift` bytes; both are at most WR_BLOCK_MAX, and alignment is a power of two. */
unsigned wr_sizeclass_aligned(size_t size, size_t alignment, unsigned shift);

/*
 * Whether blocks of the class `host` may serve the smaller class `guest` (heap.h): if they are at
 * most twice as large and aligned at least as well. Of blocks over 2 KiB none shares a page with
 * two others, so there is nothing to be gained.
 */
#define WR_SIZECLASS_HOST_MAX ((size_t)2 << 10)

WR_INLINE bool wr_sizeclass_may_host(unsigned host, unsigned guest) {
  size_t block = wr_sizeclass_block(host), own = wr_sizeclass_block(guest);
  return block <= WR_SIZECLASS_HOST_MAX && block <= 2 * own && (block & -block) >= (own & -own);
}

/* For wr_sizeclass_units, with units of less than 64 KiB. */
unsigned wr_sizeclass_small_units(size_t block, unsigned shift);

/* Units of 1 << `shift` bytes in a slab of `class`, when memory is not short: for those of 64 KiB,
 * seven blocks or more; for smaller ones, where memory is always short, as few as lose no more than
 * an eighth of the slab behind the last block. */
WR_INLINE unsigned wr_sizeclass_units(unsigned class, unsigned shift) {
  size_t block = wr_sizeclass_block(class);
  if (WR_UNLIKELY(shift < 16))
    return wr_sizeclass_small_units(block, shift);
  return block <= (size_t)8 << 10 ? 1 : block <= (size_t)32 << 10 ? 4 : 8;
}

#endif
