/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payloads that shrink where they are: what becomes of what is cut off, and that a loop finds all
 * of it again.
 */
#include <string.h>

#include "fake.h"
#include "span.h"
#include "unit.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static struct wr_spans *spans;

static void begin(size_t page, size_t mark) {
  spans = &fake_arena(page, mark)->spans;
}

static size_t retained(void) {
  return wr_counter_read(&spans->retain.total);
}

static struct wr_span *take(size_t size) {
  struct wr_span *span = fake_take(spans, size);
  fake_touch(span->user, span->usable);
  return span;
}

/* A span of this length that was come back for. */
static struct wr_span *take_again(size_t size) {
  struct wr_span *span = take(size);
  fake_give(span);
  ck_assert_ptr_eq(fake_take(spans, size), span);
  return span;
}

static bool shrink(struct wr_span *span, size_t size) {
  char *user = span->user;
  size_t lead = (size_t)(user - span->base), usable = span->usable;
  bool done = wr_span_shrink(span, size);
  wr_span_check(spans);
  ck_assert_ptr_eq(span->user, user);
  ck_assert_uint_eq(span->usable, done ? wr_bits_up(lead + size, fake.page) - lead : usable);
  ck_assert_uint_le(lead + span->usable, wr_extent_length(span));
  return done;
}

START_TEST(what_is_cut_off_is_retained_and_comes_back) {
  for (const size_t *page = fake_pages; *page != 0; page++)
    for (int served = 0; served < 2; served++) {
      struct wr_span *span, *tail;
      size_t length;
      begin(*page, SIZE_MAX);
      span = served == 0 ? take(16 * MIB) : take_again(16 * MIB);
      length = wr_extent_length(span);
      fake_forget();
      ck_assert(shrink(span, 3 * MIB / 2));
      ck_assert_uint_le(wr_extent_length(span), 7 * MIB / 4);
      ck_assert_uint_eq(wr_keep_active(spans) + retained(), fake_resident());
      ck_assert_uint_ge(retained(), 14 * MIB);
      tail = wr_extent_find(spans, span->base + wr_extent_length(span));
      ck_assert_ptr_nonnull(tail);
      ck_assert(wr_retain_is_once(&spans->retain, &tail->member) == (served == 0));
      for (size_t at = 0; at < span->usable; at += 4096)
        ck_assert_int_eq(span->user[at], (char)0xa5);
      fake_give(span);
      ck_assert_uint_eq(wr_extent_length(span), length);
      ck_assert_uint_eq(retained(), fake_resident());
      ck_assert(wr_retain_is_once(&spans->retain, &span->member) == (served == 0));
      ck_assert_ptr_eq(fake_take(spans, 16 * MIB), span);
      ck_assert_uint_eq(retained(), 0);
      ck_assert_uint_eq(fake_calls(FAKE_ANY), 0);
    }
}
END_TEST

START_TEST(one_that_would_be_no_shorter_does_not_shrink) {
  struct wr_span *span;
  begin(4096, SIZE_MAX);
  span = take(MIB);
  ck_assert(!shrink(span, MIB - 4096));
  ck_assert_uint_eq(spans->tails, 0);
}
END_TEST

START_TEST(again_and_again_is_one_tail) {
  struct wr_span *span;
  size_t length;
  begin(4096, SIZE_MAX);
  span = take_again(16 * MIB);
  length = wr_extent_length(span);
  for (size_t size = 8 * MIB; size >= 65 * KIB; size /= 2) {
    ck_assert(shrink(span, size));
    ck_assert_uint_eq(spans->tails, 1);
  }
  fake_give(span);
  ck_assert_uint_eq(spans->tails, 0);
  ck_assert_uint_eq(wr_extent_length(span), length);
}
END_TEST

START_TEST(it_grows_into_what_was_cut_off) {
  struct wr_span *span;
  size_t length;
  begin(4096, SIZE_MAX);
  span = take_again(16 * MIB);
  length = wr_extent_length(span);
  (void)take(64 * KIB);
  fake_forget();
  ck_assert(shrink(span, MIB));
  for (size_t size = 2 * MIB; size < 16 * MIB; size += 3 * MIB) {
    ck_assert(wr_span_resize(span, size));
    wr_span_check(spans);
    ck_assert_uint_ge(span->usable, size);
    ck_assert_uint_le(wr_extent_length(span), size + size / 4);
    ck_assert_int_eq(span->user[size - 1], (char)0xa5);
  }
  ck_assert(wr_span_resize(span, 16 * MIB));
  ck_assert_uint_eq(wr_extent_length(span), length);
  ck_assert(!wr_span_resize(span, 17 * MIB));
  fake_give(span);
  ck_assert_ptr_eq(fake_take(spans, 16 * MIB), span);
  ck_assert_uint_eq(fake_calls(FAKE_ANY), 0);
}
END_TEST

/* Whoever takes the tail has it for good. */
START_TEST(one_whose_tail_is_taken_stays_short) {
  struct wr_span *span, *other;
  size_t tail;
  begin(4096, SIZE_MAX);
  span = take_again(16 * MIB);
  tail = wr_extent_length(span);
  ck_assert(shrink(span, MIB));
  tail -= wr_extent_length(span);
  other = fake_take(spans, tail);
  ck_assert_ptr_eq(other->base, span->base + wr_extent_length(span));
  ck_assert_uint_eq(retained(), 0);
  fake_give(span);
  fake_give(other);
  ck_assert_ptr_eq(fake_take(spans, MIB), span);
  ck_assert_ptr_eq(fake_take(spans, tail), other);
}
END_TEST

START_TEST(others_of_its_class_are_taken_before_a_tail) {
  struct wr_span *span, *other;
  begin(4096, SIZE_MAX);
  other = take_again(14 * MIB);
  span = take_again(16 * MIB);
  fake_give(other);
  ck_assert(shrink(span, 3 * MIB / 2));
  ck_assert_ptr_eq(fake_take(spans, 14 * MIB), other);
  fake_give(span);
  ck_assert_ptr_eq(fake_take(spans, 16 * MIB), span);
}
END_TEST

START_TEST(what_the_kernel_took_of_a_tail_is_address_space) {
  static const size_t left[] = {0, 4 * MIB};
  for (int i = 0; i < 2; i++) {
    struct wr_span *span;
    size_t length, mapped;
    begin(4096, SIZE_MAX);
    span = take_again(16 * MIB);
    length = wr_extent_length(span);
    /* So that there is more of it than what was cut off. */
    if (left[i] == 0)
      fake_give(take(5 * MIB));
    mapped = fake_mapped();
    ck_assert(shrink(span, MIB));
    (void)wr_settle_to(spans, left[i]);
    wr_span_check(spans);
    ck_assert_uint_eq(retained(), left[i]);
    fake_give(span);
    ck_assert_uint_eq(wr_extent_length(span), length);
    ck_assert(!wr_retain_is_once(&spans->retain, &span->member));
    ck_assert_ptr_eq(fake_take(spans, 16 * MIB), span);
    ck_assert_uint_eq(fake_mapped(), mapped);
  }
}
END_TEST

START_TEST(the_mark_holds_for_tails) {
  struct wr_span *span;
  begin(4096, 24 * MIB);
  span = take(8 * MIB);
  ck_assert(shrink(span, 3 * MIB / 2));
  fake_give(take(20 * MIB));
  ck_assert_uint_eq(retained(), 24 * MIB);
  ck_assert_uint_eq(fake_resident(), 24 * MIB + wr_keep_active(spans));
  /* What was never used is not missed. */
  begin(4096, 24 * MIB);
  span = fake_take(spans, 8 * MIB);
  fake_touch(span->user, 3 * MIB / 2);
  ck_assert(shrink(span, 3 * MIB / 2));
  fake_give(take(20 * MIB));
  ck_assert_uint_eq(fake_calls(FAKE_PURGE), 0);
  ck_assert_uint_lt(retained(), 21 * MIB);
}
END_TEST

/* Two such spans and what else there is have to fit below the mark. */
START_TEST(a_tail_is_a_part_of_the_mark) {
  for (size_t mark = 4 * MIB; mark <= 64 * MIB; mark += MIB) {
    struct wr_span *span;
    begin(4096, mark);
    span = fake_take(spans, 8 * MIB);
    size_t tail = wr_extent_length(span) - MIB;
    ck_assert(shrink(span, MIB - 4096) == (tail <= mark / 8 * 3));
  }
}
END_TEST

/* That the kernel was asked about a tail says nothing of the payload it was cut off. */
START_TEST(what_is_not_known_of_a_payload_pushes_nothing_out) {
  for (size_t size = MIB; size < 16 * MIB; size += MIB) {
    struct wr_span *hot, *span;
    begin(4096, 48 * MIB);
    hot = take(8 * MIB);
    span = fake_take(spans, 16 * MIB);
    fake_touch(span->user, 1);
    fake_give(hot);
    ck_assert(shrink(span, size));
    (void)wr_settle_to(spans, 8 * MIB);
    ck_assert_uint_ge(retained(), 8 * MIB);
    fake_give(span);
    (void)wr_settle_to(spans, 8 * MIB + 4096);
    ck_assert_uint_eq(fake_calls(FAKE_PURGE), 0);
    ck_assert_uint_eq(retained(), fake_resident());
  }
}
END_TEST

/* Short payloads in the place of long ones would fragment it. */
START_TEST(where_memory_is_bounded_none_shrinks) {
  struct wr_span *span;
  begin(4096, SIZE_MAX);
  span = take(16 * MIB);
  spans->limit = 1024 * MIB;
  ck_assert(!shrink(span, MIB));
  spans->limit = SIZE_MAX;
  ck_assert(shrink(span, MIB));
}
END_TEST

/* A program that keeps what it shrank pays for the first few only. */
START_TEST(only_so_many_have_a_tail) {
  struct wr_span *kept[WR_KEEP_TAILS + 2];
  begin(4096, SIZE_MAX);
  for (int i = 0; i < WR_KEEP_TAILS + 2; i++) {
    kept[i] = take(4 * MIB);
    ck_assert(shrink(kept[i], MIB) == (i < WR_KEEP_TAILS));
  }
  fake_give(kept[0]);
  ck_assert(shrink(kept[WR_KEEP_TAILS], MIB));
  ck_assert(!shrink(kept[WR_KEEP_TAILS + 1], MIB));
  /* One that has one may shrink further. */
  ck_assert(shrink(kept[1], MIB / 2));
}
END_TEST

START_TEST(one_that_stands_in_for_a_shorter_one_does_so_again) {
  struct wr_span *span;
  begin(4096, SIZE_MAX);
  span = take(7 * MIB);
  fake_give(span);
  ck_assert_ptr_eq(fake_take(spans, 5 * MIB), span);
  ck_assert(shrink(span, MIB));
  fake_give(span);
  ck_assert_ptr_eq(fake_take(spans, 5 * MIB), span);
}
END_TEST

/* What it was lent to does not matter; and it is its own class's in the end, as long as before. */
START_TEST(one_that_is_lent_is_its_own_class_again) {
  struct wr_span *large;
  begin(4096, 12 * MIB);
  large = take_again(7 * MIB);
  fake_give(large);
  ck_assert_ptr_eq(fake_take(spans, 5 * MIB), large);
  ck_assert(shrink(large, 3 * MIB));
  fake_give(large);
  ck_assert_ptr_eq(fake_take(spans, 7 * MIB), large);
}
END_TEST

/* Makes a payload shorter as realloc does: where it is, or by copying. */
static struct wr_span *shorter(struct wr_span *span, size_t size) {
  struct wr_span *copy;
  if (wr_span_shrink(span, size))
    return span;
  copy = take(size);
  fake_give(span);
  return copy;
}

/* Messages that are read into a buffer for any, shrunk to what has come, and passed on, `depth` of
 * them at once, with some buffers of fixed sizes beside, for any mark that is large enough. */
static void loop(uint64_t seed, size_t depth, size_t buffer, size_t mark) {
  enum { LIVE = 8, ROUNDS = 400, SETTLED = 200 };
  static const size_t fixed[] = {300 * KIB, MIB, 3 * MIB, 14 * MIB / 4};
  struct wr_span *live[LIVE] = {NULL}, *other;
  uint64_t state = seed, commits = 0;
  size_t size = 0;
  begin(4096, mark);
  for (int round = 0; round < ROUNDS; round++) {
    size_t at = (size_t)round % depth;
    if (live[at] != NULL)
      ck_assert(wr_span_give(live[at], live[at]->user));
    live[at] = fake_take(spans, buffer);
    fake_touch(live[at]->user, MIB);
    /* Of several at once all but one are copied: to spans that are there only if sizes recur. */
    if (depth == 1 || round == 0)
      size = 70 * KIB + unit_below(&state, MIB - 70 * KIB);
    live[at] = shorter(live[at], size);
    other = take(fixed[unit_below(&state, 4)]);
    fake_give(other);
    if (round == SETTLED) {
      commits = wr_counter_read(&spans->fresh_commits);
      fake_forget();
    }
  }
  ck_assert_uint_eq(wr_counter_read(&spans->fresh_commits), commits);
  ck_assert_uint_eq(fake_calls(FAKE_ANY), 0);
}

START_TEST(a_loop_finds_all_its_memory_again) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    size_t depth = 1 + seed % 8;
    loop(seed, depth, 4 * MIB, SIZE_MAX);
    loop(seed, depth, 4 * MIB, 64 * MIB);
    loop(seed, depth, 16 * MIB, 64 * MIB);
  }
}
END_TEST

UNIT_SUITE(span_shrink, what_is_cut_off_is_retained_and_comes_back,
           one_that_would_be_no_shorter_does_not_shrink, again_and_again_is_one_tail,
           it_grows_into_what_was_cut_off, one_whose_tail_is_taken_stays_short,
           others_of_its_class_are_taken_before_a_tail,
           what_the_kernel_took_of_a_tail_is_address_space, the_mark_holds_for_tails,
           a_tail_is_a_part_of_the_mark, what_is_not_known_of_a_payload_pushes_nothing_out,
           where_memory_is_bounded_none_shrinks, only_so_many_have_a_tail,
           one_that_stands_in_for_a_shorter_one_does_so_again,
           one_that_is_lent_is_its_own_class_again, a_loop_finds_all_its_memory_again)
