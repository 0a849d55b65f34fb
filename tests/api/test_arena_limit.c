/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an arena may keep and take: its mark, trimming, memory made resident at creation, and the
 * hard limit, which neither what is committed nor its peak may ever pass, with one thread and with
 * several, while whatever is free is given up before a request is refused.
 */
#include "arenas.h"

#include <stdatomic.h>

enum { ROOM = 1 << 19 };
static void *blocks[ROOM];

static size_t take(weir_arena_t *arena, size_t size, size_t count) {
  size_t i;

  for (i = 0; i < count && i < ROOM; i++) {
    blocks[i] = weir_arena_alloc(arena, size);
    if (blocks[i] == NULL)
      break;
    touch(blocks[i], size);
  }
  return i;
}

static void give(size_t count) {
  while (count > 0)
    weir_free(blocks[--count]);
}

static void take_and_give(weir_arena_t *arena, size_t size, size_t count) {
  ck_assert_uint_eq(take(arena, size, count), count);
  give(count);
}

/* What is not of the arena under test is there before faults are counted: the table, and the code,
 * which another arena runs through. */
static void prepare(size_t size) {
  weir_arena_t *other = make(0, WEIR_LIMIT_NONE, 2 * MIB);

  memset(blocks, 1, sizeof blocks);
  give(take(other, size, size < MIB ? MIB / (size + 16) : 1));
  weir_arena_destroy(other);
  faults();
}

START_TEST(the_mark_is_the_default_arenas) {
  weir_arena_t *before = make_plain(), *after;

  weir_set_retain(7 * MIB);
  after = make_plain();
  ck_assert_uint_eq(weir_arena_retain(after), 7 * MIB);
  /* One made already keeps its own. */
  ck_assert_uint_eq(weir_arena_retain(before), 64 * MIB);
  weir_arena_destroy(before);
  weir_arena_destroy(after);
}
END_TEST

START_TEST(the_mark_moves) {
  weir_arena_t *arena = make(48 * MIB, WEIR_LIMIT_NONE, 0);
  weir_stats_t stats;

  take_and_give(arena, MIB, 32);
  stats = now(arena);
  ck_assert_uint_eq(weir_arena_retain(arena), 48 * MIB);
  ck_assert_uint_eq(stats.mark, 48 * MIB);
  ck_assert_uint_ge(stats.retained, 32 * MIB);
  take_and_give(arena, MIB, 64);
  ck_assert_uint_le(now(arena).retained, 48 * MIB);
  weir_arena_set_retain(arena, 8 * MIB);
  ck_assert_uint_eq(weir_arena_retain(arena), 8 * MIB);
  ck_assert_uint_le(now(arena).retained, 8 * MIB);
  ck_assert_uint_gt(now(arena).sys_purge, stats.sys_purge);
  weir_arena_set_retain(arena, 0);
  ck_assert_uint_eq(now(arena).retained, 0);
  take_and_give(arena, MIB, 4);
  ck_assert_uint_eq(now(arena).retained, 0);
  weir_arena_set_retain(arena, WEIR_RETAIN_UNLIMITED);
  ck_assert_uint_eq(now(arena).mark, UINT64_MAX);
  take_and_give(arena, MIB, 100);
  ck_assert_uint_ge(now(arena).retained, 100 * MIB);
  ck_assert_uint_eq(weir_retain(), 64 * MIB);
  ck_assert_uint_eq(now(arena).purge_failures, 0);
  weir_arena_destroy(arena);
}
END_TEST

/* Each mark holds for its own arena's free memory, whatever is in the others. */
START_TEST(marks_are_each_arenas_own) {
  weir_arena_t *one = make(4 * MIB, WEIR_LIMIT_NONE, 0), *other = make(0, WEIR_LIMIT_NONE, 0);

  take_and_give(one, MIB, 16);
  take_and_give(other, MIB, 16);
  take_and_give(NULL, MIB, 16);
  ck_assert_uint_le(now(one).retained, 4 * MIB);
  ck_assert_uint_ge(now(one).retained, 3 * MIB);
  ck_assert_uint_eq(now(other).retained, 0);
  ck_assert_uint_ge(now(NULL).retained, 16 * MIB);
  weir_trim(0);
  ck_assert_uint_ge(now(one).retained, 3 * MIB);
  weir_arena_destroy(one);
  weir_arena_destroy(other);
}
END_TEST

START_TEST(trim_gives_back) {
  weir_arena_t *arena = make(WEIR_RETAIN_UNLIMITED, WEIR_LIMIT_NONE, 0);
  size_t before, given;

  take_and_give(arena, MIB, 32);
  take_and_give(arena, 1000, 1000);
  before = resident();
  ck_assert_uint_eq(weir_arena_trim(arena, 64 * MIB), 0);
  given = weir_arena_trim(arena, 8 * MIB);
  ck_assert_uint_ge(given, 24 * MIB);
  ck_assert_uint_le(now(arena).retained, 8 * MIB);
  if (!SANITIZED)
    ck_assert_uint_le(resident(), before - 23 * MIB);
  ck_assert_uint_ge(weir_arena_trim(arena, 0), 7 * MIB);
  ck_assert_uint_le(now(arena).retained, 64 * KIB);
  ck_assert_uint_eq(weir_arena_trim(arena, 0), 0);
  ck_assert_uint_eq(weir_arena_retain(arena), WEIR_RETAIN_UNLIMITED);
  weir_arena_destroy(arena);
}
END_TEST

/* How many blocks of `size` rounding leaves room for in `prefault` bytes, as the header says it. */
static size_t promised(size_t size, size_t prefault) {
  if (size > 64 * KIB) {
    size_t rounded = (size + 64 * KIB - 1) / (64 * KIB) * (64 * KIB);
    return prefault / (rounded + rounded / 8);
  }
  /* A block is at most a fourth larger than asked for, and a slab of the largest holds whole ones
   * only. The last slab may be begun, and that of any other class is not needed here. */
  return (prefault - 64 * KIB) / (size < 16 ? 16 : size + size / 4 + 16);
}

START_TEST(prefault_serves_without_a_fault) {
  static const size_t sizes[] = {16,       64,      100,      1000,    4096,    5000,
                                 16 << 10, 40000,   64 << 10, 65537,   100000,  128 << 10,
                                 300000,   1 << 20, 1400000,  3 << 20, 7 << 20, 14 << 20};
  static const size_t marks[] = {WEIR_RETAIN_DEFAULT, 0, WEIR_RETAIN_UNLIMITED};
  weir_arena_t *arena = make(marks[_i % 3], WEIR_LIMIT_NONE, 16 * MIB);
  size_t size = sizes[_i / 3], count = promised(size, 16 * MIB), round;
  weir_stats_t stats = now(arena);
  uint64_t called = calls(arena);
  long faulted;

  ck_assert_uint_ge(weir_arena_retain(arena), _i % 3 == 1 ? 0 : 16 * MIB);
  ck_assert_uint_eq(stats.live, 0);
  ck_assert_uint_ge(stats.committed, 16 * MIB);
  ck_assert_uint_ge(count, 1);
  prepare(size);
  for (round = 0; round < 2; round++) {
    size_t taken;
    faulted = faults();
    taken = take(arena, size, count);
    give(taken);
    faulted = faults() - faulted;
    ck_assert_uint_eq(taken, count);
    ck_assert_uint_eq(calls(arena), called);
    if (!SANITIZED)
      ck_assert_msg(faulted == 0, "%zu blocks of %zu, round %zu: %ld faults", count, size, round,
                    faulted);
  }
  weir_arena_destroy(arena);
}
END_TEST

/* A block of each kind by turns. */
START_TEST(prefault_serves_mixed_sizes) {
  static const size_t sizes[] = {100, 70000, 4000, 1 << 20, 24, 20000, 250000};
  weir_arena_t *arena = make(0, WEIR_LIMIT_NONE, 16 * MIB);
  uint64_t called = calls(arena);
  size_t sum = 0, count = 0;
  long faulted;

  prepare(100);
  prepare(100000);
  faulted = faults();
  /* A slab for each small size is begun and may stay so. */
  while (sum + 2 * MIB < 14 * MIB) {
    size_t size = sizes[count % LENGTH(sizes)];
    blocks[count] = weir_arena_alloc(arena, size);
    touch(blocks[count++], size);
    sum += size > 64 * KIB ? (size / (64 * KIB) + 1) * (64 * KIB) * 9 / 8 : size * 5 / 4 + 16;
  }
  give(count);
  faulted = faults() - faulted;
  ck_assert_uint_eq(calls(arena), called);
  if (!SANITIZED)
    ck_assert_int_eq(faulted, 0);
  weir_arena_destroy(arena);
}
END_TEST

START_TEST(prefault_is_resident) {
  size_t before = resident();
  weir_arena_t *arena = make(0, WEIR_LIMIT_NONE, 64 * MIB);

  if (!SANITIZED)
    ck_assert_uint_ge(resident(), before + 64 * MIB);
  ck_assert_uint_le(now(arena).committed, 64 * MIB + 64 * MIB * 3 / 1000 + 128 * KIB);
  weir_arena_destroy(arena);
  if (!SANITIZED)
    ck_assert_uint_le(resident(), before + MIB);
}
END_TEST

START_TEST(a_limit_below_the_prefault_is_refused) {
  static const size_t prefaults[] = {0, 1, 4096, 1 << 20, 10000000, 64 << 20};
  size_t i;

  for (i = 0; i < LENGTH(prefaults); i++) {
    size_t enough = prefaults[i] + prefaults[i] * 3 / 1000 + 256 * KIB;
    weir_arena_options_t wanted = options();
    weir_arena_t *arena;
    wanted.prefault = prefaults[i];
    wanted.limit = prefaults[i];
    errno = 0;
    ck_assert_ptr_null(weir_arena_create(&wanted));
    ck_assert_int_eq(errno, EINVAL);
    wanted.limit = 0;
    errno = 0;
    ck_assert_ptr_null(weir_arena_create(&wanted));
    ck_assert_int_eq(errno, EINVAL);
    wanted.limit = enough;
    arena = weir_arena_create(&wanted);
    ck_assert_msg(arena != NULL, "prefault %zu, limit %zu: %s", prefaults[i], enough,
                  strerror(errno));
    ck_assert_uint_le(now(arena).peak_committed, enough);
    weir_arena_destroy(arena);
  }
}
END_TEST

/* With less address space than that, in case the arena would fill it first. */
START_TEST(a_prefault_that_is_not_there_is_refused) {
  static const size_t prefaults[] = {(size_t)1 << 40, (size_t)1 << 46, (size_t)1 << 60,
                                     PTRDIFF_MAX,     SIZE_MAX - 4095, SIZE_MAX};
  struct rlimit room = {2048 * MIB, 2048 * MIB};
  size_t before = resident();
  weir_arena_options_t wanted = options();

  if (!SANITIZED)
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &room), 0);
  wanted.prefault = prefaults[_i];
  errno = 0;
  ck_assert_ptr_null(weir_arena_create(&wanted));
  ck_assert_int_eq(errno, ENOMEM);
  if (!SANITIZED)
    ck_assert_uint_le(resident(), before + MIB);
}
END_TEST

START_TEST(a_prefault_takes_few_calls) {
  weir_arena_t *arena = make(0, WEIR_LIMIT_NONE, 256 * MIB);

  ck_assert_uint_le(now(arena).sys_map, 8);
  weir_arena_destroy(arena);
}
END_TEST

START_TEST(no_address_space_no_arena) {
  struct rlimit all, none;
  weir_arena_options_t wanted = options();
  weir_arena_t *arena;

  if (SANITIZED)
    return;
  getrlimit(RLIMIT_AS, &all);
  none = all;
  none.rlim_cur = 4096;
  setrlimit(RLIMIT_AS, &none);
  errno = 0;
  arena = weir_arena_create(NULL);
  wanted.prefault = MIB;
  ck_assert_ptr_null(weir_arena_create(&wanted));
  setrlimit(RLIMIT_AS, &all);
  ck_assert_ptr_null(arena);
  ck_assert_int_eq(errno, ENOMEM);
  weir_arena_destroy(make_plain());
}
END_TEST

static const size_t fill_sizes[] = {1,     16,     100,    1000,    5000,    30000,      65536,
                                    65537, 100000, 300000, 1 << 20, 2500000, 7 * 1000000};

/*
 * How much of a limit blocks of a size must be able to fill: all but what rounding and the arena's
 * own structures take. What is over 64 KiB may lie in spans of up to twice its length, which other
 * blocks wrote to the end.
 */
static size_t least_live(size_t size, size_t limit) {
  if (size <= 64 * KIB)
    return limit * 7 / 8;
  return limit * 3 / 8;
}

/* Over and over with another size: what the size before has left free must not be in the way. */
START_TEST(the_limit_holds) {
  const size_t limit = 8 * MIB;
  weir_arena_t *arena = make(_i == 0 ? WEIR_RETAIN_UNLIMITED : (size_t)_i - 1, limit, 0);
  size_t before = resident(), i, round;
  uint64_t refused = 0;

  prepare(MIB);
  before = resident();
  for (round = 0; round < 2; round++) {
    for (i = 0; i < LENGTH(fill_sizes); i++) {
      size_t size = fill_sizes[round == 0 ? i : LENGTH(fill_sizes) - 1 - i];
      size_t count;
      errno = 0;
      count = take(arena, size, ROOM);
      ck_assert_uint_lt(count, ROOM);
      ck_assert_int_eq(errno, ENOMEM);
      ck_assert_uint_eq(now(arena).over_limit, ++refused);
      ck_assert_uint_le(now(arena).committed, limit);
      ck_assert_uint_le(now(arena).peak_committed, limit);
      ck_assert_msg(now(arena).live >= least_live(size, limit),
                    "blocks of %zu: %zu of %zu were refused", size, count,
                    (size_t)(limit / (size < 16 ? 16 : size)));
      if (!SANITIZED)
        ck_assert_uint_le(resident(), before + limit + 512 * KIB);
      errno = 99;
      give(count);
      ck_assert_int_eq(errno, 99);
      ck_assert_uint_eq(now(arena).live, 0);
    }
  }
  weir_arena_destroy(arena);
}
END_TEST

/* Holes are used again, and a live block in each slab does not count twice. */
START_TEST(the_limit_holds_with_holes) {
  const size_t limit = 8 * MIB;
  weir_arena_t *arena = make(WEIR_RETAIN_UNLIMITED, limit, 0);
  size_t count = take(arena, 300000, ROOM), i, taken;

  for (i = 0; i < count; i += 2)
    weir_free(blocks[i]);
  taken = 0;
  while ((blocks[count + taken] = weir_arena_alloc(arena, 1000)) != NULL) {
    touch(blocks[count + taken++], 1000);
    ck_assert_uint_le(now(arena).committed, limit);
  }
  ck_assert_uint_ge(taken * 1000, count / 2 * 250000);
  ck_assert_uint_le(now(arena).peak_committed, limit);
  for (i = 0; i < count; i++) {
    if (i % 2 == 1)
      weir_free(blocks[i]);
  }
  for (i = 0; i < taken; i++)
    weir_free(blocks[count + i]);
  ck_assert_uint_eq(now(arena).live, 0);
  weir_arena_destroy(arena);
}
END_TEST

START_TEST(blocks_over_the_limit) {
  static const size_t sizes[] = {(2 << 20) + 1, 3 << 20, 100 << 20, (size_t)1 << 40, PTRDIFF_MAX};
  const size_t limit = 2 * MIB;
  weir_arena_t *arena = make(WEIR_RETAIN_DEFAULT, limit, 0);
  char *kept = weir_arena_alloc(arena, 100000);
  size_t i;

  strcpy(kept, "kept");
  for (i = 0; i < LENGTH(sizes); i++) {
    uint64_t refused = now(arena).over_limit;
    errno = 0;
    ck_assert_ptr_null(weir_arena_alloc(arena, sizes[i]));
    ck_assert_int_eq(errno, ENOMEM);
    errno = 0;
    ck_assert_ptr_null(weir_arena_zalloc(arena, 1, sizes[i]));
    ck_assert_int_eq(errno, ENOMEM);
    errno = 0;
    ck_assert_ptr_null(weir_arena_aligned_alloc(arena, 4096, sizes[i]));
    ck_assert_int_eq(errno, ENOMEM);
    errno = 0;
    ck_assert_ptr_null(weir_arena_realloc(arena, kept, sizes[i]));
    ck_assert_int_eq(errno, ENOMEM);
    errno = 0;
    ck_assert_ptr_null(weir_realloc(kept, sizes[i]));
    ck_assert_int_eq(errno, ENOMEM);
    /* What no arena could ever give is refused before that. */
    if (sizes[i] != PTRDIFF_MAX)
      ck_assert_uint_eq(now(arena).over_limit, refused + 5);
    ck_assert_str_eq(kept, "kept");
    ck_assert_uint_le(now(arena).peak_committed, limit);
  }
  /* Other arenas have other limits. */
  ck_assert_uint_eq(now(NULL).over_limit, 0);
  weir_free(weir_malloc(16 * MIB));
  weir_arena_free(arena, kept);
  weir_arena_destroy(arena);
}
END_TEST

START_TEST(realloc_at_the_limit) {
  const size_t limit = 8 * MIB;
  weir_arena_t *arena = make(WEIR_RETAIN_DEFAULT, limit, 0);
  size_t count = take(arena, 500000, ROOM), i;

  for (i = 0; i < count; i++)
    fill(blocks[i], 500000, i);
  for (i = 0; i < count; i++) {
    errno = 0;
    ck_assert_ptr_null(weir_realloc(blocks[i], 1500000));
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert(holds(blocks[i], 500000, 500000, i));
  }
  ck_assert_uint_le(now(arena).peak_committed, limit);
  /* What is made smaller always can be, and what is free makes room for one that is to grow. */
  blocks[4] = weir_realloc(blocks[4], 70000);
  ck_assert_ptr_nonnull(blocks[4]);
  blocks[5] = weir_realloc(blocks[5], 100);
  ck_assert_ptr_nonnull(blocks[5]);
  for (i = 0; i < 3; i++) {
    weir_free(blocks[i]);
    blocks[i] = NULL;
  }
  blocks[3] = weir_realloc(blocks[3], 1400000);
  ck_assert_ptr_nonnull(blocks[3]);
  ck_assert(holds(blocks[3], 512, 500000, 3));
  ck_assert_uint_le(now(arena).peak_committed, limit);
  give(count);
  weir_arena_destroy(arena);
}
END_TEST

/* What other threads have freed and kept is free, too, when the limit is met. */
static void *give_them(void *argument) {
  weir_arena_t *arena = argument;
  size_t count = 0, taken = 0;
  void *own[8];

  while (blocks[count] != NULL)
    weir_free(blocks[count++]);
  while (taken < 8 && (own[taken] = weir_arena_alloc(arena, MIB)) != NULL)
    touch(own[taken++], MIB);
  ck_assert_uint_ge(taken, 6);
  ck_assert_uint_le(now(arena).peak_committed, 8 * MIB);
  while (taken > 0)
    weir_free(own[--taken]);
  return arena;
}

START_TEST(what_others_freed_is_given_up) {
  static const size_t sizes[] = {16, 100, 4000, 60000, 200000};
  weir_arena_t *arena = make(WEIR_RETAIN_UNLIMITED, 8 * MIB, 0);
  size_t round, i;

  for (round = 0; round < 2; round++) {
    for (i = 0; i < LENGTH(sizes); i++) {
      blocks[take(arena, sizes[i], ROOM - 1)] = NULL;
      ck_assert_ptr_eq(elsewhere(give_them, arena), arena);
      ck_assert_uint_eq(now(arena).live, 0);
    }
  }
  weir_arena_destroy(arena);
}
END_TEST

enum { THREADS = 4, SLOTS = 200 };
static atomic_bool finished;

static void *press(void *argument) {
  weir_arena_t *arena = argument;
  uint64_t state = (uint64_t)(uintptr_t)&state;
  void *own[SLOTS] = {0};
  size_t i, refused = 0;

  for (i = 0; i < 20000; i++) {
    size_t place = (size_t)(next_random(&state) % SLOTS);
    size_t size = next_random_size(&state, i % 64 == 0 ? 3 * MIB : 100000);
    weir_free(own[place]);
    errno = 0;
    own[place] = weir_arena_alloc(arena, size);
    if (own[place] == NULL) {
      ck_assert_int_eq(errno, ENOMEM);
      refused++;
    } else {
      ck_assert_int_eq(errno, 0);
      touch(own[place], size);
    }
  }
  for (i = 0; i < SLOTS; i++)
    weir_free(own[i]);
  return (void *)refused;
}

static void *watch(void *argument) {
  weir_arena_t *arena = argument;

  while (!atomic_load(&finished)) {
    weir_stats_t stats = now(arena);
    ck_assert_uint_eq(stats.limit, 8 * MIB);
    /* The sum of counters that move may be apart by blocks in flight, the peak may not. */
    ck_assert_uint_le(stats.peak_committed, stats.limit);
    usleep(200);
  }
  return NULL;
}

START_TEST(the_limit_holds_with_threads) {
  static const size_t marks[] = {WEIR_RETAIN_UNLIMITED, 1 << 20, 0};
  weir_arena_t *arena = make(marks[_i], 8 * MIB, _i == 1 ? 4 * MIB : 0);
  pthread_t watcher;
  size_t refused;

  ck_assert_int_eq(pthread_create(&watcher, NULL, watch, arena), 0);
  refused = sum_of_threads(THREADS, press, arena);
  atomic_store(&finished, true);
  pthread_join(watcher, NULL);
  ck_assert_uint_eq(now(arena).over_limit, refused);
  ck_assert_uint_gt(refused, 0);
  ck_assert_uint_le(now(arena).peak_committed, 8 * MIB);
  ck_assert_uint_eq(now(arena).live, 0);
  /* All of it can be had again. */
  ck_assert_uint_ge(take(arena, MIB, 8), 7);
  weir_arena_destroy(arena);
}
END_TEST

static Suite *limit_suite(void) {
  Suite *suite = suite_create("arena_limit");
  TCase *tests = tcase_create("marks and limits");

  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, the_mark_is_the_default_arenas);
  tcase_add_test(tests, the_mark_moves);
  tcase_add_test(tests, marks_are_each_arenas_own);
  tcase_add_test(tests, trim_gives_back);
  tcase_add_loop_test(tests, prefault_serves_without_a_fault, 0, 54);
  tcase_add_test(tests, prefault_serves_mixed_sizes);
  tcase_add_test(tests, prefault_is_resident);
  tcase_add_test(tests, a_limit_below_the_prefault_is_refused);
  tcase_add_loop_test(tests, a_prefault_that_is_not_there_is_refused, 0, 6);
  tcase_add_test(tests, a_prefault_takes_few_calls);
  tcase_add_test(tests, no_address_space_no_arena);
  tcase_add_loop_test(tests, the_limit_holds, 0, 2);
  tcase_add_test(tests, the_limit_holds_with_holes);
  tcase_add_test(tests, blocks_over_the_limit);
  tcase_add_test(tests, realloc_at_the_limit);
  tcase_add_test(tests, what_others_freed_is_given_up);
  tcase_add_loop_test(tests, the_limit_holds_with_threads, 0, 3);
  suite_add_tcase(suite, tests);
  return suite;
}

int main(void) {
  return run_suite(limit_suite());
}
