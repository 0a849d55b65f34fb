/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payloads that change their size where they are, and payloads whose pages move: what they may grow
 * into, what they must not, the counts, and what is left when the source fails.
 */
#include <errno.h>
#include <string.h>

#include "fake.h"
#include "span.h"
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

static bool resize(struct wr_span *span, size_t size) {
  char *user = span->user;
  size_t usable = span->usable, lead = (size_t)(user - span->base);
  bool done = wr_span_resize(span, size);
  wr_span_check(spans);
  ck_assert_ptr_eq(span->user, user);
  if (done)
    usable = wr_bits_up(lead + size, fake.page) - lead;
  ck_assert_uint_eq(span->usable, usable);
  ck_assert_uint_le(lead + span->usable, wr_extent_length(span));
  return done;
}

static size_t retained(void) {
  return wr_counter_read(&spans->retain.total);
}

START_TEST(within_the_range) {
  for (const size_t *page = fake_pages; *page != 0; page++) {
    struct wr_span *span;
    size_t room;
    begin(*page, SIZE_MAX);
    span = take(17 * 64 * KIB + 1);
    room = wr_extent_length(span);
    ck_assert(resize(span, room - (size_t)(span->user - span->base)));
    ck_assert_uint_eq(wr_keep_active(spans), room);
    ck_assert(resize(span, 100000));
    /* What was touched stays counted. */
    ck_assert_uint_eq(wr_keep_active(spans), room);
    fake_give(span);
    ck_assert_uint_eq(retained(), room);
  }
}
END_TEST

START_TEST(not_into_what_is_in_use) {
  struct wr_span *span;
  begin(4096, SIZE_MAX);
  span = take(MIB);
  (void)take(64 * KIB);
  ck_assert(!resize(span, MIB + 1));
  span = take(MIB);
  ck_assert_ptr_nonnull(fake_slab(spans, 1));
  ck_assert(!resize(span, MIB + 1));
  ck_assert(resize(span, MIB));
}
END_TEST

START_TEST(an_aligned_block_has_the_room_behind_it) {
  size_t stale;
  begin(4096, SIZE_MAX);
  (void)take(64 * KIB);
  for (int i = 0; i < 5; i++) {
    struct wr_span *span = wr_span_take(spans, 3 * MIB, MIB, &stale);
    struct wr_span *other = take(4 * MIB);
    ck_assert_ptr_nonnull(span);
    ck_assert(resize(span, wr_extent_length(span) - (size_t)(span->user - span->base)));
    (void)resize(span, 5 * MIB);
    ck_assert_uint_eq((uintptr_t)span->user % MIB, 0);
    fake_give(other);
  }
}
END_TEST

START_TEST(into_free_address_space) {
  for (const size_t *page = fake_pages; *page != 0; page++) {
    struct wr_span *span, *next;
    begin(*page, 0);
    span = take(MIB);
    next = take(8 * MIB);
    (void)take(64 * KIB);
    /* Nothing of it is kept under this mark. */
    fake_touch(next->user, 8 * MIB);
    fake_give(next);
    fake_forget();
    ck_assert(resize(span, 3 * MIB));
    ck_assert(resize(span, 9 * MIB));
    ck_assert(!resize(span, 9 * MIB + 1));
    ck_assert_uint_eq(fake_calls(FAKE_ANY), 0);
    for (size_t i = MIB; i < 9 * MIB; i += KIB)
      ck_assert_int_eq(span->user[i], 0);
    ck_assert_uint_eq(wr_keep_active(spans), 9 * MIB + 64 * KIB);
  }
}
END_TEST

START_TEST(into_new_address_space_at_the_end) {
  struct wr_span *span;
  begin(4096, SIZE_MAX);
  span = take(100 * KIB);
  fake_forget();
  for (size_t size = MIB; size <= 64 * MIB; size *= 2)
    ck_assert(resize(span, size));
  /* One each, and one for weir's own memory. */
  ck_assert_uint_le(fake_calls(FAKE_MAP), 8);
  /* No more than is needed. */
  ck_assert_uint_le(wr_counter_read(&spans->mapped), 65 * MIB);
  ck_assert_uint_eq(fake_resident(), 0);
}
END_TEST

START_TEST(not_where_mappings_stand_apart) {
  struct wr_span *span;
  begin(4096, SIZE_MAX);
  fake.ignores_hints = true;
  span = take(100 * KIB);
  ck_assert(!resize(span, 64 * MIB));
  fake_give(span);
}
END_TEST

START_TEST(not_without_memory) {
  struct wr_span *span;
  begin(4096, SIZE_MAX);
  span = take(100 * KIB);
  fake_fail(FAKE_MAP, 1, SIZE_MAX);
  ck_assert(!resize(span, 64 * MIB));
  ck_assert(!resize(span, WR_SPAN_MAX + 1));
  ck_assert(!resize(span, SIZE_MAX / 2));
}
END_TEST

START_TEST(into_retained_memory_that_nothing_came_back_for) {
  struct wr_span *span, *next, *last;
  begin(4096, SIZE_MAX);
  span = take(MIB);
  next = take(2 * MIB);
  last = take(4 * MIB);
  (void)take(64 * KIB);
  fake_touch(next->user, 2 * MIB);
  fake_touch(last->user, 4 * MIB);
  fake_give(next);
  fake_give(last);
  fake_forget();
  ck_assert(resize(span, 5 * MIB));
  ck_assert_uint_eq(retained(), 2 * MIB);
  ck_assert_uint_eq(wr_keep_active(spans), 5 * MIB + 64 * KIB);
  ck_assert_int_eq(span->user[5 * MIB - 1], (char)0xa5);
  /* The rest serves others, and this span the like of it when it is free. */
  last = take(2 * MIB);
  ck_assert_ptr_eq(last->base, span->base + 5 * MIB);
  fake_give(last);
  fake_give(span);
  span = take(5 * MIB);
  ck_assert_uint_eq(fake_calls(FAKE_ANY), 0);
  ck_assert_uint_eq(retained(), 2 * MIB);
}
END_TEST

START_TEST(not_into_retained_memory_that_is_used_again) {
  struct wr_span *span, *next;
  begin(4096, SIZE_MAX);
  span = take(MIB);
  next = take(2 * MIB);
  (void)take(64 * KIB);
  fake_give(next);
  ck_assert_ptr_eq(take(2 * MIB), next);
  fake_give(next);
  ck_assert(!resize(span, 2 * MIB));
  ck_assert_ptr_eq(take(2 * MIB), next);
}
END_TEST

START_TEST(what_was_written_is_not_taken_for_zero) {
  struct wr_span *span, *next;
  size_t stale;
  begin(4096, SIZE_MAX);
  span = take(MIB);
  next = take(MIB);
  (void)take(64 * KIB);
  fake_touch(next->user, 100);
  fake_give(next);
  ck_assert(resize(span, 2 * MIB));
  fake_give(span);
  ck_assert_ptr_eq(wr_span_take(spans, 2 * MIB, 1, &stale), span);
  ck_assert_uint_eq(stale, 2 * MIB);
}
END_TEST

START_TEST(not_where_another_of_that_length_is_there) {
  struct wr_span *span, *other;
  begin(4096, SIZE_MAX);
  other = take(2 * MIB);
  (void)take(64 * KIB);
  span = take(MIB);
  fake_give(other);
  ck_assert(!resize(span, 2 * MIB));
  ck_assert(resize(span, 3 * MIB));
  ck_assert_ptr_eq(take(2 * MIB), other);
}
END_TEST

START_TEST(what_was_lengthened_serves_others_when_it_is_free) {
  struct wr_span *span;
  begin(4096, SIZE_MAX);
  span = take(MIB);
  ck_assert(resize(span, 4 * MIB));
  fake_give(span);
  fake_forget();
  ck_assert_ptr_eq(take(MIB), span);
  ck_assert_ptr_eq(take(3 * MIB)->base, span->base + MIB);
  ck_assert_uint_eq(fake_calls(FAKE_ANY), 0);
}
END_TEST

/* Frees and takes by turns, with nothing kept: until the policy is loose. */
static void loosen(void) {
  for (int i = 0; !spans->retain.loose; i++) {
    ck_assert_int_lt(i, 10);
    fake_give(take(MIB));
    wr_settle(spans);
  }
}

START_TEST(where_no_two_are_alike_all_memory_serves) {
  uint64_t state = 1;
  size_t purges;
  begin(4096, 0);
  loosen();
  wr_settle_set_mark(spans, 16 * MIB);
  purges = 0;
  for (int i = 0; i < 4000; i++) {
    struct wr_span *one = take(100 * KIB + unit_below(&state, 4 * MIB));
    struct wr_span *other = take(100 * KIB + unit_below(&state, 4 * MIB));
    fake_touch(one->user, one->usable);
    fake_touch(other->user, other->usable);
    fake_give(one);
    fake_give(other);
    if (i == 2000)
      purges = wr_counter_read(&spans->purged_bytes);
  }
  /* All of it would be 4 MiB a turn. */
  ck_assert_uint_lt(wr_counter_read(&spans->purged_bytes) - purges, 2000 * 128 * KIB);
}
END_TEST

static struct wr_span *moved_from, *moved_to;

static int move(size_t from, size_t to) {
  moved_from = take(from);
  (void)take(64 * KIB);
  moved_to = take(to);
  fake_touch(moved_from->user, from);
  for (size_t i = 0; i < from; i += 4096)
    memset(moved_from->user + i, (int)(i >> 12), wr_bits_min(from - i, 4096));
  return wr_span_move(moved_from, moved_to, to);
}

START_TEST(pages_move) {
  begin(4096, SIZE_MAX);
  ck_assert_int_eq(move(MIB, 2 * MIB), 0);
  wr_span_check(spans);
  ck_assert_uint_eq(fake_calls(FAKE_MOVE), 1);
  ck_assert_uint_eq(fake_resident(), MIB);
  for (size_t i = 0; i < 2 * MIB; i += 1000)
    ck_assert_int_eq(moved_to->user[i], i < MIB ? (char)(i >> 12) : 0);
  /* What they have left is free address space. */
  fake_give(moved_from);
  ck_assert_uint_eq(retained(), 0);
  ck_assert_uint_eq(wr_keep_active(spans), 2 * MIB + 64 * KIB);
  fake_give(moved_to);
  ck_assert_uint_eq(retained(), 2 * MIB);
}
END_TEST

START_TEST(pages_move_wherever_the_blocks_begin) {
  static const size_t over[] = {0, 1, 100, 2048, 4000, 4095};
  for (size_t i = 0; i < 36; i++) {
    size_t from = MIB + over[i / 6], to = 2 * MIB + over[i % 6];
    begin(4096, SIZE_MAX);
    ck_assert_int_eq(move(from, to), 0);
    wr_span_check(spans);
    ck_assert_uint_eq((uintptr_t)moved_to->user % 4096, (uintptr_t)moved_from->user % 4096);
    ck_assert_uint_eq((uintptr_t)(moved_to->user + moved_to->usable) % 4096, 0);
    ck_assert_uint_ge(moved_to->usable, to);
    ck_assert(moved_to->user + moved_to->usable <= moved_to->base + wr_extent_touched(moved_to));
    for (size_t at = 0; at < from; at += 4096)
      ck_assert_int_eq(moved_to->user[at], (char)(at >> 12));
    fake_give(moved_from);
    ck_assert_uint_eq(retained(), 0);
    fake_give(moved_to);
  }
}
END_TEST

START_TEST(pages_behind_the_block_stay) {
  size_t stale;
  begin(4096, SIZE_MAX);
  moved_from = take(2 * MIB);
  fake_touch(moved_from->user, 2 * MIB);
  ck_assert(resize(moved_from, MIB));
  (void)take(64 * KIB);
  moved_to = take(4 * MIB);
  ck_assert_int_eq(wr_span_move(moved_from, moved_to, 4 * MIB), 0);
  ck_assert_uint_eq(fake_call(FAKE_MOVE, 0)->length, MIB);
  ck_assert_int_eq(moved_to->user[MIB - 1], (char)0xa5);
  ck_assert_int_eq(moved_to->user[MIB], 0);
  fake_give(moved_from);
  ck_assert_ptr_eq(wr_span_take(spans, 2 * MIB, 1, &stale), moved_from);
  ck_assert_uint_eq(stale, 2 * MIB);
}
END_TEST

START_TEST(locked_pages_do_not_move) {
  begin(4096, SIZE_MAX);
  fake.locked = true;
  ck_assert_int_ne(move(MIB, 2 * MIB), 0);
  ck_assert_uint_eq(fake_calls(FAKE_MOVE), 0);
}
END_TEST

START_TEST(pages_that_cannot_move_stay) {
  begin(4096, SIZE_MAX);
  fake_fail(FAKE_MOVE, 1, 1);
  ck_assert_int_eq(move(MIB, 2 * MIB), EFAULT);
  wr_span_check(spans);
  ck_assert_int_eq(moved_from->user[MIB - 1], (char)255);
  fake_give(moved_from);
  fake_give(moved_to);
  ck_assert_uint_eq(retained(), 3 * MIB);
}
END_TEST

START_TEST(a_target_that_is_lost_is_forgotten) {
  size_t mapped;
  begin(4096, SIZE_MAX);
  fake.loses = true;
  fake_fail(FAKE_MOVE, 1, 1);
  ck_assert_int_eq(move(MIB, 2 * MIB), ENOTRECOVERABLE);
  wr_span_check(spans);
  mapped = wr_counter_read(&spans->mapped);
  ck_assert_uint_eq(wr_keep_active(spans), MIB + 64 * KIB);
  ck_assert_int_eq(moved_from->user[MIB - 1], (char)255);
  moved_to = take(2 * MIB);
  fake_touch(moved_to->user, 2 * MIB);
  ck_assert_uint_ge(wr_counter_read(&spans->mapped), mapped + 2 * MIB);
}
END_TEST

START_TEST(pages_move_a_thousand_times_at_most) {
  begin(4096, 0);
  for (int i = 0; i < 1005; i++) {
    ck_assert_int_eq(move(64 * KIB + 1, 2 * 64 * KIB), i < 1000 ? 0 : ENOMEM);
    fake_give(moved_from);
    fake_give(moved_to);
  }
  ck_assert_uint_eq(wr_counter_read(&arena->source.moves), 1000);
}
END_TEST

UNIT_SUITE(span_resize, within_the_range, not_into_what_is_in_use,
           an_aligned_block_has_the_room_behind_it, into_free_address_space,
           into_new_address_space_at_the_end, not_where_mappings_stand_apart, not_without_memory,
           into_retained_memory_that_nothing_came_back_for,
           not_into_retained_memory_that_is_used_again, what_was_written_is_not_taken_for_zero,
           not_where_another_of_that_length_is_there,
           what_was_lengthened_serves_others_when_it_is_free,
           where_no_two_are_alike_all_memory_serves, pages_move,
           pages_move_wherever_the_blocks_begin, pages_behind_the_block_stay,
           locked_pages_do_not_move, pages_that_cannot_move_stay,
           a_target_that_is_lost_is_forgotten, pages_move_a_thousand_times_at_most)
