/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena: what it takes over, and its locks around fork.
 */
#include "arena.h"

#include "fake.h"
#include "unit.h"

static uint32_t held(const struct wr_arena *arena) {
  return (atomic_load(&arena->spans.growing.word) != 0) +
         (atomic_load(&arena->spans.lock.word) != 0) + (atomic_load(&arena->meta.lock.word) != 0);
}

START_TEST(it_takes_over_source_mark_and_hint) {
  struct wr_arena *arena = fake_arena(16384, 12345);
  ck_assert_uint_eq(arena->spans.page, 16384);
  ck_assert_uint_eq(wr_counter_read(&arena->spans.retain.mark), 12345);
  ck_assert_ptr_eq(arena->spans.source, &arena->source);
  ck_assert_ptr_eq(arena->meta.source, &arena->source);
  wr_arena_init(arena, SIZE_MAX, (void *)(uintptr_t)WR_UNIT);
  ck_assert_ptr_eq(arena->spans.end, (void *)(uintptr_t)WR_UNIT);
  wr_span_check(&arena->spans);
}
END_TEST

START_TEST(the_parent_gives_every_lock_back) {
  struct wr_arena *arena = fake_arena(4096, SIZE_MAX);
  wr_lock_forking();
  wr_arena_lock_all(arena);
  ck_assert_uint_eq(held(arena), 3);
  wr_arena_unlock_all(arena);
  wr_lock_forked(false);
  ck_assert_uint_eq(held(arena), 0);
}
END_TEST

START_TEST(the_child_finds_every_lock_free) {
  struct wr_arena *arena = fake_arena(4096, SIZE_MAX);
  size_t stale;
  wr_lock_forking();
  wr_arena_lock_all(arena);
  wr_lock_forked(true);
  wr_arena_forked(arena);
  ck_assert_uint_eq(held(arena), 0);
  ck_assert_ptr_nonnull(wr_span_take(&arena->spans, 100000, 1, &stale));
}
END_TEST

UNIT_SUITE(arena, it_takes_over_source_mark_and_hint, the_parent_gives_every_lock_back,
           the_child_finds_every_lock_free)
