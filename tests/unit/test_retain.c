/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The retention policy: the rules one by one, then against a naive model of them at random.
 */
#include "retain.h"

#include <string.h>

#include "unit.h"

#define MEMBERS 40

static struct wr_retain retain;
static struct wr_retain_member member[MEMBERS];

static void begin(size_t mark) {
  memset(&retain, 0, sizeof retain);
  memset(member, 0, sizeof member);
  wr_counter_set(&retain.mark, mark);
}

static void add(int i, bool reused) {
  wr_retain_add(&retain, &member[i], 100, reused);
}

/* The coldest is member `i`; it is given up, as a span of class `class`. */
static void expect_coldest(int i, unsigned class) {
  struct wr_retain_member *coldest = wr_retain_coldest(&retain);
  ck_assert_ptr_eq(coldest, &member[i]);
  wr_retain_remove(&retain, coldest, 100);
  wr_retain_give_up(&retain, coldest, class);
}

START_TEST(an_empty_one_has_no_coldest) {
  begin(0);
  ck_assert_ptr_null(wr_retain_coldest(&retain));
  ck_assert_uint_eq(wr_retain_excess(&retain, 0), 0);
}
END_TEST

START_TEST(the_coldest_goes_first) {
  begin(SIZE_MAX);
  for (int i = 0; i < 5; i++)
    add(i, false);
  for (int i = 0; i < 5; i++)
    expect_coldest(i, 0);
  ck_assert_ptr_null(wr_retain_coldest(&retain));
}
END_TEST

START_TEST(what_is_used_once_goes_before_what_is_reused) {
  begin(SIZE_MAX);
  add(0, true);
  add(1, false);
  add(2, true);
  add(3, false);
  ck_assert(!wr_retain_is_once(&retain, &member[0]));
  ck_assert(wr_retain_is_once(&retain, &member[1]));
  expect_coldest(1, 1);
  expect_coldest(3, 2);
  expect_coldest(0, 3);
  expect_coldest(2, 4);
}
END_TEST

START_TEST(a_miss_after_a_wrong_guess_demotes) {
  begin(SIZE_MAX);
  add(0, true);
  add(1, true);
  add(2, false);
  add(3, false);
  /* 2 went ahead of the older 0: a miss of its class says that this was wrong. */
  expect_coldest(2, 77);
  wr_retain_missed(&retain, 76);
  ck_assert(!wr_retain_is_once(&retain, &member[0]));
  wr_retain_missed(&retain, 77);
  ck_assert(wr_retain_is_once(&retain, &member[0]));
  ck_assert(wr_retain_is_once(&retain, &member[1]));
  /* They are behind the others, in their order, and may earn their place again. */
  add(4, true);
  ck_assert(!wr_retain_is_once(&retain, &member[4]));
  expect_coldest(0, 0);
  expect_coldest(1, 0);
  expect_coldest(3, 0);
  expect_coldest(4, 0);
}
END_TEST

START_TEST(no_older_reused_one_no_wrong_guess) {
  begin(SIZE_MAX);
  add(0, false);
  add(1, true);
  /* 0 is older than the only reused one. */
  expect_coldest(0, 5);
  wr_retain_missed(&retain, 5);
  ck_assert(!wr_retain_is_once(&retain, &member[1]));
  /* A reused one that goes is not ahead of an older one. */
  add(2, true);
  expect_coldest(1, 6);
  wr_retain_missed(&retain, 6);
  ck_assert(!wr_retain_is_once(&retain, &member[2]));
}
END_TEST

START_TEST(a_demotion_forgets_every_guess) {
  begin(SIZE_MAX);
  add(0, true);
  add(1, false);
  add(2, false);
  expect_coldest(1, 10);
  expect_coldest(2, 255);
  wr_retain_missed(&retain, 10);
  add(3, true);
  wr_retain_missed(&retain, 255);
  ck_assert(!wr_retain_is_once(&retain, &member[3]));
}
END_TEST

START_TEST(what_returns_is_the_next_to_go) {
  begin(SIZE_MAX);
  for (int i = 0; i < 4; i++)
    add(i, i >= 2);
  expect_coldest(0, 0);
  wr_retain_return(&retain, &member[0], 40);
  ck_assert_uint_eq(wr_counter_read(&retain.total), 340);
  ck_assert_ptr_eq(wr_retain_coldest(&retain), &member[0]);
  wr_retain_remove(&retain, &member[0], 40);
  expect_coldest(1, 0);
  expect_coldest(2, 0);
  wr_retain_return(&retain, &member[2], 60);
  ck_assert_ptr_eq(wr_retain_coldest(&retain), &member[2]);
  ck_assert(!wr_retain_is_once(&retain, &member[2]));
}
END_TEST

START_TEST(totals_excess_and_peak) {
  begin(250);
  add(0, false);
  add(1, true);
  ck_assert_uint_eq(wr_counter_read(&retain.total), 200);
  ck_assert_uint_eq(wr_retain_excess(&retain, 250), 0);
  ck_assert_uint_eq(wr_retain_excess(&retain, 200), 0);
  ck_assert_uint_eq(wr_retain_excess(&retain, 199), 1);
  ck_assert_uint_eq(wr_retain_excess(&retain, 0), 200);
  ck_assert_uint_eq(wr_retain_excess(&retain, SIZE_MAX), 0);
  ck_assert_uint_eq(wr_counter_read(&retain.peak), 200);
  /* What is about to be given back counts too. */
  add(2, false);
  ck_assert_uint_eq(wr_counter_read(&retain.peak), 300);
  wr_retain_remove(&retain, &member[0], 100);
  wr_retain_return(&retain, &member[0], 50);
  ck_assert_uint_eq(wr_counter_read(&retain.total), 250);
  ck_assert_uint_eq(wr_counter_read(&retain.peak), 300);
}
END_TEST

START_TEST(giving_up_and_missing_by_turns_makes_it_loose) {
  begin(SIZE_MAX);
  add(0, true);
  /* Misses alone do not, nor does giving up alone. */
  for (int i = 0; i < 1000; i++)
    wr_retain_missed(&retain, 3);
  for (int i = 0; i < 1000; i++)
    wr_retain_press(&retain);
  ck_assert(!retain.loose);
  for (int i = 0; !retain.loose; i++) {
    ck_assert_int_lt(i, 10);
    ck_assert(!wr_retain_is_once(&retain, &member[0]));
    wr_retain_press(&retain);
    wr_retain_missed(&retain, 3);
  }
  /* Then no member keeps its place, and none gets one. */
  ck_assert(wr_retain_is_once(&retain, &member[0]));
  add(1, true);
  ck_assert(wr_retain_is_once(&retain, &member[1]));
  /* Until misses come without it. */
  for (int i = 0; retain.loose; i++) {
    ck_assert_int_lt(i, 100);
    wr_retain_missed(&retain, 3);
  }
  add(2, true);
  ck_assert(!wr_retain_is_once(&retain, &member[2]));
}
END_TEST

START_TEST(hits_end_it_too) {
  begin(SIZE_MAX);
  while (!retain.loose) {
    wr_retain_press(&retain);
    wr_retain_missed(&retain, 3);
  }
  for (int i = 0; retain.loose; i++) {
    ck_assert_int_lt(i, 100 * WR_RETAIN_HITS);
    wr_retain_hit(&retain);
  }
}
END_TEST

START_TEST(bursts_do_not_make_it_loose) {
  begin(SIZE_MAX);
  for (int burst = 0; burst < 100; burst++) {
    for (int i = 0; i < 20; i++)
      wr_retain_missed(&retain, 3);
    for (int i = 0; i < 20; i++)
      wr_retain_press(&retain);
    ck_assert(!retain.loose);
  }
}
END_TEST

START_TEST(the_clock_may_wrap) {
  begin(SIZE_MAX);
  retain.clock = UINT32_MAX;
  add(0, true);
  add(1, false);
  expect_coldest(1, 9);
  wr_retain_missed(&retain, 9);
  ck_assert(wr_retain_is_once(&retain, &member[0]));
}
END_TEST

/* The same rules, said with arrays. */
struct naive {
  int once[MEMBERS], reused[MEMBERS]; /* the newest first */
  int onces, reuseds;
  bool in[MEMBERS];
  bool is_reused[MEMBERS];
  size_t bytes[MEMBERS];
  size_t when[MEMBERS];
  int demoted[MEMBERS]; /* how many demotions there were when it was added */
  int demotions;
  bool jumped[WR_RETAIN_CLASSES];
  bool given_up, loose;
  int pressure;
  size_t now, total, peak;
};

static void insert(int *order, int *count, int at, int i) {
  memmove(order + at + 1, order + at, (size_t)(*count - at) * sizeof *order);
  order[at] = i;
  ++*count;
}

static void erase(int *order, int *count, int i) {
  int at = 0;
  while (order[at] != i)
    at++;
  --*count;
  memmove(order + at, order + at + 1, (size_t)(*count - at) * sizeof *order);
}

static bool naive_is_once(const struct naive *naive, int i) {
  return !naive->is_reused[i] || naive->demoted[i] != naive->demotions;
}

static void naive_grow(struct naive *naive, size_t bytes) {
  naive->total += bytes;
  if (naive->total > naive->peak)
    naive->peak = naive->total;
}

static void naive_place(struct naive *naive, int i, size_t bytes, bool newest) {
  bool once = naive_is_once(naive, i);
  int *count = once ? &naive->onces : &naive->reuseds;
  insert(once ? naive->once : naive->reused, count, newest ? 0 : *count, i);
  naive->in[i] = true;
  naive->bytes[i] = bytes;
  naive_grow(naive, bytes);
}

static void naive_remove(struct naive *naive, int i) {
  bool once = naive_is_once(naive, i);
  erase(once ? naive->once : naive->reused, once ? &naive->onces : &naive->reuseds, i);
  naive->in[i] = false;
  naive->total -= naive->bytes[i];
}

static int naive_coldest(const struct naive *naive) {
  if (naive->onces > 0)
    return naive->once[naive->onces - 1];
  return naive->reuseds > 0 ? naive->reused[naive->reuseds - 1] : -1;
}

static bool naive_press(struct naive *naive) {
  bool was_loose = naive->loose;
  naive->pressure += naive->given_up ? WR_RETAIN_TURN : naive->pressure > 0 ? -1 : 0;
  if (naive->pressure > WR_RETAIN_PRESSURE_MAX)
    naive->pressure = WR_RETAIN_PRESSURE_MAX;
  naive->given_up = false;
  if (naive->pressure >= WR_RETAIN_LOOSE || naive->pressure == 0)
    naive->loose = naive->pressure > 0;
  return naive->loose && !was_loose;
}

static void naive_missed(struct naive *naive, unsigned class) {
  bool presses = naive_press(naive);
  if (!naive->jumped[class] && !presses)
    return;
  memset(naive->jumped, 0, sizeof naive->jumped);
  for (int i = 0; i < naive->reuseds; i++)
    naive->once[naive->onces++] = naive->reused[i];
  naive->reuseds = 0;
  naive->demotions++;
}

static bool is_same(const struct wr_list *list, const int *order, int count) {
  const struct wr_link *link = list->front;
  for (int i = 0; i < count; i++, link = link->older)
    if (link != &member[order[i]].age)
      return false;
  return link == NULL;
}

/* One assertion for all of it: each costs a system call. */
static void compare(const struct naive *naive) {
  int coldest = naive_coldest(naive);
  ck_assert(is_same(&retain.once, naive->once, naive->onces) &&
            is_same(&retain.reused, naive->reused, naive->reuseds) &&
            wr_retain_coldest(&retain) == (coldest < 0 ? NULL : &member[coldest]) &&
            wr_counter_read(&retain.total) == naive->total &&
            wr_counter_read(&retain.peak) == naive->peak);
}

static void give_up_coldest(struct naive *naive, uint64_t *state) {
  int i = naive_coldest(naive);
  unsigned class = (unsigned)unit_below(state, 6) * 51;
  bool back = unit_below(state, 3) == 0;
  if (i < 0)
    return;
  wr_retain_remove(&retain, &member[i], naive->bytes[i]);
  wr_retain_give_up(&retain, &member[i], class);
  naive_remove(naive, i);
  if (naive_is_once(naive, i) && naive->reuseds > 0 &&
      naive->when[naive->reused[naive->reuseds - 1]] < naive->when[i])
    naive->jumped[class] = true;
  if (back) {
    /* Another thread may miss something meanwhile. */
    wr_retain_missed(&retain, 51);
    naive_missed(naive, 51);
    wr_retain_return(&retain, &member[i], naive->bytes[i] / 2 + 1);
    naive_place(naive, i, naive->bytes[i] / 2 + 1, false);
  }
}

static void step(struct naive *naive, uint64_t *state) {
  int i = (int)unit_below(state, MEMBERS);
  size_t what = unit_below(state, 10);
  if (what == 0) {
    unsigned class = (unsigned)unit_below(state, 6) * 51;
    wr_retain_missed(&retain, class);
    naive_missed(naive, class);
  } else if (what < 3) {
    give_up_coldest(naive, state);
    /* Now and then it is because of the mark. */
    if (unit_below(state, 40) == 0) {
      wr_retain_press(&retain);
      naive->given_up = true;
    }
  } else if (naive->in[i]) {
    wr_retain_remove(&retain, &member[i], naive->bytes[i]);
    naive_remove(naive, i);
  } else {
    size_t bytes = 1 + unit_below(state, 1000);
    naive->is_reused[i] = unit_below(state, 2) == 0 && !naive->loose;
    naive->demoted[i] = naive->demotions;
    naive->when[i] = naive->now++;
    wr_retain_add(&retain, &member[i], bytes, naive->is_reused[i] || (naive->loose && i % 2 == 0));
    naive_place(naive, i, bytes, true);
  }
}

/* Members that are set aside come and go beside those of both lists. */
START_TEST(what_is_set_aside_is_not_the_coldest) {
  struct wr_retain_aside aside = {0};
  begin(SIZE_MAX);
  ck_assert_ptr_null(wr_retain_first_aside(&aside));
  for (int i = 0; i < 8; i++)
    add(i, i >= 4);
  for (int i = 0; i < 6; i++)
    wr_retain_set_aside(&retain, &aside, wr_retain_coldest(&retain));
  ck_assert_uint_eq(wr_counter_read(&retain.total), 800);
  ck_assert_ptr_eq(wr_retain_first_aside(&aside), &member[0]);
  /* Served: the first, the last, and one between. */
  wr_retain_remove(&retain, &member[0], 100);
  wr_retain_remove(&retain, &member[5], 100);
  wr_retain_remove(&retain, &member[2], 100);
  ck_assert_ptr_eq(wr_retain_first_aside(&aside), &member[1]);
  expect_coldest(6, 0);
  wr_retain_remove(&retain, &member[1], 100);
  ck_assert_ptr_eq(wr_retain_first_aside(&aside), &member[3]);
  expect_coldest(7, 0);
  ck_assert_ptr_null(wr_retain_coldest(&retain));
  wr_retain_remove(&retain, &member[3], 100);
  wr_retain_remove(&retain, &member[4], 100);
  ck_assert_ptr_null(wr_retain_first_aside(&aside));
  ck_assert_uint_eq(wr_counter_read(&retain.total), 0);
}
END_TEST

START_TEST(what_is_refused_again_is_tried_half_as_often) {
  struct wr_retain_aside aside = {0};
  unsigned wait = 1;
  wr_retain_refused(&aside, false);
  wr_retain_refused(&aside, false);
  for (int i = 0; i < 12; i++) {
    for (unsigned chance = 0; chance < wait; chance++)
      ck_assert(!wr_retain_is_due(&aside));
    ck_assert(wr_retain_is_due(&aside));
    wr_retain_refused(&aside, true);
    wait = wait < WR_RETAIN_WAIT_MAX ? 2 * wait : wait;
  }
  ck_assert_uint_eq(wait, 64);
  wr_retain_accepted(&aside);
  ck_assert(wr_retain_is_due(&aside));
  ck_assert(wr_retain_is_due(&aside));
}
END_TEST

START_TEST(as_the_naive_model) {
  for (uint64_t seed = 1; seed <= 12; seed++) {
    static struct naive naive;
    uint64_t state = seed * 1000003;
    memset(&naive, 0, sizeof naive);
    begin(SIZE_MAX);
    for (int i = 0; i < 4000; i++) {
      step(&naive, &state);
      compare(&naive);
    }
    ck_assert_int_gt(naive.demotions, 10);
  }
}
END_TEST

UNIT_SUITE(retain, an_empty_one_has_no_coldest, the_coldest_goes_first,
           what_is_used_once_goes_before_what_is_reused, a_miss_after_a_wrong_guess_demotes,
           no_older_reused_one_no_wrong_guess, a_demotion_forgets_every_guess,
           what_returns_is_the_next_to_go, totals_excess_and_peak,
           giving_up_and_missing_by_turns_makes_it_loose, hits_end_it_too,
           what_is_set_aside_is_not_the_coldest, what_is_refused_again_is_tried_half_as_often,
           bursts_do_not_make_it_loose, the_clock_may_wrap, as_the_naive_model)
