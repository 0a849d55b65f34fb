/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The retention policy: see retain.h. The caller holds the arena's lock.
 */
#include "retain.h"

#include <string.h>

#include "bits.h"

#define MEMBER(link) WR_LIST_MEMBER(link, struct wr_retain_member, age)

void wr_retain_return(struct wr_retain *retain, struct wr_retain_member *member, size_t bytes) {
  wr_list_add_back(wr_retain_is_once(retain, member) ? &retain->once : &retain->reused,
                   &member->age);
  wr_retain_grow(retain, bytes);
}

struct wr_retain_member *wr_retain_coldest(const struct wr_retain *retain) {
  struct wr_link *back = retain->once.back != NULL ? retain->once.back : retain->reused.back;
  return back != NULL ? MEMBER(back) : NULL;
}

void wr_retain_set_aside(struct wr_retain *retain, struct wr_retain_aside *aside,
                         struct wr_retain_member *member) {
  wr_list_remove(wr_retain_is_once(retain, member) ? &retain->once : &retain->reused, &member->age);
  if (wr_list_is_empty(&aside->list)) {
    wr_list_add_front(&aside->list, &aside->ends[0]);
    wr_list_add_front(&aside->list, &aside->ends[1]);
  }
  wr_list_add_behind(&aside->list, aside->list.front, &member->age);
}

struct wr_retain_member *wr_retain_first_aside(const struct wr_retain_aside *aside) {
  struct wr_link *link = aside->list.back != NULL ? aside->list.back->newer : aside->list.front;
  return link != aside->list.front ? MEMBER(link) : NULL;
}

bool wr_retain_is_due(struct wr_retain_aside *aside) {
  if (aside->left == 0)
    return true;
  aside->left--;
  return false;
}

void wr_retain_refused(struct wr_retain_aside *aside, bool again) {
  if (aside->wait == 0)
    aside->wait = 1;
  else if (again)
    aside->wait = (unsigned)wr_bits_min(2 * aside->wait, WR_RETAIN_WAIT_MAX);
  aside->left = aside->wait;
}

void wr_retain_accepted(struct wr_retain_aside *aside) {
  aside->wait = aside->left = 0;
}

void wr_retain_give_up(struct wr_retain *retain, const struct wr_retain_member *member,
                       unsigned class) {
  const struct wr_link *oldest = retain->reused.back;
  /* The difference of two stamps has the right sign even after the clock has wrapped. */
  if (wr_retain_is_once(retain, member) && oldest != NULL &&
      (int32_t)(MEMBER(oldest)->stamp - member->stamp) < 0)
    wr_bits_include(retain->jumped, class);
}

static void demote(struct wr_retain *retain) {
  memset(retain->jumped, 0, sizeof retain->jumped);
  wr_list_append(&retain->once, &retain->reused);
  retain->epoch++;
}

static void set_pressure(struct wr_retain *retain, unsigned pressure) {
  retain->pressure = (uint8_t)wr_bits_min(pressure, WR_RETAIN_PRESSURE_MAX);
  if (pressure >= WR_RETAIN_LOOSE)
    retain->loose = true;
  else if (pressure == 0)
    retain->loose = false;
}

/* Notes a miss; returns whether the policy becomes loose by it. */
static bool note_miss(struct wr_retain *retain) {
  bool was_loose = retain->loose;
  if (retain->given_up)
    set_pressure(retain, retain->pressure + WR_RETAIN_TURN);
  else if (retain->pressure > 0)
    set_pressure(retain, retain->pressure - 1U);
  retain->given_up = false;
  return retain->loose && !was_loose;
}

void wr_retain_hit(struct wr_retain *retain) {
  if (++retain->hits < WR_RETAIN_HITS)
    return;
  retain->hits = 0;
  if (retain->pressure > 0)
    set_pressure(retain, retain->pressure - 1U);
}

void wr_retain_missed(struct wr_retain *retain, unsigned class) {
  bool jumped = wr_bits_has(retain->jumped, class);
  wr_bits_include(retain->lacking, class);
  if (note_miss(retain) || jumped)
    demote(retain);
}
