/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans: classes, what a taker is served from, alignment, slabs, resizing, and the counts of it
 * all. The mark has test_settle.c, failures and random use have test_span_faults.c.
 */
#include "span.h"

#include <string.h>

#include "fake.h"
#include "unit.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static struct wr_spans *spans;
static struct wr_arena *arena;

static void begin(size_t page, size_t mark) {
  arena = fake_arena(page, mark);
  spans = &arena->spans;
}

static struct wr_span *take(size_t size) {
  return fake_take(spans, size);
}

static size_t retained(void) {
  return wr_counter_read(&spans->retain.total);
}

START_TEST(classes_are_eight_a_doubling) {
  size_t rounded, again, last = 0;
  for (size_t units = 1; units <= 70000; units++) {
    unsigned class = wr_extent_class(units, &rounded);
    if (rounded < units || rounded > units + units / 8 || class - last > 1 ||
        wr_extent_class(rounded, &again) != class || again != rounded)
      ck_abort_msg("%zu units: class %u of %zu", units, class, rounded);
    last = class;
  }
  ck_assert_uint_lt(wr_extent_class((2 * WR_SPAN_MAX) >> WR_UNIT_SHIFT, &rounded),
                    WR_RETAIN_CLASSES);
  ck_assert_uint_eq(rounded, (2 * WR_SPAN_MAX) >> WR_UNIT_SHIFT);
}
END_TEST

START_TEST(blocks_are_aligned_zeroed_and_recorded) {
  static const size_t sizes[] = {1, 4096, 4097, 65537, MIB + 1, 5 * MIB};
  for (const size_t *page = fake_pages; *page != 0; page++) {
    begin(*page, SIZE_MAX);
    for (size_t alignment = 1; alignment <= 16 * MIB; alignment *= 2)
      for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t stale = SIZE_MAX;
        struct wr_span *span = wr_span_take(spans, sizes[i], alignment, &stale);
        ck_assert_ptr_nonnull(span);
        ck_assert_uint_eq((uintptr_t)span->user % alignment, 0);
        ck_assert_uint_eq((uintptr_t)span->base % WR_UNIT, 0);
        ck_assert_uint_ge(span->usable, sizes[i]);
        ck_assert_uint_eq((uintptr_t)(span->user + span->usable) % *page, 0);
        ck_assert_uint_lt(span->usable - sizes[i], *page);
        ck_assert(span->user >= span->base);
        ck_assert(span->user + span->usable <= span->base + wr_extent_length(span));
        ck_assert_ptr_eq(wr_pagemap_find(span->user), span);
        ck_assert_uint_le(stale, span->usable);
        for (size_t at = stale; at < span->usable; at += *page)
          if (span->user[at] != 0)
            ck_abort_msg("byte %zu is not zero", at);
        fake_touch(span->user, 1);
        wr_span_check(spans);
        fake_give(span);
      }
  }
}
END_TEST

START_TEST(only_the_blocks_address_gives_it_back) {
  size_t stale;
  struct wr_span *span;
  begin(4096, SIZE_MAX);
  span = wr_span_take(spans, MIB, 4 * MIB, &stale);
  ck_assert_ptr_nonnull(span);
  ck_assert(!wr_span_give(span, span->user + 16));
  ck_assert(!wr_span_give(span, NULL));
  ck_assert(span->user == span->base || !wr_span_give(span, span->base));
  ck_assert(wr_span_give(span, span->user));
  ck_assert(!wr_span_give(span, span->user));
  wr_span_check(spans);
}
END_TEST

START_TEST(the_last_freed_comes_first_in_every_class) {
  size_t rounded, at = 1, classes = 0;
  begin(4096, SIZE_MAX);
  for (; at <= (24 * MIB) >> WR_UNIT_SHIFT; at = rounded + 1, classes++) {
    struct wr_span *first, *second, *third;
    (void)wr_extent_class(at, &rounded);
    first = take(rounded << WR_UNIT_SHIFT);
    second = take((at << WR_UNIT_SHIFT) - 100);
    third = take(rounded << WR_UNIT_SHIFT);
    fake_give(first);
    fake_give(third);
    fake_give(second);
    ck_assert_ptr_eq(take(rounded << WR_UNIT_SHIFT), second);
    ck_assert_ptr_eq(take((at << WR_UNIT_SHIFT) - 100), third);
    ck_assert_ptr_eq(take(rounded << WR_UNIT_SHIFT), first);
  }
  ck_assert_uint_gt(classes, 50);
}
END_TEST

/* Runs a loop that takes and frees the same blocks in the same order; after `warm_up` rounds it
 * finds all it needs. */
static void repeat_after(int warm_up, const size_t *sizes, const int *freed, int blocks) {
  struct wr_span *span[48];
  size_t fresh = 0;
  begin(4096, 64 * MIB);
  for (int round = 0; round < warm_up + 6; round++) {
    if (round == warm_up) {
      fake_forget();
      fresh = wr_counter_read(&spans->fresh_commits);
    }
    for (int i = 0; i < blocks; i++) {
      span[i] = take(sizes[i]);
      fake_touch(span[i]->user, span[i]->usable);
    }
    for (int i = 0; i < blocks; i++)
      fake_give(span[freed[i]]);
  }
  ck_assert_uint_eq(fake_calls(FAKE_ANY), 0);
  ck_assert_uint_eq(wr_counter_read(&spans->fresh_commits), fresh);
}

static void repeat(const size_t *sizes, const int *freed, int blocks) {
  repeat_after(2, sizes, freed, blocks);
}

START_TEST(a_repeated_loop_makes_no_call_and_commits_nothing) {
  static const size_t kinds[] = {70000, 100000, 300000, 3 * MIB, 65537, MIB};
  size_t sizes[42];
  int freed[42];
  for (int order = 0; order < 2; order++) {
    for (int i = 0; i < 42; i++) {
      sizes[i] = kinds[i % 6];
      freed[i] = order == 0 ? i : 41 - i;
    }
    repeat(sizes, freed, 42);
  }
}
END_TEST

/* Blocks of one class, not equally long, each of which comes back as another of the three: then it
 * may take as many rounds as blocks until each span was touched as far as the longest. */
START_TEST(a_repeated_loop_may_free_in_any_order) {
  static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (int order = 0; order < 6; order++)
    for (int large = 0; large < 3; large++) {
      size_t sizes[3] = {MIB - 50000, MIB - 50000, MIB - 50000};
      sizes[large] = MIB;
      repeat_after(3, sizes, orders[order], 3);
    }
}
END_TEST

/* Makes a retained span of `units` that was served again, so that it is not split. */
static struct wr_span *make_reused(size_t units) {
  struct wr_span *span = take(units << WR_UNIT_SHIFT);
  fake_give(span);
  ck_assert_ptr_eq(take(units << WR_UNIT_SHIFT), span);
  fake_give(span);
  return span;
}

/* Makes a retained span of `units` that nothing has come back for. */
static struct wr_span *make_once(size_t units) {
  struct wr_span *span = take(units << WR_UNIT_SHIFT);
  fake_give(span);
  return span;
}

/* What a loop comes back for is not taken away from it by another size. */
START_TEST(a_span_that_is_used_again_serves_its_class_only) {
  struct wr_span *kept;
  begin(4096, SIZE_MAX);
  kept = make_reused(32);
  ck_assert_ptr_ne(take((size_t)26 << WR_UNIT_SHIFT), kept);
  ck_assert_ptr_ne(take((size_t)16 << WR_UNIT_SHIFT), kept);
  ck_assert_ptr_ne(take((size_t)1 << WR_UNIT_SHIFT), kept);
}
END_TEST

/* The span that stands in is found first from then on, also when others of its class are freed. */
START_TEST(a_larger_span_that_stands_in_is_the_last_freed_too) {
  struct wr_span *larger, *own;
  begin(4096, SIZE_MAX);
  larger = make_once(32);
  ck_assert_ptr_eq(take((size_t)20 << WR_UNIT_SHIFT), larger);
  own = take((size_t)20 << WR_UNIT_SHIFT);
  fake_give(own);
  fake_give(larger);
  ck_assert_ptr_eq(take((size_t)20 << WR_UNIT_SHIFT), larger);
  ck_assert_ptr_eq(take((size_t)20 << WR_UNIT_SHIFT), own);
}
END_TEST

START_TEST(a_retained_span_serves_down_to_more_than_half_of_it) {
  static const size_t lengths[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 32, 64};
  begin(4096, SIZE_MAX);
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
    for (size_t units = 1; units <= lengths[i]; units++) {
      struct wr_span *kept = make_once(lengths[i]), *span;
      size_t rounded;
      bool whole;
      (void)wr_extent_class(units, &rounded);
      span = take(units << WR_UNIT_SHIFT);
      /* One that is longer than that may have been split. */
      whole = span == kept && span->units == lengths[i];
      ck_assert_msg(whole == (2 * rounded > lengths[i]), "%zu units of a span of %zu: %s", units,
                    lengths[i], whole ? "served" : "not served");
      fake_give(span);
      (void)wr_settle_to(spans, 0);
      ck_assert_uint_eq(retained(), 0);
    }
}
END_TEST

START_TEST(a_large_span_that_nothing_came_back_for_is_split) {
  struct wr_span *span;
  size_t fresh, maps;
  begin(4096, 64 * MIB);
  span = take(32 * MIB);
  fake_touch(span->user, 32 * MIB);
  fake_give(span);
  fresh = wr_counter_read(&spans->fresh_bytes);
  maps = fake_calls(FAKE_MAP);
  for (int i = 0; i < 32; i++)
    (void)take(MIB);
  ck_assert_uint_eq(wr_counter_read(&spans->fresh_bytes), fresh);
  ck_assert_uint_eq(fake_calls(FAKE_MAP), maps);
  ck_assert_uint_eq(retained() + wr_keep_active(spans), 32 * MIB);
}
END_TEST

/* The rest of a split has any length; whoever gets it gets a span that is long enough. */
START_TEST(the_rest_of_a_split_serves_what_fits) {
  for (size_t wanted = 1; wanted <= 28; wanted++) {
    size_t rest, rounded;
    begin(4096, SIZE_MAX);
    fake_give(take((size_t)64 << WR_UNIT_SHIFT));
    (void)take(wanted << WR_UNIT_SHIFT);
    rest = retained() >> WR_UNIT_SHIFT;
    ck_assert_uint_gt(rest, 0);
    (void)wr_extent_class(rest, &rounded);
    for (size_t units = rest / 2; units <= rounded; units++) {
      struct wr_span *span = take(units << WR_UNIT_SHIFT);
      ck_assert_uint_ge(wr_extent_length(span), units << WR_UNIT_SHIFT);
      fake_give(span);
    }
  }
}
END_TEST

START_TEST(a_large_span_that_is_used_again_is_not_split) {
  struct wr_span *kept;
  begin(4096, 64 * MIB);
  kept = make_reused((32 * MIB) >> WR_UNIT_SHIFT);
  fake_give(take(MIB));
  ck_assert_uint_eq(retained(), 33 * MIB);
  ck_assert_ptr_eq(take(32 * MIB), kept);
}
END_TEST

START_TEST(free_neighbours_are_joined) {
  static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (int order = 0; order < 6; order++) {
    struct wr_span *span[3], *all;
    char *base;
    size_t maps;
    begin(4096, 0);
    all = take(48 * 64 * KIB);
    base = all->base;
    fake_give(all);
    for (int i = 0; i < 3; i++) {
      span[i] = take(16 * 64 * KIB);
      ck_assert_ptr_eq(span[i]->base, base + (size_t)i * 16 * 64 * KIB);
    }
    for (int i = 0; i < 3; i++)
      fake_give(span[orders[order][i]]);
    maps = fake_calls(FAKE_MAP);
    all = take(48 * 64 * KIB);
    ck_assert_ptr_eq(all->base, base);
    ck_assert_uint_eq(fake_calls(FAKE_MAP), maps);
  }
}
END_TEST

START_TEST(neighbouring_mappings_are_joined_others_are_not) {
  for (int apart = 0; apart < 2; apart++) {
    struct wr_span *span[8];
    size_t maps, sum = 0;
    begin(4096, 0);
    fake.ignores_hints = apart == 1;
    for (int i = 0; i < 8; i++) {
      span[i] = take(4 * MIB);
      sum += 4 * MIB;
    }
    for (int i = 0; i < 8; i++)
      fake_give(span[i]);
    ck_assert_uint_ge(wr_counter_read(&spans->mapped), sum);
    maps = fake_calls(FAKE_MAP);
    fake_give(take(sum));
    ck_assert((fake_calls(FAKE_MAP) == maps) == (apart == 0));
  }
}
END_TEST

START_TEST(stale_says_what_may_not_be_zero) {
  struct wr_span *span, *again;
  size_t stale;
  begin(4096, SIZE_MAX);
  span = wr_span_take(spans, 4 * MIB, 1, &stale);
  ck_assert_uint_eq(stale, 0);
  fake_touch(span->user, 4 * MIB);
  fake_give(span);
  again = wr_span_take(spans, 3 * MIB, 1, &stale);
  ck_assert_ptr_eq(again, span);
  ck_assert_uint_eq(stale, 3 * MIB);
  fake_give(again);
  /* Half of it is purged, from its end. */
  (void)wr_settle_to(spans, 2 * MIB);
  again = wr_span_take(spans, 3 * MIB, 1, &stale);
  ck_assert_ptr_eq(again, span);
  ck_assert_uint_ge(stale, 2 * MIB);
  for (size_t at = stale; at < 3 * MIB; at += 4096)
    ck_assert_int_eq(again->user[at], 0);
}
END_TEST

/* The kernel may have written pages out; then they are not resident, and not zero either. */
START_TEST(stale_covers_what_is_not_resident_but_was_written) {
  struct wr_span *span, *again;
  size_t stale;
  begin(4096, 2 * MIB);
  span = take(4 * MIB);
  memset(span->user, 0x5a, 4 * MIB);
  fake.swapped = true;
  fake_give(span);
  again = wr_span_take(spans, 4 * MIB, 1, &stale);
  ck_assert_ptr_nonnull(again);
  for (size_t at = stale; at < 4 * MIB; at += 4096)
    ck_assert_int_eq(again->user[at], 0);
}
END_TEST

static struct wr_span *take_slab(unsigned units) {
  struct wr_span *slab = fake_slab(spans, units);
  ck_assert_ptr_nonnull(slab);
  ck_assert_uint_ge(slab->units, units);
  for (size_t at = 0; at < wr_extent_length(slab); at += WR_UNIT)
    ck_assert_ptr_eq(wr_pagemap_find(slab->base + at), slab);
  ck_assert_ptr_eq(wr_pagemap_find(slab->base + wr_extent_length(slab) - 1), slab);
  wr_span_check(spans);
  return slab;
}

START_TEST(every_unit_of_a_slab_leads_to_it) {
  begin(4096, SIZE_MAX);
  for (unsigned units = 1; units <= 8; units++) {
    struct wr_span *large, *slab = take_slab(units);
    wr_span_touch_slab(slab, 4096);
    wr_span_give_slab(slab);
    wr_span_check(spans);
    /* And of one that is served from a longer span. */
    (void)wr_settle_to(spans, 0);
    large = take((size_t)2 * units << WR_UNIT_SHIFT);
    fake_give(large);
    slab = take_slab(units);
    ck_assert_ptr_eq(slab, large);
    wr_span_give_slab(slab);
    (void)wr_settle_to(spans, 0);
  }
}
END_TEST

START_TEST(slabs_count_what_they_touch) {
  struct wr_span *slab;
  size_t fresh;
  begin(4096, SIZE_MAX);
  slab = take_slab(4);
  ck_assert_uint_eq(wr_keep_active(spans), 0);
  fresh = wr_counter_read(&spans->slab_fresh_bytes);
  wr_span_touch_slab(slab, 8192);
  wr_span_touch_slab(slab, 4096);
  wr_span_touch_slab(slab, 65536);
  ck_assert_uint_eq(wr_counter_read(&slab->touched), 65536);
  ck_assert_uint_eq(wr_keep_active(spans), 65536);
  ck_assert_uint_eq(wr_counter_read(&spans->slab_fresh_bytes), fresh + 65536);
  ck_assert_uint_eq(wr_counter_read(&spans->slab_fresh_commits), 1);
  /* Purged in place, it stays in use. */
  fake_forget();
  ck_assert(wr_span_purge_slab(slab));
  ck_assert_uint_eq(fake_calls(FAKE_PURGE), 1);
  ck_assert_ptr_eq(fake_call(FAKE_PURGE, 0)->address, slab->base);
  ck_assert_uint_eq(fake_call(FAKE_PURGE, 0)->length, 65536);
  ck_assert_uint_eq(wr_keep_active(spans), 0);
  ck_assert(wr_span_purge_slab(slab));
  ck_assert_uint_eq(fake_calls(FAKE_PURGE), 1);
  wr_span_touch_slab(slab, 12288);
  fake_fail(FAKE_PURGE, 1, 1);
  ck_assert(!wr_span_purge_slab(slab));
  ck_assert_uint_eq(wr_keep_active(spans), 12288);
  ck_assert_uint_eq(wr_counter_read(&spans->purge_failures), 1);
  wr_span_give_slab(slab);
  wr_span_check(spans);
  ck_assert_uint_eq(retained(), 12288);
  ck_assert_uint_eq(wr_keep_active(spans), 0);
  /* An untouched one is free address space again. */
  slab = take_slab(8);
  wr_span_give_slab(slab);
  wr_span_check(spans);
}
END_TEST

struct visits {
  size_t payloads, slabs;
};

static void visit(void *context, const struct wr_span *span) {
  struct visits *visits = context;
  if (atomic_load(&span->owner) == WR_OWNER_PAYLOAD)
    visits->payloads++;
  else if (atomic_load(&span->owner) == FAKE_OWNER)
    visits->slabs++;
  else
    ck_abort_msg("a span that is not in use was visited");
}

START_TEST(every_span_in_use_is_visited) {
  struct visits visits = {0, 0};
  struct wr_span *span[50], *slab[50];
  begin(4096, SIZE_MAX);
  for (size_t i = 0; i < 50; i++) {
    span[i] = take(65537 + i * 40000);
    slab[i] = take_slab(1 + (unsigned)(i % 8));
  }
  wr_spans_each(spans, visit, &visits);
  ck_assert_uint_eq(visits.payloads, 50);
  ck_assert_uint_eq(visits.slabs, 50);
  for (size_t i = 0; i < 50; i += 2)
    fake_give(span[i]);
  for (size_t i = 0; i < 50; i += 5)
    wr_span_give_slab(slab[i]);
  visits = (struct visits){0, 0};
  wr_spans_each(spans, visit, &visits);
  ck_assert_uint_eq(visits.payloads, 25);
  ck_assert_uint_eq(visits.slabs, 40);
}
END_TEST

START_TEST(peaks_are_exact) {
  struct wr_span *one, *two;
  size_t meta;
  begin(4096, SIZE_MAX);
  one = take(4 * MIB);
  two = take(3 * MIB);
  fake_give(one);
  fake_give(two);
  (void)take(MIB);
  (void)wr_spans_committed(spans);
  meta = wr_counter_read(&arena->meta.used);
  ck_assert_uint_eq(wr_counter_read(&spans->peak_active), 7 * MIB);
  ck_assert_uint_eq(wr_counter_read(&spans->retain.peak), 7 * MIB);
  ck_assert_uint_eq(wr_counter_read(&spans->peak_committed), 7 * MIB + meta);
  (void)wr_settle_to(spans, 0);
  (void)take(20 * MIB);
  (void)wr_spans_committed(spans);
  meta = wr_counter_read(&arena->meta.used);
  ck_assert_uint_eq(wr_counter_read(&spans->peak_active), 21 * MIB);
  ck_assert_uint_eq(wr_counter_read(&spans->peak_committed), 21 * MIB + meta);
}
END_TEST

UNIT_SUITE(span, classes_are_eight_a_doubling, blocks_are_aligned_zeroed_and_recorded,
           only_the_blocks_address_gives_it_back, the_last_freed_comes_first_in_every_class,
           a_repeated_loop_makes_no_call_and_commits_nothing, a_repeated_loop_may_free_in_any_order,
           a_span_that_is_used_again_serves_its_class_only,
           a_larger_span_that_stands_in_is_the_last_freed_too,
           a_retained_span_serves_down_to_more_than_half_of_it,
           a_large_span_that_nothing_came_back_for_is_split, the_rest_of_a_split_serves_what_fits,
           a_large_span_that_is_used_again_is_not_split, free_neighbours_are_joined,
           neighbouring_mappings_are_joined_others_are_not, stale_says_what_may_not_be_zero,
           stale_covers_what_is_not_resident_but_was_written, every_unit_of_a_slab_leads_to_it,
           slabs_count_what_they_touch, every_span_in_use_is_visited, peaks_are_exact)
