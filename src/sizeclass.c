/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Size classes: the table for small sizes, and the search for aligned ones. Constant; no lock.
 */
#include "sizeclass.h"

#define LOG(n) (31 - __builtin_clz((unsigned)(n)))
/* wr_sizeclass_of for 16 * units, as a constant. */
#define OF(units) \
  ((units) <= 1   ? 0 \
   : (units) <= 8 ? (units)-1 \
                  : (LOG((units)*16 - 1) - 7) * 4 + 4 + \
                        (((units)*16 - 1) >> (LOG((units)*16 - 1 + ((units) <= 1)) - 2)))
#define OF8(units) \
  OF((units)), OF((units) + 1), OF((units) + 2), OF((units) + 3), OF((units) + 4), \
      OF((units) + 5), OF((units) + 6), OF((units) + 7)

const uint8_t wr_sizeclass_table[WR_SIZECLASS_TABLE_MAX / 16 + 1] = {
    0, OF8(1), OF8(9), OF8(17), OF8(25), OF8(33), OF8(41), OF8(49), OF8(57),
};

unsigned wr_sizeclass_aligned(size_t size, size_t alignment) {
  unsigned class = wr_sizeclass_of(wr_bits_max(size, alignment));
  /* Ends at the latest at the largest class, a multiple of every alignment that is allowed. */
  while ((wr_sizeclass_block(class) & (alignment - 1)) != 0)
    class ++;
  return class;
}
