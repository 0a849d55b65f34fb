/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists against an array: after each random change, both hold the same members in the same order
 * in both directions.
 */
#include "list.h"

#include <string.h>

#include "unit.h"

#define MEMBERS 24

struct member {
  int before;
  struct wr_link link;
};

struct model {
  struct wr_list list;
  struct member *order[MEMBERS]; /* front first */
  int count;
};

/* One assertion for all of it: each costs a system call. */
static void check(const struct model *model) {
  const struct wr_link *newer = NULL, *link = model->list.front;
  bool good = wr_list_is_empty(&model->list) == (model->count == 0);
  for (int i = 0; i < model->count && good; i++, newer = link, link = link->older)
    good = link == &model->order[i]->link && link->newer == newer &&
           WR_LIST_MEMBER(link, struct member, link) == model->order[i];
  ck_assert(good && link == NULL && model->list.back == newer);
}

static void insert(struct model *model, int at, struct member *member) {
  memmove(&model->order[at + 1], &model->order[at],
          (size_t)(model->count - at) * sizeof model->order[0]);
  model->order[at] = member;
  model->count++;
}

static struct member *erase(struct model *model, int at) {
  struct member *member = model->order[at];
  model->count--;
  memmove(&model->order[at], &model->order[at + 1],
          (size_t)(model->count - at) * sizeof model->order[0]);
  return member;
}

static void add(struct model *model, struct member *member, bool front) {
  wr_list_add(&model->list, &member->link, !front);
  insert(model, front ? 0 : model->count, member);
}

START_TEST(a_zeroed_list_is_empty) {
  struct model model;
  memset(&model, 0, sizeof model);
  check(&model);
}
END_TEST

START_TEST(append_of_empty_lists) {
  struct model one, two;
  struct member member;
  memset(&one, 0, sizeof one);
  memset(&two, 0, sizeof two);
  wr_list_append(&one.list, &two.list);
  check(&one);
  check(&two);
  add(&two, &member, true);
  wr_list_append(&one.list, &two.list);
  ck_assert(wr_list_is_empty(&two.list));
  insert(&one, 0, erase(&two, 0));
  check(&one);
  check(&two);
  wr_list_append(&one.list, &two.list);
  check(&one);
}
END_TEST

START_TEST(random_changes) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    struct model model[2];
    struct member member[MEMBERS];
    struct member *idle[MEMBERS];
    int idles = MEMBERS;
    uint64_t state = seed;
    memset(model, 0, sizeof model);
    for (int i = 0; i < MEMBERS; i++)
      idle[i] = &member[i];
    for (int step = 0; step < 2000; step++) {
      struct model *one = &model[unit_below(&state, 2)];
      size_t what = unit_below(&state, 9);
      if (what < 4 && idles > 0) {
        add(one, idle[--idles], what < 2);
      } else if (what < 8 && one->count > 0) {
        int at = (int)unit_below(&state, (size_t)one->count);
        wr_list_remove(&one->list, &one->order[at]->link);
        idle[idles++] = erase(one, at);
      } else if (what == 8) {
        wr_list_append(&model[0].list, &model[1].list);
        while (model[1].count > 0)
          insert(&model[0], model[0].count, erase(&model[1], 0));
      }
      check(&model[0]);
      check(&model[1]);
    }
  }
}
END_TEST

START_TEST(a_link_is_added_behind_any_other) {
  struct wr_link link[4];
  for (int at = 0; at < 4; at++) {
    struct wr_list list = {NULL, NULL};
    struct wr_link *want[4], *seen = NULL, *expected = NULL;
    int count = 0;
    for (int i = 2; i >= 0; i--)
      wr_list_add_front(&list, &link[i]);
    wr_list_add_behind(&list, at > 0 ? &link[at - 1] : NULL, &link[3]);
    for (int i = 0; i < 4; i++) {
      if (i == at)
        want[count++] = &link[3];
      if (i < 3)
        want[count++] = &link[i];
    }
    seen = list.front;
    for (int i = 0; i < 4; i++, seen = seen->older) {
      ck_assert_ptr_eq(seen, want[i]);
      ck_assert_ptr_eq(seen->newer, expected);
      expected = seen;
    }
    ck_assert_ptr_null(seen);
    ck_assert_ptr_eq(list.back, want[3]);
  }
}
END_TEST

UNIT_SUITE(list, a_link_is_added_behind_any_other, a_zeroed_list_is_empty, append_of_empty_lists,
           random_changes)
