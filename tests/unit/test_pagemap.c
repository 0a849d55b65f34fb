/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page map: finds what was recorded and nothing else, at the edges of its nodes, without memory
 * for a node, and while other threads make the same nodes.
 */
#include "pagemap.h"

#include <pthread.h>
#include <string.h>

#include "fake.h"
#include "unit.h"

/* What a leaf and a middle node stand for. */
#define LEAF (WR_UNIT << WR_PAGEMAP_LEAF_BITS)
#define MIDDLE (LEAF << WR_PAGEMAP_MIDDLE_BITS)
/* Addresses that nothing is at: the map does not look. */
#define SOMEWHERE ((uintptr_t)5 << 40)

static struct wr_source source;
static struct wr_meta meta;

static void begin(void) {
  memset(&source, 0, sizeof source);
  memset(&meta, 0, sizeof meta);
  fake_begin(4096);
  fake_source(&source);
  meta.source = &source;
}

static struct wr_span *span(uintptr_t number) {
  return (struct wr_span *)(number << 8);
}

static struct wr_span *find(uintptr_t address) {
  return wr_pagemap_find((void *)address);
}

START_TEST(nothing_is_found_where_nothing_is) {
  int local;
  ck_assert_ptr_null(wr_pagemap_find(NULL));
  ck_assert_ptr_null(wr_pagemap_find(&local));
  ck_assert_ptr_null(find(SOMEWHERE));
  ck_assert_ptr_null(find(UINTPTR_MAX));
}
END_TEST

START_TEST(every_byte_of_a_unit_leads_to_its_span) {
  begin();
  ck_assert(wr_pagemap_cover(&meta, (void *)SOMEWHERE, 4 * WR_UNIT));
  ck_assert_ptr_null(find(SOMEWHERE));
  wr_pagemap_set((void *)(SOMEWHERE + WR_UNIT), 2 * WR_UNIT, span(1));
  for (uintptr_t at = 0; at < 4 * WR_UNIT; at += 1021)
    ck_assert_ptr_eq(find(SOMEWHERE + at), at >= WR_UNIT && at < 3 * WR_UNIT ? span(1) : NULL);
  ck_assert_ptr_null(find(SOMEWHERE + WR_UNIT - 1));
  ck_assert_ptr_eq(find(SOMEWHERE + 3 * WR_UNIT - 1), span(1));
  ck_assert_ptr_null(find(SOMEWHERE + 3 * WR_UNIT));
  wr_pagemap_set((void *)(SOMEWHERE + WR_UNIT), WR_UNIT, NULL);
  ck_assert_ptr_null(find(SOMEWHERE + WR_UNIT));
  ck_assert_ptr_eq(find(SOMEWHERE + 2 * WR_UNIT), span(1));
}
END_TEST

START_TEST(ranges_cross_nodes) {
  static const uintptr_t starts[] = {
      SOMEWHERE + LEAF - WR_UNIT,
      SOMEWHERE + 2 * MIDDLE - WR_UNIT,
      SOMEWHERE + 4 * MIDDLE - LEAF - WR_UNIT,
  };
  begin();
  for (uintptr_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
    size_t length = 2 * LEAF + 3 * WR_UNIT;
    ck_assert(wr_pagemap_cover(&meta, (void *)starts[i], length));
    wr_pagemap_set((void *)starts[i], length, span(i + 1));
    for (size_t at = 0; at < length; at += WR_UNIT)
      ck_assert_ptr_eq(find(starts[i] + at), span(i + 1));
    ck_assert_ptr_null(find(starts[i] - WR_UNIT));
    ck_assert_ptr_null(find(starts[i] + length));
  }
}
END_TEST

START_TEST(covering_again_takes_no_memory) {
  size_t before;
  begin();
  /* The first has its leaf in static memory, and no node leads to it. */
  ck_assert(wr_pagemap_cover(&meta, (void *)(SOMEWHERE + 8 * LEAF), LEAF));
  ck_assert_uint_eq(wr_counter_read(&meta.used), 0);
  ck_assert(wr_pagemap_cover(&meta, (void *)SOMEWHERE, LEAF));
  before = wr_counter_read(&meta.used);
  ck_assert_uint_gt(before, 0);
  ck_assert(wr_pagemap_cover(&meta, (void *)SOMEWHERE, LEAF));
  ck_assert(wr_pagemap_cover(&meta, (void *)(SOMEWHERE + 5 * WR_UNIT), WR_UNIT));
  ck_assert_uint_eq(wr_counter_read(&meta.used), before);
}
END_TEST

#if UINTPTR_MAX > UINT32_MAX
START_TEST(addresses_above_the_48th_bit) {
  uintptr_t top = (uintptr_t)1 << 48;
  begin();
  ck_assert(wr_pagemap_cover(&meta, (void *)SOMEWHERE, WR_UNIT));
  ck_assert(wr_pagemap_cover(&meta, (void *)(top - WR_UNIT), WR_UNIT));
  ck_assert(!wr_pagemap_cover(&meta, (void *)(top - WR_UNIT), WR_UNIT + 1));
  ck_assert(!wr_pagemap_cover(&meta, (void *)top, WR_UNIT));
  ck_assert(!wr_pagemap_cover(&meta, (void *)(UINTPTR_MAX - WR_UNIT + 1), WR_UNIT));
  wr_pagemap_set((void *)(top - WR_UNIT), WR_UNIT, span(3));
  ck_assert_ptr_eq(find(top - 1), span(3));
  /* What the processor would take for another address is not looked at. */
  ck_assert_ptr_eq(find((top - 1) | (uintptr_t)0xab << 56), span(3));
}
END_TEST
#endif

START_TEST(without_memory_for_a_node) {
  size_t n;
  for (n = 1; n < 20; n++) {
    uintptr_t at = SOMEWHERE + n * 16 * MIDDLE;
    bool covered;
    begin();
    fake_fail(FAKE_MAP, n, 1);
    covered = wr_pagemap_cover(&meta, (void *)at, 9 * LEAF);
    if (!fake_failed())
      break;
    ck_assert(!covered);
    ck_assert_ptr_null(find(at + 8 * LEAF));
    ck_assert(wr_pagemap_cover(&meta, (void *)at, 9 * LEAF));
    wr_pagemap_set((void *)(at + 8 * LEAF), WR_UNIT, span(n));
    ck_assert_ptr_eq(find(at + 8 * LEAF), span(n));
  }
  ck_assert_uint_gt(n, 2);
  ck_assert_uint_lt(n, 20);
}
END_TEST

#define THREADS 4
#define RANGES 64

static _Atomic(int) waiting;

static void *cover_in_thread(void *argument) {
  uintptr_t number = (uintptr_t)argument;
  uintptr_t good = 1;
  atomic_fetch_add(&waiting, 1);
  while (atomic_load(&waiting) < THREADS)
    wr_os_yield();
  for (uintptr_t i = 0; i < RANGES; i++) {
    uintptr_t at = SOMEWHERE + i * LEAF + number * WR_UNIT;
    if (!wr_pagemap_cover(&meta, (void *)at, WR_UNIT))
      return NULL;
    wr_pagemap_set((void *)at, WR_UNIT, span(i * THREADS + number + 1));
    good &= find(at) == span(i * THREADS + number + 1);
  }
  return (void *)good;
}

START_TEST(threads_make_the_same_nodes) {
  pthread_t thread[THREADS];
  begin();
  for (uintptr_t i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, cover_in_thread, (void *)i), 0);
  for (int i = 0; i < THREADS; i++) {
    void *good = NULL;
    pthread_join(thread[i], &good);
    ck_assert_ptr_nonnull(good);
  }
  for (uintptr_t i = 0; i < RANGES; i++)
    for (uintptr_t number = 0; number < THREADS; number++)
      ck_assert_ptr_eq(find(SOMEWHERE + i * LEAF + number * WR_UNIT),
                       span(i * THREADS + number + 1));
}
END_TEST

/* Each in a process of its own: the range that is covered first is found in its own way. */
static void cover_first(uintptr_t first) {
  static const uintptr_t ranges[] = {0x4a80000, LEAF + 0x70000, 2 * LEAF, SOMEWHERE};
  begin();
  ck_assert(wr_pagemap_cover(&meta, (void *)first, 2 * WR_UNIT));
  wr_pagemap_set((void *)first, 2 * WR_UNIT, span(100));
  ck_assert_ptr_null(find(first - 1));
  ck_assert_ptr_eq(find(first + 2 * WR_UNIT - 1), span(100));
  ck_assert_ptr_null(find(first + 2 * WR_UNIT));
  for (uintptr_t i = 0; i < 4; i++) {
    uintptr_t at = ranges[i] + 16 * WR_UNIT;
    ck_assert_ptr_null(find(at));
    ck_assert(wr_pagemap_cover(&meta, (void *)at, WR_UNIT));
    ck_assert_ptr_null(find(at));
    wr_pagemap_set((void *)at, WR_UNIT, span(i + 1));
  }
  for (uintptr_t i = 0; i < 4; i++)
    ck_assert_ptr_eq(find(ranges[i] + 16 * WR_UNIT), span(i + 1));
  ck_assert_ptr_eq(find(first), span(100));
}

START_TEST(the_first_range_may_be_the_lowest) {
  cover_first(0x4a80000);
}
END_TEST

START_TEST(the_first_range_may_be_any_other) {
  cover_first(LEAF + 0x70000);
}
END_TEST

START_TEST(a_range_has_a_map_of_its_own) {
  enum { UNITS = 37 };
  static _Atomic(struct wr_span *) entry[UNITS];
  for (unsigned shift = 12; shift <= 16; shift++) {
    struct wr_pagemap_range range = {(char *)(uintptr_t)0x7000000, (size_t)UNITS << shift, shift,
                                     entry};
    size_t unit = (size_t)1 << shift;
    memset(entry, 0, sizeof entry);
    ck_assert(!wr_pagemap_range_holds(&range, range.base - 1));
    ck_assert(!wr_pagemap_range_holds(&range, range.base + range.length));
    wr_pagemap_range_set(&range, range.base + 3 * unit, 5 * unit, (struct wr_span *)128);
    for (size_t at = 0; at < range.length; at += unit / 4) {
      bool set = at >= 3 * unit && at < 8 * unit;
      ck_assert(wr_pagemap_range_holds(&range, range.base + at));
      ck_assert_ptr_eq(wr_pagemap_range_find(&range, range.base + at),
                       set ? (struct wr_span *)128 : NULL);
    }
  }
}
END_TEST

#if UINTPTR_MAX > UINT32_MAX
UNIT_SUITE(pagemap, nothing_is_found_where_nothing_is, every_byte_of_a_unit_leads_to_its_span,
           ranges_cross_nodes, covering_again_takes_no_memory, addresses_above_the_48th_bit,
           without_memory_for_a_node, threads_make_the_same_nodes,
           the_first_range_may_be_the_lowest, the_first_range_may_be_any_other,
           a_range_has_a_map_of_its_own)
#else
UNIT_SUITE(pagemap, nothing_is_found_where_nothing_is, without_memory_for_a_node,
           a_range_has_a_map_of_its_own)
#endif
