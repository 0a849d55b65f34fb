/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The zone in which arenas lie: no two ranges overlap, what is given back is used again, and it
 * lies in the gibibyte of the hint.
 */
#include "place.h"

#include <string.h>

#include "lock.h"
#include "unit.h"

#define GIB ((uintptr_t)1 << 30)
#define ZONE ((size_t)256 << 20)
#define UNIT ((size_t)65536)

START_TEST(without_a_hint_the_system_chooses) {
  wr_place_init(NULL);
  ck_assert_ptr_null(wr_place_take(UNIT));
  wr_place_give((void *)(uintptr_t)UNIT, UNIT);
}
END_TEST

START_TEST(the_zone_is_the_end_of_the_hints_gibibyte) {
  uintptr_t hint = 5 * GIB + 3 * UNIT;
  wr_place_init((void *)hint);
  ck_assert_ptr_eq(wr_place_take(ZONE), (void *)(6 * GIB - ZONE));
  ck_assert_ptr_null(wr_place_take(UNIT));
  wr_place_give((void *)(6 * GIB - ZONE), ZONE);
  ck_assert_ptr_null(wr_place_take(ZONE + UNIT));
  ck_assert_ptr_null(wr_place_take(0));
  /* What lies elsewhere is none of it. */
  wr_place_give((void *)(6 * GIB), GIB);
  wr_place_give((void *)(4 * GIB), UNIT);
  ck_assert_ptr_eq(wr_place_take(UNIT), (void *)(6 * GIB - ZONE));
}
END_TEST

START_TEST(a_range_that_would_lie_in_the_zone_lies_behind_it) {
  uintptr_t zone = 6 * GIB - ZONE;
  wr_place_init((void *)(5 * GIB));
  for (size_t length = UNIT; length <= 2 * GIB; length *= 2)
    for (uintptr_t at = 5 * GIB; at < 7 * GIB; at += 8 * UNIT) {
      bool meets = at < zone + ZONE && at + length > zone;
      ck_assert_ptr_eq(wr_place_around((void *)at, length), (void *)(meets ? 6 * GIB : at));
    }
  ck_assert_ptr_null(wr_place_around(NULL, UNIT));
  wr_place_init(NULL);
  ck_assert_ptr_eq(wr_place_around((void *)zone, UNIT), (void *)zone);
}
END_TEST

START_TEST(a_range_may_reach_into_the_zone_and_out_of_it) {
  uintptr_t base = 6 * GIB - ZONE;
  wr_place_init((void *)(5 * GIB));
  /* A run of mappings that have become neighbours goes as one. */
  for (int below = 0; below < 3; below++)
    for (int above = 0; above < 3; above++) {
      ck_assert_ptr_eq(wr_place_take(ZONE), (void *)base);
      wr_place_give((void *)(base - (size_t)below * UNIT), ((size_t)below + 1) * UNIT);
      ck_assert_ptr_eq(wr_place_take(UNIT), (void *)base);
      ck_assert_ptr_null(wr_place_take(UNIT));
      wr_place_give((void *)(base + ZONE - UNIT), ((size_t)above + 1) * UNIT);
      ck_assert_ptr_eq(wr_place_take(UNIT), (void *)(base + ZONE - UNIT));
      ck_assert_ptr_null(wr_place_take(UNIT));
      wr_place_give((void *)(base - (size_t)below * UNIT),
                    ZONE + ((size_t)below + (size_t)above) * UNIT);
    }
}
END_TEST

START_TEST(ranges_do_not_overlap_and_are_used_again) {
  enum { RANGES = 200 };
  static bool used[ZONE / UNIT];
  struct {
    uintptr_t at;
    size_t length;
  } range[RANGES] = {{0, 0}};
  uintptr_t base = 6 * GIB - ZONE;
  uint64_t seed = 9;
  wr_place_init((void *)(5 * GIB));
  for (int i = 0; i < 20000; i++) {
    size_t n = unit_below(&seed, RANGES);
    if (range[n].length > 0) {
      /* In two parts, as spans are unmapped. */
      size_t part = unit_below(&seed, range[n].length / UNIT) * UNIT;
      wr_place_give((void *)range[n].at, part);
      wr_place_give((void *)(range[n].at + part), range[n].length - part);
      memset(used + (range[n].at - base) / UNIT, 0, range[n].length / UNIT);
      range[n].length = 0;
    } else {
      size_t length = (1 + unit_below(&seed, unit_below(&seed, 8) == 0 ? 200 : 20)) * UNIT;
      size_t gap = 0, longest = 0;
      range[n].at = (uintptr_t)wr_place_take(length);
      for (size_t unit = 0; unit < ZONE / UNIT; unit++) {
        gap = used[unit] ? 0 : gap + 1;
        longest = gap > longest ? gap : longest;
      }
      ck_assert((range[n].at != 0) == (longest >= length / UNIT));
      if (range[n].at == 0)
        continue;
      range[n].length = length;
      ck_assert(range[n].at >= base && range[n].at + length <= base + ZONE);
      for (size_t unit = 0; unit < length / UNIT; unit++) {
        ck_assert(!used[(range[n].at - base) / UNIT + unit]);
        used[(range[n].at - base) / UNIT + unit] = true;
      }
    }
  }
}
END_TEST

START_TEST(its_lock_is_free_after_fork) {
  wr_place_init((void *)(5 * GIB));
  wr_lock_forking();
  wr_place_lock();
  wr_place_unlock();
  wr_lock_forked(false);
  ck_assert_ptr_nonnull(wr_place_take(UNIT));
  wr_lock_forking();
  wr_place_lock();
  wr_lock_forked(true);
  wr_place_forked();
  ck_assert_ptr_nonnull(wr_place_take(UNIT));
}
END_TEST

UNIT_SUITE(place, a_range_that_would_lie_in_the_zone_lies_behind_it,
           without_a_hint_the_system_chooses, the_zone_is_the_end_of_the_hints_gibibyte,
           a_range_may_reach_into_the_zone_and_out_of_it, ranges_do_not_overlap_and_are_used_again,
           its_lock_is_free_after_fork)
