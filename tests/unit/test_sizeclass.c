/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Size classes: every size, every class, every alignment.
 */
#include "sizeclass.h"

#include "unit.h"

START_TEST(blocks_get_larger_by_a_fourth_of_a_doubling) {
  size_t block = 0;
  for (unsigned class = 0; class < WR_SIZECLASS_ALIGNED; class ++) {
    size_t step = block < 128 ? 16 : ((size_t)1 << wr_bits_log2(block)) / 4;
    ck_assert_uint_eq(wr_sizeclass_block(class), block + step);
    block += step;
  }
  ck_assert_uint_eq(block, WR_BLOCK_MAX);
  ck_assert_uint_eq(wr_sizeclass_block(0), WR_BLOCK_MIN);
}
END_TEST

START_TEST(every_size_gets_the_smallest_block_that_holds_it) {
  unsigned class = 0;
  for (size_t size = 0; size <= WR_BLOCK_MAX; size++) {
    if (size > wr_sizeclass_block(class))
      class ++;
    if (wr_sizeclass_of(size) != class)
      ck_abort_msg("size %zu: class %u, not %u", size, wr_sizeclass_of(size), class);
  }
  ck_assert_uint_eq(class, WR_SIZECLASS_ALIGNED - 1);
}
END_TEST

START_TEST(aligned_classes_are_the_powers_of_two_from_4_KiB) {
  size_t block = 4096;
  for (unsigned class = WR_SIZECLASS_ALIGNED; class < WR_CLASSES; class ++, block *= 2)
    ck_assert_uint_eq(wr_sizeclass_block(class), block);
  ck_assert_uint_eq(block, 2 * WR_BLOCK_MAX);
}
END_TEST

/* Two blocks of a slab whose places in their pages are 1 to 32 bytes apart are copied slowly, and
 * so are two at the same place once a header of that length stands before what is copied. */
START_TEST(neighbours_of_over_2_KiB_are_a_cache_line_further_apart) {
  for (unsigned class = 0; class < WR_CLASSES; class ++)
    for (unsigned shift = 12; shift <= 16; shift++) {
      bool spaced = shift == 16 && class < WR_SIZECLASS_ALIGNED && wr_sizeclass_block(class) > 2048;
      ck_assert_uint_eq(wr_sizeclass_spacing(class, shift), spaced ? 64 : 0);
    }
}
END_TEST

START_TEST(at_most_a_fifth_is_lost) {
  for (size_t size = 113; size <= WR_BLOCK_MAX; size++) {
    size_t block = wr_sizeclass_block(wr_sizeclass_of(size));
    if ((block - size) * 5 > block)
      ck_abort_msg("size %zu: block %zu", size, block);
  }
}
END_TEST

/* Whether every block of a slab of the class lies at a multiple of `alignment`. */
static bool is_aligned(unsigned class, size_t alignment, unsigned shift) {
  size_t spacing = wr_sizeclass_spacing(class, shift);
  return wr_sizeclass_block(class) % alignment == 0 && spacing % alignment == 0;
}

START_TEST(every_alignment_gets_the_smallest_block_that_is_a_multiple) {
  for (unsigned shift = 12; shift <= 16; shift++)
    for (size_t alignment = 1; alignment <= WR_BLOCK_MAX; alignment *= 2)
      for (size_t size = 0; size <= WR_BLOCK_MAX; size += size < 2048 ? 1 : 61) {
        unsigned got = wr_sizeclass_aligned(size, alignment, shift), want = WR_CLASSES;
        for (unsigned class = WR_CLASSES; class -- > 0;)
          if (wr_sizeclass_block(class) >= size && is_aligned(class, alignment, shift) &&
              (want == WR_CLASSES || wr_sizeclass_block(class) <= wr_sizeclass_block(want)))
            want = class;
        if (got != want)
          ck_abort_msg("size %zu, alignment %zu: class %u, not %u", size, alignment, got, want);
      }
}
END_TEST

START_TEST(a_slab_has_seven_blocks_or_more) {
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    size_t bytes = (size_t)wr_sizeclass_units(class, 16) << 16;
    size_t count = bytes / (wr_sizeclass_block(class) + wr_sizeclass_spacing(class, 16));
    ck_assert_uint_ge(count, 7);
    /* As the use count of a slab has 16 bits, even with a span of twice the length. */
    ck_assert_uint_lt(2 * count, 65536);
    ck_assert_uint_eq(bytes, wr_sizeclass_block(class) <= 8192    ? 65536u
                             : wr_sizeclass_block(class) <= 32768 ? 4 * 65536u
                                                                  : 8 * 65536u);
  }
}
END_TEST

START_TEST(with_small_units_at_most_an_eighth_is_lost_behind_the_last_block) {
  for (unsigned shift = 12; shift < 16; shift++)
    for (unsigned class = 0; class < WR_CLASSES; class ++) {
      size_t block = wr_sizeclass_block(class), unit = (size_t)1 << shift;
      size_t units = wr_sizeclass_units(class, shift), bytes = units * unit;
      ck_assert_uint_ge(bytes, block);
      ck_assert_uint_le(bytes % block, bytes / 8);
      /* No fewer units would do. */
      for (size_t less = unit; less < bytes; less += unit)
        ck_assert(less < block || less % block > less / 8);
      ck_assert_uint_le(bytes, wr_bits_up(8 * block, unit));
    }
}
END_TEST

UNIT_SUITE(sizeclass, blocks_get_larger_by_a_fourth_of_a_doubling,
           every_size_gets_the_smallest_block_that_holds_it,
           aligned_classes_are_the_powers_of_two_from_4_KiB,
           neighbours_of_over_2_KiB_are_a_cache_line_further_apart, at_most_a_fifth_is_lost,
           every_alignment_gets_the_smallest_block_that_is_a_multiple,
           a_slab_has_seven_blocks_or_more,
           with_small_units_at_most_an_eighth_is_lost_behind_the_last_block)
