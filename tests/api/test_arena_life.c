/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of arenas and of all their blocks at once: reset and destroy with blocks of all sizes
 * left, by whichever thread, while the threads that used them live on; and the steady loop of
 * taking and resetting, which makes neither a fault nor a system call.
 */
#include "arenas.h"

#include <semaphore.h>
#include <signal.h>

enum { COUNT = 2000 };
static void *blocks[COUNT];
static const size_t mixed[] = {16,    100,    1000, 4096,   20000,   65536,
                               65537, 100000, 48,   300000, 1 << 20, 7000};

/* `count` blocks of all sizes, each full of its number. */
static void take_mixed(weir_arena_t *arena, size_t count) {
  size_t i;

  for (i = 0; i < count; i++) {
    size_t size = mixed[i % LENGTH(mixed)];
    blocks[i] = weir_arena_alloc(arena, size);
    ck_assert_ptr_nonnull(blocks[i]);
    memset(blocks[i], (int)(i % 251), size);
  }
}

static void check_mixed(size_t count) {
  size_t i;

  for (i = 0; i < count; i++)
    ck_assert(all_are(blocks[i], (unsigned char)(i % 251), mixed[i % LENGTH(mixed)]));
}

START_TEST(reset_takes_all_blocks) {
  weir_arena_t *arena = make(WEIR_RETAIN_UNLIMITED, WEIR_LIMIT_NONE, 0);
  size_t round;

  for (round = 0; round < 10; round++) {
    weir_stats_t before;
    take_mixed(arena, 100 + 20 * round);
    check_mixed(100 + 20 * round);
    before = now(arena);
    weir_arena_reset(arena);
    ck_assert_uint_eq(now(arena).live, 0);
    ck_assert_uint_eq(now(arena).fragmented, 0);
    /* Nothing went: the mark has no limit. */
    ck_assert_uint_eq(now(arena).committed, before.committed);
    ck_assert_uint_eq(calls(arena), before.sys_map + before.sys_unmap + before.sys_purge +
                                        before.sys_advise + before.sys_probe + before.sys_move);
  }
  weir_arena_destroy(arena);
}
END_TEST

START_TEST(reset_keeps_the_mark) {
  static const size_t marks[] = {0, 4096, 1 << 20, 8 << 20, WEIR_RETAIN_UNLIMITED};
  weir_arena_t *arena = make(marks[_i], WEIR_LIMIT_NONE, 0);
  size_t before = resident(), round;

  for (round = 0; round < 3; round++) {
    take_mixed(arena, 200);
    weir_arena_reset(arena);
    ck_assert_uint_eq(now(arena).live, 0);
    /* Up to 1 MiB of empty slabs stand outside of it, but below 1 MiB none do. */
    if (marks[_i] != WEIR_RETAIN_UNLIMITED)
      ck_assert_uint_le(now(arena).retained, marks[_i] < MIB ? marks[_i] : marks[_i] + MIB);
    ck_assert_uint_eq(weir_arena_retain(arena), marks[_i]);
  }
  if (!SANITIZED && marks[_i] != WEIR_RETAIN_UNLIMITED)
    ck_assert_uint_le(resident(), before + marks[_i] + 2 * MIB);
  weir_arena_destroy(arena);
}
END_TEST

START_TEST(zero_after_reset) {
  weir_arena_t *arena = make_plain();
  size_t i, round;

  for (round = 0; round < 3; round++) {
    take_mixed(arena, 120);
    weir_arena_reset(arena);
    for (i = 0; i < 120; i++) {
      size_t size = mixed[(i * 5) % LENGTH(mixed)];
      blocks[i] = weir_arena_zalloc(arena, 1, size);
      ck_assert(all_are(blocks[i], 0, size));
    }
    weir_arena_reset(arena);
  }
  weir_arena_destroy(arena);
}
END_TEST

/* What a frame-by-frame program does: after two turns nothing is left to the kernel. */
START_TEST(a_loop_of_resets_settles) {
  static char buffer[8 << 20];
  weir_arena_t *arena;
  uint64_t called = 0, fresh = 0;
  long faulted = 0;
  size_t turn, i;

  if (_i == 0)
    arena = make_plain();
  else if (_i == 1)
    arena = make(WEIR_RETAIN_UNLIMITED, WEIR_LIMIT_NONE, 0);
  else if (_i == 2)
    arena = make_in(buffer, sizeof buffer);
  else
    arena = make(0, WEIR_LIMIT_NONE, 16 * MIB);
  for (turn = 0; turn < 20; turn++) {
    if (turn == 3) {
      called = calls(arena);
      fresh = now(arena).fresh_commits;
      /* Last, because the code of the others may not be there before. */
      faulted = faults();
    }
    for (i = 0; i < 40; i++) {
      size_t size = mixed[i % LENGTH(mixed)];
      blocks[i] = weir_arena_alloc(arena, size);
      ck_assert_ptr_nonnull(blocks[i]);
      memset(blocks[i], (int)i, size);
      if (i % 5 == 4)
        weir_free(blocks[i - 1]);
    }
    weir_arena_reset(arena);
  }
  faulted = faults() - faulted;
  ck_assert_uint_eq(calls(arena), called);
  ck_assert_uint_eq(now(arena).fresh_commits, fresh);
  if (!SANITIZED)
    ck_assert_int_eq(faulted, 0);
  weir_arena_destroy(arena);
}
END_TEST

/* A thread that does as it is told, so that its heap lives between the steps. */
struct helper {
  pthread_t thread;
  sem_t begin, done;
  weir_arena_t *arena;
  void *blocks[100];
  enum { TAKE, FREE_MAIN, CHECK, END } order;
};

static void *help(void *argument) {
  struct helper *helper = argument;
  size_t i;

  for (;;) {
    sem_wait(&helper->begin);
    switch (helper->order) {
    case TAKE:
      for (i = 0; i < LENGTH(helper->blocks); i++) {
        size_t size = mixed[i % LENGTH(mixed)];
        helper->blocks[i] = weir_arena_alloc(helper->arena, size);
        ck_assert_ptr_nonnull(helper->blocks[i]);
        memset(helper->blocks[i], (int)i + 100, size);
      }
      break;
    case FREE_MAIN:
      for (i = 0; i < 100; i += 2)
        weir_free(blocks[i]);
      break;
    case CHECK:
      for (i = 0; i < LENGTH(helper->blocks); i++) {
        ck_assert(all_are(helper->blocks[i], (unsigned char)(i + 100), mixed[i % LENGTH(mixed)]));
        ck_assert_ptr_eq(weir_arena_of(helper->blocks[i]), helper->arena);
      }
      break;
    case END:
      return NULL;
    }
    sem_post(&helper->done);
  }
}

static void tell(struct helper *helper, weir_arena_t *arena, int order) {
  helper->arena = arena;
  helper->order = order;
  sem_post(&helper->begin);
  if (order == END)
    pthread_join(helper->thread, NULL);
  else
    sem_wait(&helper->done);
}

static void start(struct helper *helper) {
  sem_init(&helper->begin, 0, 0);
  sem_init(&helper->done, 0, 0);
  ck_assert_int_eq(pthread_create(&helper->thread, NULL, help, helper), 0);
}

/* Heaps of other threads, and what is on its way from one to the other, are emptied too. */
START_TEST(reset_empties_all_heaps) {
  weir_arena_t *arena = make_plain();
  struct helper helpers[2];
  size_t round;

  start(&helpers[0]);
  start(&helpers[1]);
  for (round = 0; round < 10; round++) {
    take_mixed(arena, 100);
    tell(&helpers[0], arena, TAKE);
    tell(&helpers[1], arena, TAKE);
    tell(&helpers[0], arena, CHECK);
    check_mixed(100);
    tell(&helpers[round % 2], arena, FREE_MAIN);
    if (round % 3 == 2) {
      tell(&helpers[0], arena, END);
      start(&helpers[0]);
    }
    weir_arena_reset(arena);
    ck_assert_uint_eq(now(arena).live, 0);
    ck_assert_uint_eq(now(arena).fragmented, 0);
  }
  take_mixed(arena, 100);
  tell(&helpers[1], arena, TAKE);
  tell(&helpers[0], arena, TAKE);
  check_mixed(100);
  tell(&helpers[0], arena, CHECK);
  tell(&helpers[1], arena, CHECK);
  tell(&helpers[0], arena, END);
  weir_arena_destroy(arena);
  tell(&helpers[1], arena, END);
}
END_TEST

/* The next arena often gets what the destroyed one had: its place, its number. A thread that knew
 * the old one must not take that for the new. */
START_TEST(threads_outlive_arenas) {
  static char buffer[32 << 20];
  struct helper helper;
  weir_arena_t *kept = make_plain(), *arena;
  size_t round;
  void *other = weir_arena_alloc(kept, 1000);

  memset(other, 9, 1000);
  start(&helper);
  for (round = 0; round < 60; round++) {
    arena = round % 3 == 2 ? make_in(buffer, sizeof buffer) : make_plain();
    ck_assert_uint_eq(now(arena).live, 0);
    if (round % 2 == 0) {
      tell(&helper, arena, TAKE);
      ck_assert_uint_gt(now(arena).live, 100000);
      tell(&helper, arena, CHECK);
    }
    take_mixed(arena, 36);
    check_mixed(36);
    ck_assert_ptr_eq(weir_arena_of(blocks[35]), arena);
    weir_arena_destroy(arena);
    ck_assert(all_are(other, 9, 1000));
    ck_assert_ptr_eq(weir_arena_of(other), kept);
  }
  tell(&helper, kept, TAKE);
  tell(&helper, kept, CHECK);
  tell(&helper, kept, END);
  weir_arena_destroy(kept);
}
END_TEST

START_TEST(destroy_gives_all_back) {
  weir_stats_t global;
  size_t before = 0, round;

  for (round = 0; round < 40; round++) {
    weir_arena_t *arena = make(WEIR_RETAIN_UNLIMITED, WEIR_LIMIT_NONE, round % 2 * MIB);
    take_mixed(arena, 96);
    if (round % 4 > 1)
      weir_arena_reset(arena);
    weir_arena_destroy(arena);
    if (round == 19) {
      before = resident();
      global = now(NULL);
    }
  }
  if (!SANITIZED)
    ck_assert_uint_le(resident(), before + 256 * KIB);
  ck_assert_uint_eq(now(NULL).live, global.live);
  ck_assert_uint_eq(now(NULL).committed, global.committed);
  ck_assert_uint_eq(now(NULL).reserved, global.reserved);
}
END_TEST

START_TEST(a_thousand_arenas_at_once) {
  enum { ARENAS = 1000 };
  static weir_arena_t *arenas[ARENAS];
  static unsigned char *small[ARENAS], *large[ARENAS];
  size_t i, round;

  for (round = 0; round < 2; round++) {
    for (i = 0; i < ARENAS; i++) {
      arenas[i] = make_plain();
      small[i] = weir_arena_alloc(arenas[i], 100);
      large[i] = weir_arena_alloc(arenas[i], 70000);
      ck_assert(small[i] != NULL && large[i] != NULL);
      fill(small[i], 100, i);
      fill(large[i], 70000, i * 3);
    }
    for (i = 0; i < ARENAS; i++) {
      ck_assert_ptr_eq(weir_arena_of(small[i]), arenas[i]);
      ck_assert_ptr_eq(weir_arena_of(large[i]), arenas[i]);
      ck_assert(holds(small[i], 100, 100, i));
      ck_assert(holds(large[i], 70000, 70000, i * 3));
      ck_assert_uint_eq(now(arenas[i]).live,
                        weir_usable_size(small[i]) + weir_usable_size(large[i]));
      if (i % 3 == 0) {
        weir_free(small[i]);
        weir_arena_free(arenas[ARENAS - 1 - i], large[i]);
        ck_assert_uint_eq(now(arenas[i]).live, 0);
      }
    }
    for (i = 0; i < ARENAS; i++)
      weir_arena_destroy(arenas[(i * 7) % ARENAS]);
  }
}
END_TEST

static volatile uintptr_t hidden;

/* A reset leaves nothing that could be freed once more. */
START_TEST(free_after_reset) {
  weir_arena_t *arena = make(WEIR_RETAIN_UNLIMITED, WEIR_LIMIT_NONE, 0);

  hidden = (uintptr_t)weir_arena_alloc(arena, _i);
  weir_arena_reset(arena);
  weir_free((void *)hidden);
}
END_TEST

START_TEST(free_after_destroy) {
  static char buffer[1 << 20];
  weir_arena_t *arena = _i % 2 == 0 ? make_plain() : make_in(buffer, sizeof buffer);

  hidden = (uintptr_t)weir_arena_alloc(arena, _i);
  weir_arena_destroy(arena);
  weir_free((void *)hidden);
}
END_TEST

static Suite *life_suite(void) {
  static const int sizes[] = {16, 100, 5000, 65536, 65537, 100001, 500000};
  Suite *suite = suite_create("arena_life");
  TCase *tests = tcase_create("reset and destroy");
  size_t i;

  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, reset_takes_all_blocks);
  tcase_add_loop_test(tests, reset_keeps_the_mark, 0, 5);
  tcase_add_test(tests, zero_after_reset);
  tcase_add_loop_test(tests, a_loop_of_resets_settles, 0, 4);
  tcase_add_test(tests, reset_empties_all_heaps);
  tcase_add_test(tests, threads_outlive_arenas);
  tcase_add_test(tests, destroy_gives_all_back);
  tcase_add_test(tests, a_thousand_arenas_at_once);
  for (i = 0; i < LENGTH(sizes); i++) {
    int size = sizes[i];
    tcase_add_loop_test_raise_signal(tests, free_after_reset, SIGABRT, size, size + 1);
    tcase_add_loop_test_raise_signal(tests, free_after_destroy, SIGABRT, size, size + 1);
  }
  suite_add_tcase(suite, tests);
  return suite;
}

int main(void) {
  return run_suite(life_suite());
}
