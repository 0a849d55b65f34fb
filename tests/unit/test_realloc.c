/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing sizes: contents, what stays in place, and what happens without memory.
 */
#include "realloc.h"

#include <errno.h>
#include <string.h>

#include "fake.h"
#include "unit.h"
#include "weir.h"

#define MIB ((size_t)1 << 20)

static void fill(unsigned char *block, size_t from, size_t to) {
  for (size_t i = from; i < to; i++)
    block[i] = (unsigned char)(i * 131 >> 3);
}

static void expect_filled(const unsigned char *block, size_t to) {
  for (size_t i = 0; i < to; i++)
    if (block[i] != (unsigned char)(i * 131 >> 3))
      ck_abort_msg("byte %zu of %zu is %u", i, to, block[i]);
}

START_TEST(contents_are_kept_from_any_size_to_any) {
  static const size_t sizes[] = {1,     15,    16,    17,    100,    1000,   4096, 5000,
                                 32768, 65536, 65537, 70000, 131072, 200000, MIB,  3 * MIB};
  enum { SIZES = sizeof sizes / sizeof sizes[0] };
  for (size_t from = 0; from < SIZES; from++)
    for (size_t to = 0; to < SIZES; to++) {
      unsigned char *block = weir_malloc(sizes[from]);
      size_t both = wr_bits_min(sizes[from], sizes[to]);
      fill(block, 0, sizes[from]);
      block = weir_realloc(block, sizes[to]);
      ck_assert_ptr_nonnull(block);
      ck_assert_uint_eq((uintptr_t)block % 16, 0);
      ck_assert_uint_ge(weir_usable_size(block), sizes[to]);
      expect_filled(block, both);
      fill(block, both, sizes[to]);
      weir_free(block);
    }
}
END_TEST

START_TEST(random_sizes) {
  for (uint64_t seed = 1; seed <= 5; seed++) {
    uint64_t state = seed;
    unsigned char *block = NULL;
    size_t size = 0;
    for (int step = 0; step < 300; step++) {
      size_t next = 1 + unit_below(&state, (size_t)1 << (4 + unit_below(&state, 16)));
      block = step % 2 == 0 ? weir_realloc(block, next) : weir_reallocarray(block, next, 1);
      ck_assert_ptr_nonnull(block);
      expect_filled(block, wr_bits_min(size, next));
      fill(block, 0, next);
      size = next;
    }
    weir_free(block);
  }
}
END_TEST

START_TEST(null_and_nothing) {
  weir_stats_t stats;
  void *block = weir_realloc(NULL, 100);
  ck_assert_ptr_nonnull(block);
  ck_assert_uint_ge(weir_usable_size(block), 100);
  ck_assert_ptr_null(weir_realloc(block, 0));
  weir_stats(&stats, sizeof stats);
  ck_assert_uint_eq(stats.live, 0);
  block = weir_realloc(NULL, 0);
  ck_assert_ptr_nonnull(block);
  ck_assert_ptr_null(weir_reallocarray(block, 0, 10));
  weir_stats(&stats, sizeof stats);
  ck_assert_uint_eq(stats.live, 0);
}
END_TEST

START_TEST(small_blocks_stay_where_they_fit) {
  char *block = weir_malloc(1000);
  size_t usable = weir_usable_size(block);
  for (size_t size = usable / 2; size <= usable; size++)
    ck_assert_ptr_eq(weir_realloc(block, size), block);
  weir_free(block);
}
END_TEST

START_TEST(payloads_grow_in_place_within_their_range) {
  /* Seventeen units are a span of eighteen. */
  static const size_t sizes[] = {17 * 65536 + 100, 18 * 65536 - 4096, 10 * 65536, 18 * 65536 - 896};
  size_t page = wr_os_page_size();
  char *block = weir_malloc(17 * 65536 - 5000);
  uintptr_t first = (uintptr_t)block;
  for (int i = 0; i < 4; i++) {
    block = weir_realloc(block, sizes[i]);
    ck_assert_uint_eq((uintptr_t)block, first);
    ck_assert_uint_eq(first % page + weir_usable_size(block),
                      wr_bits_up(first % page + sizes[i], page));
    block[sizes[i] - 1] = 1;
  }
  weir_free(block);
}
END_TEST

/* A payload begins behind a part of what its last page leaves over. When it grows by that, it needs
 * no page more than a fresh one would, and can have none where the memory of its arena is used up.
 */
START_TEST(within_its_pages_a_payload_always_grows) {
  for (size_t pages = 17; pages < 300; pages += 47)
    for (size_t left = 64; left < 4096; left += 500) {
      weir_arena_options_t options = WEIR_ARENA_OPTIONS_INIT;
      size_t size = pages * 4096 - left, committed;
      weir_arena_t *limited;
      unsigned char *block;
      options.limit = 2 * MIB;
      limited = weir_arena_create(&options);
      ck_assert_ptr_nonnull(limited);
      block = weir_arena_alloc(limited, size);
      fill(block, 0, size);
      while (weir_arena_alloc(limited, 65537) != NULL || weir_arena_alloc(limited, 1000) != NULL)
        continue;
      committed = wr_extent_committed(&limited->spans);
      block = weir_realloc(block, pages * 4096);
      ck_assert_ptr_nonnull(block);
      expect_filled(block, size);
      fill(block, 0, pages * 4096);
      ck_assert_uint_eq(wr_extent_committed(&limited->spans), committed);
      ck_assert_uint_eq(weir_usable_size(block), pages * 4096);
      wr_span_check(&limited->spans);
      weir_free(block);
      weir_arena_destroy(limited);
    }
}
END_TEST

START_TEST(within_its_range_a_payload_is_not_copied_elsewhere) {
  for (size_t left = 64; left < 4096; left += 500) {
    unsigned char *block = weir_malloc(MIB - left), *behind = weir_malloc(MIB - left);
    struct wr_span *span = wr_pagemap_find(block);
    fill(block, 0, MIB - left);
    block = weir_realloc(block, MIB);
    ck_assert_ptr_nonnull(block);
    ck_assert_ptr_eq(wr_pagemap_find(block), span);
    expect_filled(block, MIB - left);
    fill(block, 0, MIB);
    weir_free(behind);
    weir_free(block);
  }
}
END_TEST

START_TEST(much_smaller_blocks_give_their_memory_back) {
  static const size_t sizes[] = {64, 5000, 65536, 100000, 5 * MIB};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    weir_stats_t stats;
    char *block = weir_malloc(sizes[i]);
    block = weir_realloc(block, 10);
    ck_assert_ptr_nonnull(block);
    weir_stats(&stats, sizeof stats);
    ck_assert_uint_eq(stats.live, weir_usable_size(block));
    ck_assert_uint_eq(stats.live, 16);
    weir_free(block);
  }
}
END_TEST

/* As what a stream is read into is cut to what has come: nothing is copied, and what is behind it
 * is free, and there again the next time. */
START_TEST(a_payload_shrinks_to_a_payload_where_it_is) {
  weir_stats_t before, after;
  for (int turn = 0; turn < 4; turn++) {
    char *block = weir_malloc(16 * MIB), *moved;
    ck_assert_ptr_nonnull(block);
    memset(block, turn + 1, 2 * MIB);
    moved = weir_realloc(block, 2 * MIB);
    ck_assert_ptr_eq(moved, block);
    ck_assert_uint_lt(weir_usable_size(block), 2 * MIB + 8192);
    ck_assert_int_eq(block[2 * MIB - 1], turn + 1);
    weir_stats(&after, sizeof after);
    ck_assert_uint_ge(after.retained, 13 * MIB);
    weir_free(block);
    if (turn == 0)
      before = after;
  }
  ck_assert_uint_eq(after.fresh_commits, before.fresh_commits);
  ck_assert_uint_eq(after.reserved, before.reserved);
}
END_TEST

START_TEST(aligned_blocks_keep_their_contents) {
  for (size_t alignment = 32; alignment <= 8 * MIB; alignment *= 2) {
    unsigned char *block = weir_aligned_alloc(alignment, 1000);
    fill(block, 0, 1000);
    block = weir_realloc(block, 100000);
    expect_filled(block, 1000);
    block = weir_realloc(block, 300);
    expect_filled(block, 300);
    weir_free(block);
    block = weir_aligned_alloc(alignment, 300000);
    fill(block, 0, 300000);
    block = weir_realloc(block, 310000);
    expect_filled(block, 300000);
    block = weir_realloc(block, 5 * MIB);
    expect_filled(block, 300000);
    weir_free(block);
  }
}
END_TEST

START_TEST(impossible_sizes_leave_the_block) {
  volatile size_t huge = (size_t)PTRDIFF_MAX + 1, half = SIZE_MAX / 2;
  unsigned char *block = weir_malloc(1000);
  fill(block, 0, 1000);
  errno = 0;
  ck_assert_ptr_null(weir_realloc(block, huge));
  ck_assert_int_eq(errno, ENOMEM);
  errno = 0;
  ck_assert_ptr_null(weir_reallocarray(block, half, 3));
  ck_assert_int_eq(errno, ENOMEM);
  expect_filled(block, 1000);
  weir_free(block);
}
END_TEST

START_TEST(without_memory_the_block_is_as_it_was) {
  unsigned char *block, *large;
  weir_stats_t stats;
  fake_default();
  block = weir_malloc(60000);
  large = weir_malloc(MIB);
  fill(block, 0, 60000);
  fill(large, 0, MIB);
  fake_fail(FAKE_MAP, 1, SIZE_MAX);
  errno = 0;
  ck_assert_ptr_null(weir_realloc(block, 8 * MIB));
  ck_assert_int_eq(errno, ENOMEM);
  ck_assert_ptr_null(weir_realloc(large, 8 * MIB));
  expect_filled(block, 60000);
  expect_filled(large, MIB);
  weir_stats(&stats, sizeof stats);
  ck_assert_uint_eq(stats.out_of_memory, 2);
  weir_free(block);
  weir_free(large);
}
END_TEST

START_TEST(without_memory_a_smaller_block_may_stay_large) {
  static unsigned char *filler[100000];
  unsigned char *block, *small;
  weir_stats_t stats;
  size_t count = 0;
  uint64_t refused;
  fake_default();
  block = weir_malloc(MIB);
  fill(block, 0, MIB);
  fake_fail(FAKE_MAP, 1, SIZE_MAX);
  /* Until nothing of this size is left. */
  while (count < 100000 && (filler[count] = weir_malloc(3000)) != NULL)
    count++;
  ck_assert_uint_lt(count, 100000);
  weir_stats(&stats, sizeof stats);
  refused = stats.out_of_memory;
  errno = 0;
  small = weir_realloc(block, 3000);
  ck_assert_ptr_eq(small, block);
  ck_assert_int_eq(errno, 0);
  expect_filled(small, 3000);
  /* Nobody was answered with NULL. */
  weir_stats(&stats, sizeof stats);
  ck_assert_uint_eq(stats.out_of_memory, refused);
  weir_free(small);
}
END_TEST

START_TEST(small_blocks_grow_by_a_quarter_at_least) {
  for (size_t size = 16; size <= 40000; size *= 2) {
    char *block = weir_malloc(size);
    size_t usable = weir_usable_size(block), grown;
    block = weir_realloc(block, usable + 1);
    grown = weir_usable_size(block);
    ck_assert_uint_ge(grown, usable + usable / 4);
    ck_assert_uint_le(grown, 2 * usable);
    weir_free(block);
  }
}
END_TEST

START_TEST(large_blocks_are_moved_into_memory_that_is_not_resident) {
  unsigned char *block, *other;
  fake_default();
  block = weir_malloc(MIB);
  other = weir_malloc(MIB);
  fill(block, 0, MIB);
  fake_touch(other, MIB);
  fake_forget();
  block = weir_realloc(block, 4 * MIB);
  ck_assert_uint_eq(fake_calls(FAKE_MOVE), 1);
  expect_filled(block, MIB);
  weir_free(block);
  /* Into memory that is, they are copied. */
  fake_forget();
  other = weir_realloc(other, 4 * MIB);
  ck_assert_uint_eq(fake_calls(FAKE_MOVE), 0);
  ck_assert_int_eq(other[MIB - 1], 0xa5);
  weir_free(other);
}
END_TEST

static void copy_after_a_move_that_fails(bool lost) {
  unsigned char *block, *other;
  weir_stats_t stats;
  fake_default();
  block = weir_malloc(MIB);
  other = weir_malloc(MIB);
  fill(block, 0, MIB);
  fake.loses = lost;
  fake_fail(FAKE_MOVE, 1, 1);
  block = weir_realloc(block, 4 * MIB);
  ck_assert_uint_eq(fake_calls(FAKE_MOVE), 1);
  expect_filled(block, MIB);
  weir_free(block);
  weir_free(other);
  weir_stats(&stats, sizeof stats);
  ck_assert_uint_eq(stats.live, 0);
}

START_TEST(where_pages_cannot_move_they_are_copied) {
  copy_after_a_move_that_fails(false);
}
END_TEST

START_TEST(where_the_target_of_a_move_is_lost_there_is_another) {
  copy_after_a_move_that_fails(true);
}
END_TEST

START_TEST(the_smallest_block_stays_whatever_it_gets_smaller_to) {
  for (size_t size = 1; size <= 16; size++) {
    void *block = weir_malloc(16);
    ck_assert_ptr_eq(weir_realloc(block, size), block);
    ck_assert_ptr_eq(weir_realloc(block, 16), block);
  }
}
END_TEST

START_TEST(blocks_that_stand_in_for_smaller_ones_stay) {
  static const size_t sizes[][2] = {{64, 20}, {64, 33}, {256, 113}, {256, 128}, {2048, 1025}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    void *host = weir_malloc(sizes[i][0]), *block = weir_malloc(sizes[i][1]);
    ck_assert_uint_eq(weir_usable_size(block), sizes[i][0]);
    for (int k = 0; k < 3; k++)
      ck_assert_ptr_eq(weir_realloc(block, sizes[i][1]), block);
    weir_free(block);
    weir_free(host);
  }
}
END_TEST

UNIT_SUITE(realloc, blocks_that_stand_in_for_smaller_ones_stay,
           the_smallest_block_stays_whatever_it_gets_smaller_to,
           contents_are_kept_from_any_size_to_any, random_sizes, null_and_nothing,
           small_blocks_stay_where_they_fit, small_blocks_grow_by_a_quarter_at_least,
           large_blocks_are_moved_into_memory_that_is_not_resident,
           where_pages_cannot_move_they_are_copied,
           where_the_target_of_a_move_is_lost_there_is_another,
           payloads_grow_in_place_within_their_range, within_its_pages_a_payload_always_grows,
           within_its_range_a_payload_is_not_copied_elsewhere,
           much_smaller_blocks_give_their_memory_back, a_payload_shrinks_to_a_payload_where_it_is,
           aligned_blocks_keep_their_contents, impossible_sizes_leave_the_block,
           without_memory_the_block_is_as_it_was, without_memory_a_smaller_block_may_stay_large)
