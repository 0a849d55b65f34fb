/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free address space: mapped, taken, cut, joined with every neighbour in every order, and unmapped;
 * the address space of an arena is always accounted for.
 */
#include "extent.h"

#include "fake.h"
#include "place.h"
#include "span.h"
#include "unit.h"

#define PIECES 6

static struct wr_spans *spans;

static void begin(void) {
  spans = &fake_arena(4096, SIZE_MAX)->spans;
  ck_assert(wr_extent_stock(spans));
}

static size_t mapped(void) {
  return wr_counter_read(&spans->mapped) >> WR_UNIT_SHIFT;
}

/* Takes `units` units, which must be a whole class and be there. */
static struct wr_span *take(size_t units) {
  size_t rounded;
  unsigned class = wr_extent_class(units, &rounded);
  struct wr_span *span;
  ck_assert_uint_eq(rounded, units);
  ck_assert(wr_extent_stock(spans));
  wr_lock_take(&spans->lock);
  span = wr_extent_take(spans, class, units);
  wr_lock_give(&spans->lock);
  ck_assert_ptr_nonnull(span);
  ck_assert_uint_eq(span->units, units);
  ck_assert_uint_eq(wr_extent_owner(span), WR_OWNER_LEAVING);
  return span;
}

static void give(struct wr_span *span) {
  wr_lock_take(&spans->lock);
  wr_extent_join(spans, span);
  wr_lock_give(&spans->lock);
  wr_span_check(spans);
}

/* How many free ranges there are. */
static size_t ranges(void) {
  size_t count = 0;
  for (unsigned class = 0; class < WR_RETAIN_CLASSES; class ++)
    for (struct wr_link *link = spans->bins[class].front; link != NULL; link = link->older)
      count++;
  return count;
}

START_TEST(what_is_mapped_is_free_and_whole) {
  begin();
  ck_assert(wr_extent_grow(spans, 1000, true));
  ck_assert_uint_ge(mapped(), 1000);
  ck_assert_uint_eq(ranges(), 1);
  wr_span_check(spans);
  give(take(896));
  ck_assert_uint_eq(ranges(), 1);
}
END_TEST

START_TEST(only_what_is_missing_is_mapped) {
  begin();
  ck_assert(wr_extent_grow(spans, 100, true));
  ck_assert_uint_eq(mapped(), 100);
  ck_assert(wr_extent_grow(spans, 160, false));
  ck_assert_uint_eq(mapped(), 160);
  ck_assert_uint_eq(ranges(), 1);
  (void)take(160);
}
END_TEST

/* Six neighbours, given back in each of 720 orders, become one range again. */
START_TEST(neighbours_are_joined_in_any_order) {
  begin();
  ck_assert(wr_extent_grow(spans, 64, true));
  for (unsigned number = 0; number < 720; number++) {
    struct wr_span *piece[PIECES];
    unsigned left = number;
    for (size_t i = 0; i < PIECES; i++)
      piece[i] = take(i + 1);
    for (unsigned remaining = PIECES; remaining > 0; remaining--) {
      unsigned at = left % remaining;
      left /= remaining;
      give(piece[at]);
      piece[at] = piece[remaining - 1];
    }
    ck_assert_uint_eq(ranges(), 1);
  }
  ck_assert_uint_eq(mapped(), 64);
}
END_TEST

START_TEST(a_cut_shares_out_what_is_touched_and_dirty) {
  for (size_t touched = 0; touched <= 8; touched++)
    for (size_t dirty = touched; dirty <= 8; dirty++)
      for (size_t at = 1; at < 8; at++) {
        struct wr_span *span, *rest;
        begin();
        ck_assert(wr_extent_grow(spans, 8, true));
        span = take(8);
        wr_counter_set(&span->touched, touched << WR_UNIT_SHIFT);
        span->dirty = dirty << WR_UNIT_SHIFT;
        wr_lock_take(&spans->lock);
        rest = wr_extent_cut(spans, span, at);
        wr_lock_give(&spans->lock);
        ck_assert_ptr_nonnull(rest);
        ck_assert_uint_eq(span->units, at);
        ck_assert_uint_eq(rest->units, 8 - at);
        ck_assert_ptr_eq(rest->base, span->base + wr_extent_length(span));
        ck_assert_uint_eq(wr_extent_touched(span) + wr_extent_touched(rest),
                          touched << WR_UNIT_SHIFT);
        ck_assert_uint_eq(span->dirty + rest->dirty, dirty << WR_UNIT_SHIFT);
        ck_assert_uint_le(span->dirty, wr_extent_length(span));
        ck_assert_ptr_eq(wr_pagemap_find(rest->base), rest);
      }
}
END_TEST

START_TEST(free_ranges_are_unmapped_from_a_length_on) {
  struct wr_span *large, *wall, *small;
  begin();
  ck_assert(wr_extent_grow(spans, 64, true));
  large = take(40);
  wall = take(1);
  small = take(23 - 1);
  give(large);
  give(small);
  wr_extent_unmap_free(spans, 36);
  ck_assert_uint_eq(mapped(), 24);
  ck_assert_uint_eq(fake_mapped() >= (size_t)24 << WR_UNIT_SHIFT, 1);
  wr_extent_unmap_free(spans, 1);
  ck_assert_uint_eq(mapped(), 1);
  ck_assert_uint_eq(ranges(), 0);
  give(wall);
  ck_assert_uint_eq(ranges(), 1);
}
END_TEST

/* When the system gives no more, what is free makes room for what is wanted. */
START_TEST(without_address_space_free_ranges_make_room) {
  struct wr_span *wall;
  begin();
  ck_assert(wr_extent_grow(spans, 64, true));
  (void)take(32);
  wall = take(1);
  fake_fail(FAKE_MAP, 1, 1);
  ck_assert(wr_extent_grow(spans, 128, true));
  ck_assert_uint_eq(mapped(), 33 + 128);
  ck_assert_ptr_eq(wr_pagemap_find(wall->base), wall);
  (void)take(128);
}
END_TEST

START_TEST(without_memory_nothing_is_lost) {
  for (size_t n = 1; n < 20; n++) {
    begin();
    fake_fail(FAKE_MAP, n, 3);
    for (int i = 0; i < 8; i++)
      if (wr_extent_stock(spans) && wr_extent_grow(spans, 16, true))
        give(take(16));
    wr_span_check(spans);
    ck_assert_uint_le(wr_counter_read(&spans->mapped), fake_mapped());
  }
}
END_TEST

/* A place that is lost each time would in the end leave none to the arenas that come after. */
START_TEST(what_comes_to_nothing_gives_its_place_back) {
  const size_t gibibyte = (size_t)1 << 30, zone = gibibyte / 4;
  for (int way = 0; way < 3; way++) {
    struct wr_meta none = {.source = NULL};
    uintptr_t inside;
    size_t before;
    begin();
    /* The first part of the page map is there without memory of its own. */
    ck_assert(wr_extent_grow(spans, 4, true));
    (void)take(4);
    before = mapped();
    none.source = spans->source;
    spans->map_meta = &none;
    spans->mortal = true;
    inside = wr_bits_up((uintptr_t)spans->end, gibibyte);
    wr_place_init((void *)inside);
    if (way == 0)
      /* There is memory for the range, but none for its part of the page map. */
      fake_fail(FAKE_MAP, 2, SIZE_MAX);
    if (way == 1)
      fake_fail(FAKE_MAP, 1, SIZE_MAX);
    if (way == 2) {
      spans->spare = (struct wr_list){NULL, NULL};
      wr_counter_set(&spans->spares, 0);
    }
    ck_assert(wr_extent_grow(spans, 100, true) == (way == 2));
    ck_assert_uint_eq(mapped(), before);
    ck_assert_ptr_eq(wr_place_take(zone), (void *)(inside + gibibyte - zone));
    wr_place_give((void *)(inside + gibibyte - zone), zone);
  }
}
END_TEST

UNIT_SUITE(extent, what_is_mapped_is_free_and_whole, only_what_is_missing_is_mapped,
           neighbours_are_joined_in_any_order, a_cut_shares_out_what_is_touched_and_dirty,
           free_ranges_are_unmapped_from_a_length_on, without_address_space_free_ranges_make_room,
           without_memory_nothing_is_lost, what_comes_to_nothing_gives_its_place_back)
