/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which retained spans serve what, and which stay below the mark: so that a loop finds its memory
 * again.
 */
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

START_TEST(a_burst_leaves_what_a_loop_comes_back_for) {
  struct wr_span *loop[2], *burst[16];
  begin(4096, 8 * MIB);
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 2; i++)
      loop[i] = take(2 * MIB);
    for (int i = 0; i < 2; i++)
      fake_give(loop[i]);
  }
  for (int i = 0; i < 16; i++)
    burst[i] = take(MIB);
  for (int i = 0; i < 16; i++)
    fake_give(burst[i]);
  ck_assert_uint_eq(retained(), 8 * MIB);
  fake_forget();
  for (int i = 0; i < 2; i++) {
    size_t stale;
    struct wr_span *span = wr_span_take(spans, 2 * MIB, 1, &stale);
    ck_assert_ptr_nonnull(span);
    ck_assert(span == loop[0] || span == loop[1]);
    ck_assert_uint_eq(stale, 2 * MIB);
  }
  ck_assert_uint_eq(fake_calls(FAKE_ANY), 0);
}
END_TEST

START_TEST(a_new_working_set_displaces_the_old_one) {
  struct wr_span *old[6], *now[8];
  size_t fresh = 0;
  begin(4096, 8 * MIB);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 6; i++)
      old[i] = take(MIB);
    for (int i = 0; i < 6; i++)
      fake_give(old[i]);
  }
  /* Of another class, and as much as the mark allows. */
  for (int round = 0; round < 6; round++) {
    if (round == 2)
      fresh = wr_counter_read(&spans->fresh_commits);
    for (int i = 0; i < 2; i++)
      now[i] = take(4 * MIB);
    for (int i = 0; i < 2; i++)
      fake_give(now[i]);
  }
  ck_assert_uint_eq(wr_counter_read(&spans->fresh_commits), fresh);
}
END_TEST

/* Takes and gives a span twice, so that it is one that is come back for. */
static struct wr_span *use_twice(size_t size) {
  struct wr_span *span = take(size);
  fake_give(span);
  ck_assert_ptr_eq(take(size), span);
  fake_give(span);
  return span;
}

START_TEST(from_half_of_the_mark_on_classes_lend) {
  struct wr_span *large, *middle, *small;
  uint64_t commits;
  begin(4096, 12 * MIB);
  /* Below that, what is come back for is its own class's. */
  large = use_twice(3 * MIB);
  middle = use_twice(5 * MIB / 2);
  small = use_twice(5 * MIB / 4);
  ck_assert(middle != large && small != middle);
  ck_assert_uint_gt(retained(), 6 * MIB);
  commits = wr_counter_read(&spans->fresh_commits);
  for (int i = 0; i < 3; i++) {
    /* The smallest that is large enough. */
    struct wr_span *borrowed = take(2 * MIB);
    ck_assert_ptr_eq(borrowed, middle);
    fake_give(borrowed);
    /* It is its own class's still. */
    ck_assert_ptr_eq(take(5 * MIB / 2), middle);
    fake_give(middle);
  }
  ck_assert_uint_eq(wr_counter_read(&spans->fresh_commits), commits);
  /* None that is twice as long. */
  ck_assert_ptr_ne(take(MIB / 2), small);
  ck_assert_uint_eq(wr_counter_read(&spans->fresh_commits), commits + 1);
}
END_TEST

/* A class that misses while it has borrowed needs as many at once: what it borrowed is its own from
 * then on, as a fresh one is, so that its next turn finds all of them. */
START_TEST(who_borrows_and_misses_keeps_what_it_borrowed) {
  struct wr_span *large, *borrowed, *missed;
  uint64_t commits;
  begin(4096, 12 * MIB);
  large = use_twice(7 * MIB);
  borrowed = take(4 * MIB);
  ck_assert_ptr_eq(borrowed, large);
  missed = take(4 * MIB);
  fake_give(missed);
  fake_give(borrowed);
  commits = wr_counter_read(&spans->fresh_commits);
  ck_assert_ptr_eq(take(4 * MIB), large);
  ck_assert_ptr_eq(take(4 * MIB), missed);
  ck_assert_ptr_nonnull(take(7 * MIB));
  ck_assert_uint_eq(wr_counter_read(&spans->fresh_commits), commits + 1);
  wr_span_check(spans);
}
END_TEST

/* Blocks of any length, of which some stay, before a loop begins. */
static void random_history(uint64_t *state) {
  enum { SLOTS = 100, STEPS = 300 };
  struct wr_span *slots[SLOTS] = {NULL};
  for (int i = 0; i < STEPS; i++) {
    struct wr_span **slot = &slots[unit_below(state, SLOTS)];
    if (*slot != NULL)
      fake_give(*slot);
    *slot = take(65537 + unit_below(state, i % 25 == 0 ? 3 * MIB / 2 : MIB / 12));
  }
  for (int i = 0; i < SLOTS; i++)
    if (i % 3 != 0 && slots[i] != NULL)
      fake_give(slots[i]);
}

/* Takes so many blocks, writes them, and gives them back. Returns how many bytes were not there. */
static size_t one_turn(size_t size, size_t live) {
  struct wr_span *blocks[16];
  size_t missing = 0, stale;
  for (size_t i = 0; i < live; i++) {
    blocks[i] = wr_span_take(spans, size, 1, &stale);
    ck_assert_ptr_nonnull(blocks[i]);
    fake_touch(blocks[i]->user, size);
    missing += stale < size ? size - stale : 0;
  }
  while (live > 0)
    fake_give(blocks[--live]);
  return missing;
}

/* From the third turn on; a loop of all of the mark, when its spans have been cut to its size. */
START_TEST(after_any_history_a_loop_has_all_its_memory) {
  static const size_t sizes[] = {65537,  100000, MIB / 4,     400000,
                                 700000, MIB,    3 * MIB / 2, 2 * MIB + 64};
  for (uint64_t seed = 1; seed <= 2; seed++) {
    uint64_t state = seed;
    begin(4096, 16 * MIB);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
      for (size_t live = 1; live <= 16 && live * sizes[i] <= 16 * MIB; live += live < 4 ? 1 : 4) {
        int settled = live * sizes[i] <= 12 * MIB ? 2 : 12;
        random_history(&state);
        for (int turn = 0; turn < settled + 4; turn++) {
          size_t missing = one_turn(sizes[i], live);
          ck_assert_msg(turn < settled || missing == 0, "%zu x %zu bytes: %zu not there in turn %d",
                        live, sizes[i], missing, turn);
        }
      }
  }
}
END_TEST

/* Buffers of which hardly two have one length, as those of a stream that is read in pieces: all
 * classes together would want twice the mark, for what is never more than three blocks at once. */
START_TEST(blocks_of_any_length_settle_below_the_mark) {
  enum { LIVE = 3, TURNS = 20000 };
  struct wr_span *live[LIVE] = {NULL};
  uint64_t state = 7, commits = 0;
  size_t stale;
  begin(4096, 16 * MIB);
  for (int i = 0; i < TURNS; i++) {
    size_t at = unit_below(&state, LIVE);
    size_t size = 65537 + unit_below(&state, MIB - 65536);
    if (live[at] != NULL)
      ck_assert(wr_span_give(live[at], live[at]->user));
    live[at] = wr_span_take(spans, size, 1, &stale);
    ck_assert_ptr_nonnull(live[at]);
    fake_touch(live[at]->user, size);
    if (i == TURNS / 2)
      commits = wr_counter_read(&spans->fresh_commits);
  }
  wr_span_check(spans);
  ck_assert_uint_eq(wr_counter_read(&spans->fresh_commits), commits);
  ck_assert_uint_eq(wr_counter_read(&spans->purges), 0);
}
END_TEST
UNIT_SUITE(keep, a_burst_leaves_what_a_loop_comes_back_for, a_new_working_set_displaces_the_old_one,
           from_half_of_the_mark_on_classes_lend, who_borrows_and_misses_keeps_what_it_borrowed,
           after_any_history_a_loop_has_all_its_memory, blocks_of_any_length_settle_below_the_mark)
