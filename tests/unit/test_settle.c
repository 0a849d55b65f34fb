/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mark: how much free memory stays, which goes first and how much of it, and what the kernel is
 * asked about memory that was allocated and never used.
 */
#include <errno.h>
#include <string.h>

#include "fake.h"
#include "span.h"
#include "unit.h"

#define MIB ((size_t)1 << 20)

static struct wr_spans *spans;

static void begin(size_t page, size_t mark) {
  spans = &fake_arena(page, mark)->spans;
}

static struct wr_span *take_untouched(size_t size) {
  return fake_take(spans, size);
}

static struct wr_span *take(size_t size) {
  struct wr_span *span = take_untouched(size);
  fake_touch(span->user, span->usable);
  return span;
}

static size_t retained(void) {
  return wr_counter_read(&spans->retain.total);
}

START_TEST(the_mark_is_kept_exactly) {
  for (const size_t *page = fake_pages; *page != 0; page++) {
    const size_t marks[] = {0, *page, MIB + *page, 16 * MIB, SIZE_MAX};
    for (size_t i = 0; i < 5; i++) {
      struct wr_span *span[24];
      size_t sum = 0;
      begin(*page, marks[i]);
      for (size_t k = 0; k < 24; k++)
        span[k] = take((k % 6 + 1) * (MIB / 4));
      for (size_t k = 0; k < 24; k++) {
        sum += span[k]->usable;
        fake_give(span[k]);
        ck_assert_uint_eq(retained(), sum < marks[i] ? sum : marks[i]);
        ck_assert_uint_eq(fake_resident(), retained() + wr_keep_active(spans));
      }
      ck_assert_uint_eq(wr_counter_read(&spans->purged_bytes), sum - retained());
    }
  }
}
END_TEST

START_TEST(a_mark_that_is_no_multiple_of_a_page) {
  struct wr_span *span;
  begin(4096, 3 * MIB + 1);
  span = take(5 * MIB);
  fake_give(span);
  ck_assert_uint_eq(retained(), 3 * MIB);
  begin(4096, 4095);
  fake_give(take(5 * MIB));
  ck_assert_uint_eq(retained(), 0);
}
END_TEST

START_TEST(the_coldest_goes_first_and_only_as_much_as_needed) {
  struct wr_span *a, *b, *c;
  begin(4096, 5 * MIB / 2);
  a = take(MIB);
  b = take(MIB);
  c = take(MIB);
  fake_give(a);
  fake_give(b);
  ck_assert_uint_eq(fake_calls(FAKE_PURGE), 0);
  fake_give(c);
  ck_assert_uint_eq(fake_calls(FAKE_PURGE), 1);
  ck_assert_ptr_eq(fake_call(FAKE_PURGE, 0)->address, a->base + MIB / 2);
  ck_assert_uint_eq(fake_call(FAKE_PURGE, 0)->length, MIB / 2);
  /* The rest of it is next, then the other. */
  fake_forget();
  wr_settle_set_mark(spans, MIB + 4096);
  wr_span_check(spans);
  ck_assert_uint_eq(retained(), MIB + 4096);
  ck_assert_uint_eq(fake_calls(FAKE_PURGE), 2);
  ck_assert_ptr_eq(fake_call(FAKE_PURGE, 0)->address, a->base);
  ck_assert_uint_eq(fake_call(FAKE_PURGE, 0)->length, MIB / 2);
  ck_assert_ptr_eq(fake_call(FAKE_PURGE, 1)->address, b->base + 4096);
  ck_assert_uint_eq(fake_call(FAKE_PURGE, 1)->length, MIB - 4096);
}
END_TEST

START_TEST(the_peak_counts_what_is_about_to_go) {
  struct wr_span *a, *b;
  begin(4096, 3 * MIB);
  a = take(2 * MIB);
  b = take(3 * MIB);
  fake_give(a);
  ck_assert_uint_eq(wr_counter_read(&spans->retain.peak), 2 * MIB);
  fake_give(b);
  ck_assert_uint_eq(retained(), 3 * MIB);
  ck_assert_uint_eq(wr_counter_read(&spans->retain.peak), 5 * MIB);
  (void)take(MIB);
  ck_assert_uint_eq(wr_counter_read(&spans->retain.peak), 5 * MIB);
}
END_TEST

START_TEST(what_was_never_used_evicts_nothing) {
  struct wr_span *hot[4], *big;
  size_t purges;
  begin(4096, 8 * MIB);
  for (int i = 0; i < 4; i++)
    hot[i] = take(2 * MIB);
  big = take_untouched(256 * MIB);
  for (int i = 0; i < 4; i++)
    fake_give(hot[i]);
  purges = fake_calls(FAKE_PURGE);
  fake_give(big);
  ck_assert_uint_eq(fake_calls(FAKE_PURGE), purges);
  ck_assert_uint_eq(retained(), 8 * MIB);
  ck_assert_uint_ge(fake_calls(FAKE_RESIDENT), 1);
  /* Of what was used at its start, only that counts. */
  big = take_untouched(256 * MIB);
  fake_touch(big->user, MIB);
  fake_give(big);
  ck_assert_uint_eq(retained(), 8 * MIB);
  ck_assert_uint_eq(fake_resident(), 8 * MIB);
  ck_assert_uint_eq(wr_counter_read(&spans->purged_bytes), MIB);
}
END_TEST

START_TEST(what_cannot_be_asked_about_counts_as_used) {
  begin(4096, 8 * MIB);
  fake_fail(FAKE_RESIDENT, 1, SIZE_MAX);
  fake_give(take_untouched(64 * MIB));
  ck_assert(fake_failed());
  ck_assert_uint_eq(retained(), 8 * MIB);
}
END_TEST

START_TEST(a_refused_purge_loses_nothing) {
  struct wr_span *span;
  begin(4096, MIB);
  span = take(4 * MIB);
  fake_fail(FAKE_PURGE, 1, SIZE_MAX);
  fake_give(span);
  ck_assert_uint_gt(fake_calls(FAKE_PURGE), 0);
  /* Whoever frees does not wait for ever. */
  ck_assert_uint_le(fake_calls(FAKE_PURGE), 16);
  ck_assert_uint_eq(wr_counter_read(&spans->purge_failures), fake_calls(FAKE_PURGE));
  ck_assert_uint_eq(wr_counter_read(&spans->purged_bytes), 0);
  ck_assert_uint_eq(retained(), 4 * MIB);
  /* The next time that memory is freed, it is tried again. */
  fake_forget();
  fake_give(take(100000));
  ck_assert_uint_eq(retained(), MIB);
}
END_TEST

START_TEST(after_a_refusal_the_others_get_their_turn) {
  struct wr_span *span[4];
  begin(4096, SIZE_MAX);
  for (int i = 0; i < 4; i++)
    span[i] = take(MIB);
  for (int i = 0; i < 4; i++)
    fake_give(span[i]);
  fake_fail(FAKE_PURGE, 1, 1);
  wr_settle_set_mark(spans, 2 * MIB);
  wr_span_check(spans);
  ck_assert_uint_eq(retained(), 2 * MIB);
  ck_assert_uint_eq(fake_calls(FAKE_PURGE), 3);
  for (int i = 0; i < 3; i++)
    ck_assert_ptr_eq(fake_call(FAKE_PURGE, (size_t)i)->address, span[i]->base);
}
END_TEST

START_TEST(reduce_tells_how_much_left) {
  for (const size_t *page = fake_pages; *page != 0; page++) {
    struct wr_span *span[8];
    begin(*page, SIZE_MAX);
    for (int i = 0; i < 8; i++)
      span[i] = take(MIB);
    for (int i = 0; i < 8; i++)
      fake_give(span[i]);
    ck_assert_uint_eq(wr_settle_to(spans, SIZE_MAX), 0);
    ck_assert_uint_eq(wr_settle_to(spans, 8 * MIB), 0);
    ck_assert_uint_eq(wr_settle_to(spans, 5 * MIB + 1), 3 * MIB);
    ck_assert_uint_eq(retained(), 5 * MIB);
    ck_assert_uint_eq(wr_settle_to(spans, 5 * MIB - *page), *page);
    ck_assert_uint_eq(wr_settle_to(spans, 0), 5 * MIB - *page);
    ck_assert_uint_eq(fake_resident(), 0);
    ck_assert_uint_eq(wr_counter_read(&spans->purged_bytes), 8 * MIB);
    wr_span_check(spans);
    fake_fail(FAKE_PURGE, 1, 1);
    ck_assert_uint_eq(wr_settle_to(spans, 0), 0);
    /* The mark has not changed. */
    fake_give(take(MIB));
    ck_assert_uint_eq(retained(), MIB);
  }
}
END_TEST

START_TEST(a_lower_mark_takes_effect_at_once_a_higher_one_from_then_on) {
  struct wr_span *span[8];
  begin(4096, SIZE_MAX);
  for (int i = 0; i < 8; i++)
    span[i] = take(MIB);
  for (int i = 0; i < 8; i++)
    fake_give(span[i]);
  wr_settle_set_mark(spans, 2 * MIB);
  ck_assert_uint_eq(retained(), 2 * MIB);
  ck_assert_uint_eq(fake_resident(), 2 * MIB);
  wr_settle_set_mark(spans, 4 * MIB);
  ck_assert_uint_eq(retained(), 2 * MIB);
  for (int i = 0; i < 8; i++)
    span[i] = take(MIB);
  for (int i = 0; i < 8; i++)
    fake_give(span[i]);
  ck_assert_uint_eq(retained(), 4 * MIB);
  wr_settle_set_mark(spans, 0);
  ck_assert_uint_eq(retained(), 0);
  ck_assert_uint_eq(fake_resident(), 0);
}
END_TEST

START_TEST(slabs_go_over_the_mark_until_it_is_settled) {
  struct wr_span *slab[4];
  begin(4096, 100 << 10);
  for (int i = 0; i < 4; i++) {
    slab[i] = fake_slab(spans, 1);
    ck_assert_ptr_nonnull(slab[i]);
    wr_span_touch_slab(slab[i], 65536);
  }
  for (int i = 0; i < 4; i++)
    wr_span_give_slab(slab[i]);
  ck_assert_uint_eq(fake_calls(FAKE_PURGE), 0);
  ck_assert_uint_eq(retained(), 4 * 65536);
  wr_settle(spans);
  wr_span_check(spans);
  ck_assert_uint_eq(retained(), 100 << 10);
  /* What slabs touched is known without asking. */
  ck_assert_uint_eq(fake_calls(FAKE_RESIDENT), 0);
  wr_settle(spans);
  ck_assert_uint_eq(retained(), 100 << 10);
}
END_TEST

START_TEST(room_below_the_limit_costs_no_more_than_is_wanted) {
  struct wr_span *span[8];
  size_t committed;
  begin(4096, SIZE_MAX);
  for (int i = 0; i < 8; i++)
    span[i] = take(MIB);
  for (int i = 0; i < 8; i++)
    fake_give(span[i]);
  committed = wr_extent_committed(spans);
  ck_assert(wr_settle_make_room(spans, SIZE_MAX / 2));
  ck_assert_uint_eq(retained(), 8 * MIB);
  spans->limit = committed + 4096;
  ck_assert(wr_settle_make_room(spans, 4096));
  ck_assert_uint_eq(retained(), 8 * MIB);
  ck_assert(wr_settle_make_room(spans, MIB / 2));
  ck_assert_uint_eq(retained(), 7 * MIB + MIB / 2 + 4096);
  /* More than there is: then nothing is lost for it. */
  ck_assert(!wr_settle_make_room(spans, 8 * MIB + 8192));
  ck_assert_uint_eq(retained(), 7 * MIB + MIB / 2 + 4096);
  ck_assert(wr_settle_make_room(spans, 8 * MIB));
  ck_assert_uint_eq(retained(), 4096);
  wr_span_check(spans);
}
END_TEST

/* Gives a new burst of blocks of a mebibyte back; how many purges that cost. */
static size_t burst(struct wr_span **span, size_t count) {
  size_t before = fake_calls(FAKE_PURGE);
  for (size_t i = 0; i < count; i++)
    span[i] = take(MIB);
  for (size_t i = 0; i < count; i++)
    fake_give(span[i]);
  return fake_calls(FAKE_PURGE) - before;
}

/* The kernel refuses everything: with an error that may be the range's alone, or one that is not.
 */
START_TEST(what_is_refused_is_tried_less_and_less) {
  static const int errors[] = {EINVAL, EPERM, ENOSYS, EAGAIN};
  for (int i = 0; i < 4; i++) {
    struct wr_span *span[40];
    size_t tried, turn;
    begin(4096, 8 * MIB);
    fake.refusal = errors[i];
    /* Each span once, and then one of them now and then. */
    tried = burst(span, 40);
    ck_assert_uint_ge(tried, 1);
    ck_assert_uint_le(tried, 40 + 8);
    ck_assert_uint_eq(retained(), 40 * MIB);
    ck_assert_uint_eq(wr_counter_read(&spans->purge_failures), tried);
    tried = 0;
    for (turn = 0; turn < 100; turn++)
      tried += burst(span, 40);
    ck_assert_uint_ge(tried, 2);
    ck_assert_uint_le(tried, 4000 / 65 + 40 + 8);
    ck_assert_uint_eq(retained(), 40 * MIB);
    /* Whoever asks for it has one tried, and no more. */
    for (turn = 0; turn < 10; turn++) {
      fake_forget();
      ck_assert_uint_eq(wr_settle_to(spans, turn * MIB), 0);
      ck_assert_uint_eq(fake_calls(FAKE_PURGE), 1);
    }
    /* When the kernel takes it again, the mark is met after so many frees at the latest. */
    fake.refusal = 0;
    for (turn = 0; turn <= WR_RETAIN_WAIT_MAX && retained() > 8 * MIB; turn++)
      fake_give(take(100000));
    ck_assert_uint_gt(turn, 1);
    ck_assert_uint_eq(retained(), 8 * MIB);
    ck_assert_uint_eq(fake_resident(), 8 * MIB);
    /* All is as it was before. */
    fake_forget();
    ck_assert_uint_ge(burst(span, 40), 32);
    ck_assert_uint_eq(retained(), 8 * MIB);
  }
}
END_TEST

START_TEST(whoever_asks_gets_back_what_the_kernel_takes_again) {
  struct wr_span *span[40];
  begin(4096, 8 * MIB);
  fake.refusal = EINVAL;
  for (int i = 0; i < 50; i++)
    (void)burst(span, 40);
  fake.refusal = 0;
  ck_assert_uint_eq(wr_settle_to(spans, 0), 40 * MIB);
  ck_assert_uint_eq(fake_resident(), 0);
  wr_span_check(spans);
}
END_TEST

START_TEST(what_is_refused_does_not_keep_the_rest) {
  struct wr_span *locked[24], *span[40];
  size_t tried;
  begin(4096, 2 * MIB);
  (void)burst(locked, 24);
  wr_settle_set_mark(spans, SIZE_MAX);
  for (int i = 0; i < 24; i++)
    locked[i] = take(MIB);
  fake.stuck = locked[0]->base;
  for (int i = 0; i < 24; i++)
    fake.stuck = locked[i]->base < fake.stuck ? locked[i]->base : fake.stuck;
  fake.stuck_length = 24 * MIB;
  for (int i = 0; i < 24; i++)
    fake_give(locked[i]);
  for (int i = 0; i < 40; i++)
    span[i] = take(2 * MIB);
  wr_settle_set_mark(spans, 30 * MIB);
  /* While the mark leaves room for it beside what is locked, that is met. */
  for (int i = 0; i < 40; i++)
    fake_give(span[i]);
  ck_assert_uint_eq(retained(), 30 * MIB);
  ck_assert_uint_eq(fake_resident(), 30 * MIB);
  /* Else all the rest goes, and what is locked costs no more than a try now and then. */
  wr_settle_set_mark(spans, 16 * MIB);
  (void)wr_settle_to(spans, 16 * MIB);
  ck_assert_uint_eq(retained(), 24 * MIB);
  tried = wr_counter_read(&spans->purge_failures);
  for (int i = 0; i < 650; i++) {
    fake_give(take(2 * MIB));
    ck_assert_uint_eq(retained(), 24 * MIB);
  }
  ck_assert_uint_le(wr_counter_read(&spans->purge_failures) - tried, 10 + 8);
  /* What serves again is still known, and so is a part of it. */
  for (int i = 0; i < 24; i++)
    locked[i] = take(i % 2 == 0 ? MIB : MIB / 2);
  for (int i = 0; i < 24; i++)
    fake_give(locked[i]);
  fake.stuck_length = 0;
  (void)wr_settle_to(spans, 0);
  ck_assert_uint_eq(retained(), 0);
  ck_assert_uint_eq(fake_resident(), 0);
}
END_TEST

START_TEST(room_that_the_kernel_refuses_is_none) {
  struct wr_span *span[28];
  begin(4096, SIZE_MAX);
  (void)burst(span, 28);
  spans->limit = wr_extent_committed(spans);
  fake.refusal = EINVAL;
  for (int i = 0; i < 8; i++) {
    fake_forget();
    ck_assert(!wr_settle_make_room(spans, 4 * MIB));
    ck_assert_uint_le(fake_calls(FAKE_PURGE), i < 2 ? 16 : 1);
  }
  ck_assert_uint_eq(retained(), 28 * MIB);
  fake.refusal = 0;
  ck_assert(wr_settle_make_room(spans, 4 * MIB));
  ck_assert_uint_eq(retained(), 24 * MIB);
}
END_TEST
UNIT_SUITE(settle, what_is_refused_is_tried_less_and_less,
           whoever_asks_gets_back_what_the_kernel_takes_again,
           what_is_refused_does_not_keep_the_rest, room_that_the_kernel_refuses_is_none,
           room_below_the_limit_costs_no_more_than_is_wanted, the_mark_is_kept_exactly,
           a_mark_that_is_no_multiple_of_a_page, the_coldest_goes_first_and_only_as_much_as_needed,
           the_peak_counts_what_is_about_to_go, what_was_never_used_evicts_nothing,
           what_cannot_be_asked_about_counts_as_used, a_refused_purge_loses_nothing,
           after_a_refusal_the_others_get_their_turn, reduce_tells_how_much_left,
           a_lower_mark_takes_effect_at_once_a_higher_one_from_then_on,
           slabs_go_over_the_mark_until_it_is_settled)
