/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Size classes: the tables from size to class, and the search for aligned ones. Constant; no lock.
 */
#include "sizeclass.h"

#define LOG(n) (31 - __builtin_clz((unsigned)(n)))
/* The class of a size of at least 1, as a constant; (n) | 2 has the right logarithm from 2 up. */
#define OF(size) \
  ((size) <= 128 \
       ? ((size)-1) / 16 \
       : (LOG(((size)-1) | 2) - 7) * 4 + 4 + (((size)-1) >> (LOG(((size)-1) | 128) - 2)))
#define OF4(size, step) \
  OF(size), OF((size) + (step)), OF((size) + 2 * (step)), OF((size) + 3 * (step))
#define OF16(size, step) \
  OF4(size, step), OF4((size) + 4 * (step), step), OF4((size) + 8 * (step), step), \
      OF4((size) + 12 * (step), step)
#define OF64(size, step) \
  OF16(size, step), OF16((size) + 16 * (step), step), OF16((size) + 32 * (step), step), \
      OF16((size) + 48 * (step), step)

const uint8_t wr_sizeclass_fine[WR_SIZECLASS_FINE_MAX / 16 + 1] = {0, OF64(16, 16)};

const uint8_t wr_sizeclass_coarse[WR_BLOCK_MAX / 256 + 1] = {
    0, OF64(1 << 8, 1 << 8), OF64(65 << 8, 1 << 8), OF64(129 << 8, 1 << 8), OF64(193 << 8, 1 << 8),
};

unsigned wr_sizeclass_aligned(size_t size, size_t alignment, unsigned shift) {
  size_t least = wr_bits_max(size, alignment);
  unsigned class = wr_sizeclass_of(least);
  /* Ends at the latest at the largest common class, a multiple of every alignment that is allowed.
   */
  while ((wr_sizeclass_common_block(class) & (alignment - 1)) != 0)
    class ++;
  if (alignment <= WR_SIZECLASS_SPACING || wr_sizeclass_spacing(class, shift) == 0)
    return class;
  class = WR_SIZECLASS_ALIGNED;
  while (wr_sizeclass_block(class) < least)
    class ++;
  return class;
}

unsigned wr_sizeclass_small_units(size_t block, unsigned shift) {
  size_t length = 0;
  /* Ends at the latest with eight blocks, behind which less than one more is left. */
  do
    length += (size_t)1 << shift;
  while (length < block || length % block > length / 8);
  return (unsigned)(length >> shift);
}
