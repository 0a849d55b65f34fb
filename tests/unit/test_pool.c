/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of buffers: order, bound, exchange; random calls beside a plain stack, in every kind of
 * arena; memory that is out, limits, forks beside busy threads, arenas that end, and misuse.
 */
#include "pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "fake.h"
#include "process.h"
#include "unit.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define SIZE (4 * KIB) /* of a class that is never another's guest */

static weir_pool_stats_t stats_of(weir_pool_t *pool) {
  weir_pool_stats_t stats = {.kept = 1};
  weir_pool_stats(pool, &stats);
  return stats;
}

static void expect_stats(weir_pool_t *pool, weir_pool_stats_t want) {
  weir_pool_stats_t got = stats_of(pool);
  ck_assert_uint_eq(got.kept, want.kept);
  ck_assert_uint_eq(got.peak, want.peak);
  ck_assert_uint_eq(got.buffers, want.buffers);
  ck_assert_uint_eq(got.acquired, want.acquired);
  ck_assert_uint_eq(got.reused, want.reused);
  ck_assert_uint_eq(got.grown, want.grown);
  ck_assert_uint_eq(got.passed, want.passed);
}

static uint64_t live_in(weir_arena_t *arena) {
  weir_stats_t stats;
  weir_arena_stats(arena, &stats, sizeof stats);
  return stats.live;
}

static uint64_t live(void) {
  return live_in(NULL);
}

static void *acquire(weir_pool_t *pool, size_t size) {
  void *buffer = weir_pool_acquire(pool, size);
  ck_assert_ptr_nonnull(buffer);
  ck_assert_uint_eq((uintptr_t)buffer % 16, 0);
  ck_assert_uint_ge(weir_usable_size(buffer), size);
  memset(buffer, 0x5a, size);
  return buffer;
}

START_TEST(what_is_released_last_comes_first) {
  weir_pool_t *pool = weir_pool_create(NULL, MIB);
  void *small = acquire(pool, 100), *large = acquire(pool, 100 * KIB), *middle = acquire(pool, KIB);
  weir_pool_release(pool, middle);
  weir_pool_release(pool, small);
  weir_pool_release(pool, large);
  errno = 99;
  ck_assert_ptr_eq(acquire(pool, 10), large);
  ck_assert_ptr_eq(acquire(pool, 0), small);
  ck_assert_ptr_eq(acquire(pool, KIB), middle);
  weir_pool_release(pool, large);
  weir_pool_release(pool, NULL);
  ck_assert_ptr_eq(acquire(pool, 100 * KIB), large);
  ck_assert_int_eq(errno, 99);
  expect_stats(pool, (weir_pool_stats_t){.peak = weir_usable_size(small) + weir_usable_size(large) +
                                                 weir_usable_size(middle),
                                         .acquired = 7,
                                         .reused = 4});
  weir_free(small);
  weir_free(middle);
  weir_arena_free(NULL, large);
  weir_pool_destroy(pool);
}
END_TEST

START_TEST(a_small_one_is_exchanged) {
  weir_pool_t *pool = weir_pool_create(NULL, MIB);
  void *below = acquire(pool, SIZE), *top = acquire(pool, SIZE);
  uint64_t before = live();
  void *large;
  weir_pool_release(pool, below);
  weir_pool_release(pool, top);
  large = acquire(pool, 10000);
  ck_assert_uint_eq(live(), before - SIZE + weir_usable_size(large));
  expect_stats(pool, (weir_pool_stats_t){
                         .kept = SIZE, .peak = 2 * SIZE, .buffers = 1, .acquired = 3, .grown = 1});
  ck_assert_ptr_eq(acquire(pool, SIZE), below);
  weir_free(below);
  weir_free(large);
  weir_pool_destroy(pool);
}
END_TEST

START_TEST(the_bound_holds_to_the_byte) {
  weir_pool_t *pool = weir_pool_create(NULL, 3 * SIZE);
  void *buffer[4];
  uint64_t before = live();
  for (int i = 0; i < 4; i++)
    buffer[i] = acquire(pool, SIZE);
  for (int i = 0; i < 4; i++)
    weir_pool_release(pool, buffer[i]);
  ck_assert_uint_eq(live(), before + 3 * SIZE);
  expect_stats(pool,
               (weir_pool_stats_t){
                   .kept = 3 * SIZE, .peak = 3 * SIZE, .buffers = 3, .acquired = 4, .passed = 1});
  weir_pool_release(pool, weir_malloc(16));
  ck_assert_uint_eq(stats_of(pool).passed, 2);
  weir_free(acquire(pool, SIZE));
  weir_pool_release(pool, weir_malloc(SIZE + 1));
  ck_assert_uint_eq(stats_of(pool).passed, 3);
  weir_pool_release(pool, weir_malloc(SIZE));
  ck_assert_uint_eq(stats_of(pool).kept, 3 * SIZE);
  weir_pool_destroy(pool);
}
END_TEST

START_TEST(a_pool_of_nothing_and_one_of_everything) {
  weir_pool_t *nothing = weir_pool_create(NULL, 0), *everything = weir_pool_create(NULL, SIZE_MAX);
  uint64_t before = live();
  for (size_t size = 0; size < 40 * MIB; size = size * 3 + 1) {
    weir_pool_release(nothing, acquire(nothing, size));
    weir_pool_release(everything, weir_malloc(size));
  }
  ck_assert_uint_eq(stats_of(nothing).kept, 0);
  ck_assert_uint_eq(stats_of(nothing).reused, 0);
  ck_assert_uint_eq(stats_of(nothing).passed, stats_of(nothing).acquired);
  ck_assert_uint_eq(stats_of(everything).passed, 0);
  ck_assert_uint_eq(live(), before + stats_of(everything).kept);
  weir_pool_destroy(nothing);
  weir_pool_destroy(everything);
  weir_pool_destroy(NULL);
}
END_TEST

/* ---- beside a model ---- */

enum { OUT = 64, WAITING = 4096, CALLS = 20000 };

struct known {
  unsigned char *buffer;
  size_t size;
  unsigned char byte;
};

static struct {
  struct known out[OUT], waiting[WAITING];
  size_t most;
  weir_pool_stats_t stats;
} model;

/* Every byte of small buffers, and both ends of large ones. */
static size_t edge(size_t size) {
  return size < 8 * KIB ? size : 4 * KIB;
}

static void learn(struct known *known, unsigned char *buffer, unsigned char byte) {
  *known = (struct known){buffer, weir_usable_size(buffer), byte};
  memset(buffer, byte, edge(known->size));
  memset(buffer + known->size - edge(known->size), byte, edge(known->size));
}

static bool all_are(const unsigned char *bytes, unsigned char byte, size_t length) {
  return bytes[0] == byte && memcmp(bytes, bytes + 1, length - 1) == 0;
}

static void check_bytes(const struct known *known) {
  size_t length = edge(known->size);
  const unsigned char *end = known->buffer + known->size - length;
  ck_assert_uint_eq(weir_usable_size(known->buffer), known->size);
  ck_assert(all_are(known->buffer, known->byte, length) && all_are(end, known->byte, length));
}

static void model_acquire(weir_pool_t *pool, struct known *place, size_t size, unsigned char byte) {
  weir_pool_stats_t *stats = &model.stats;
  struct known *top = stats->buffers > 0 ? &model.waiting[stats->buffers - 1] : NULL;
  unsigned char *buffer = acquire(pool, size);
  stats->acquired++;
  if (top != NULL && top->size >= size) {
    ck_assert_ptr_eq(buffer, top->buffer);
    stats->reused++;
  } else if (top != NULL) {
    stats->grown++;
  }
  if (top != NULL) {
    stats->kept -= top->size;
    stats->buffers--;
  }
  learn(place, buffer, byte);
}

static void model_release(weir_pool_t *pool, struct known *place) {
  weir_pool_stats_t *stats = &model.stats;
  check_bytes(place);
  weir_pool_release(pool, place->buffer);
  if (place->size > model.most - stats->kept) {
    stats->passed++;
  } else {
    ck_assert_uint_lt(stats->buffers, WAITING);
    model.waiting[stats->buffers++] = *place;
    stats->kept += place->size;
    stats->peak = wr_bits_max(stats->peak, stats->kept);
  }
  place->buffer = NULL;
}

static size_t random_size(uint64_t *state) {
  static const size_t limits[] = {32, 1000, 20000, 100000, 2 * MIB};
  return unit_below(state, limits[unit_below(state, 5)] + 1);
}

static void model_call(weir_pool_t *pool, uint64_t *state, unsigned char byte) {
  struct known *place = &model.out[unit_below(state, OUT)];
  size_t kind = unit_below(state, 16);
  if (place->buffer == NULL && kind < 14) {
    model_acquire(pool, place, random_size(state), byte);
  } else if (place->buffer == NULL) { /* a block that the pool has never seen */
    learn(place, weir_malloc(random_size(state)), byte);
  } else if (kind < 14) {
    model_release(pool, place);
  } else {
    check_bytes(place);
    weir_free(place->buffer);
    place->buffer = NULL;
  }
}

/* Of the arena and of the default one, what is live is what the model has. */
static void expect_live(weir_arena_t *arena, weir_pool_t *pool, uint64_t before) {
  uint64_t want = before + model.stats.kept + weir_usable_size(pool);
  for (int i = 0; i < OUT; i++)
    want += model.out[i].buffer != NULL ? model.out[i].size : 0;
  ck_assert_uint_eq(live() + (arena != NULL ? live_in(arena) : 0), want);
}

static void run_model(weir_arena_t *arena, size_t most, uint64_t seed) {
  uint64_t before = live(), state = seed;
  weir_pool_t *pool = weir_pool_create(arena, most);
  memset(&model, 0, sizeof model);
  model.most = most;
  ck_assert_ptr_eq(weir_arena_of(pool), arena);
  for (int call = 0; call < CALLS; call++) {
    model_call(pool, &state, (unsigned char)call);
    expect_stats(pool, model.stats);
    if (call % 500 == 0)
      expect_live(arena, pool, before);
  }
  weir_pool_destroy(pool);
  for (int i = 0; i < OUT; i++)
    weir_free(model.out[i].buffer);
  ck_assert_uint_eq(live(), before);
  if (arena != NULL)
    ck_assert_uint_eq(live_in(arena), 0);
}

START_TEST(random_calls_beside_a_model) {
  static const size_t bounds[] = {0, 5000, 200000, 3 * MIB, SIZE_MAX};
  for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
    run_model(NULL, bounds[i], i + 1);
}
END_TEST

START_TEST(random_calls_in_an_arena) {
  weir_arena_t *arena = weir_arena_create(NULL);
  run_model(arena, 3 * MIB, 11);
  weir_arena_destroy(arena);
}
END_TEST

START_TEST(random_calls_in_a_buffer) {
  size_t size = 512 * MIB;
  void *room = weir_malloc(size);
  weir_arena_t *arena = weir_arena_create_in(room, size, NULL);
  ck_assert_ptr_nonnull(arena);
  run_model(arena, 3 * MIB, 12);
  weir_arena_destroy(arena);
  weir_free(room);
}
END_TEST

/* ---- memory that is out ---- */

START_TEST(failure_leaves_the_pool_as_it_was) {
  weir_pool_t *pool;
  weir_pool_stats_t before;
  volatile size_t too_large = (size_t)PTRDIFF_MAX + 1;
  void *below, *top;
  fake_default();
  pool = weir_pool_create(NULL, MIB);
  below = acquire(pool, 200);
  top = acquire(pool, 100);
  weir_pool_release(pool, below);
  weir_pool_release(pool, top);
  before = stats_of(pool);
  fake_fail(FAKE_MAP, 1, SIZE_MAX);
  errno = 0;
  ck_assert_ptr_null(weir_pool_acquire(pool, 64 * MIB));
  ck_assert_int_eq(errno, ENOMEM);
  errno = 0;
  ck_assert_ptr_null(weir_pool_acquire(pool, too_large));
  ck_assert_int_eq(errno, ENOMEM);
  expect_stats(pool, before);
  ck_assert_ptr_eq(acquire(pool, 100), top);
  ck_assert_ptr_eq(acquire(pool, 200), below);
  weir_pool_destroy(pool);
}
END_TEST

START_TEST(a_limit_leaves_the_pool_as_it_was) {
  weir_arena_options_t options = WEIR_ARENA_OPTIONS_INIT;
  weir_arena_t *arena;
  weir_pool_t *pool;
  weir_pool_stats_t before;
  void *below, *top;
  options.limit = 4 * MIB;
  arena = weir_arena_create(&options);
  pool = weir_pool_create(arena, SIZE_MAX);
  below = acquire(pool, 300 * KIB);
  top = acquire(pool, 200 * KIB);
  weir_pool_release(pool, below);
  weir_pool_release(pool, top);
  before = stats_of(pool);
  errno = 0;
  ck_assert_ptr_null(weir_pool_acquire(pool, 8 * MIB));
  ck_assert_int_eq(errno, ENOMEM);
  expect_stats(pool, before);
  ck_assert_ptr_eq(acquire(pool, 200 * KIB), top);
  weir_pool_release(pool, top);
  /* What there is room for comes in its place. */
  top = acquire(pool, 2 * MIB);
  ck_assert_ptr_eq(weir_arena_of(top), arena);
  ck_assert_uint_eq(stats_of(pool).grown, 1);
  ck_assert_ptr_eq(acquire(pool, 300 * KIB), below);
  weir_pool_release(pool, below);
  weir_free(top);
  weir_pool_destroy(pool);
  ck_assert_uint_eq(live_in(arena), 0);
  weir_arena_destroy(arena);
}
END_TEST

START_TEST(a_pool_needs_room_for_itself) {
  size_t size = weir_arena_buffer_min();
  void *room = weir_malloc(size), *block;
  weir_arena_t *arena = weir_arena_create_in(room, size, NULL);
  while ((block = weir_arena_alloc(arena, 1024)) != NULL)
    continue;
  errno = 0;
  ck_assert_ptr_null(weir_pool_create(arena, MIB));
  ck_assert_int_eq(errno, ENOMEM);
  weir_arena_destroy(arena);
  weir_free(room);
}
END_TEST

START_TEST(blocks_go_back_to_where_they_lie) {
  weir_arena_t *arena = weir_arena_create(NULL);
  weir_pool_t *pool = weir_pool_create(NULL, 4 * KIB);
  uint64_t before = live();
  void *block = weir_arena_alloc(arena, KIB);
  weir_pool_release(pool, block);
  weir_pool_release(pool, weir_arena_alloc(arena, 8 * KIB));
  ck_assert_uint_eq(live_in(arena), KIB);
  ck_assert_ptr_eq(acquire(pool, 10), block);
  weir_pool_release(pool, block);
  weir_pool_destroy(pool);
  ck_assert_uint_eq(live_in(arena), 0);
  ck_assert_uint_lt(live(), before);
  weir_arena_destroy(arena);
}
END_TEST

/* ---- fork ---- */

static weir_pool_t *shared;
static _Atomic(bool) stop;

static void *use_shared(void *argument) {
  uint64_t state = (uintptr_t)argument;
  void *out[8] = {NULL};
  while (!atomic_load(&stop)) {
    void **place = &out[unit_below(&state, 8)];
    if (*place == NULL)
      *place = weir_pool_acquire(shared, unit_below(&state, 3000));
    else
      weir_pool_release(shared, *place), *place = NULL;
    if (unit_below(&state, 256) == 0)
      weir_pool_destroy(weir_pool_create(NULL, KIB));
  }
  for (int i = 0; i < 8; i++)
    weir_free(out[i]);
  return NULL;
}

/* The pool is whole, and works: what waits is what it says, and nothing hangs. */
static void child_life(void *argument) {
  weir_pool_stats_t stats;
  weir_pool_t *own;
  uint64_t reused;
  alarm(60);
  weir_pool_stats(shared, &stats);
  reused = stats.reused + stats.buffers;
  for (uint64_t left = stats.buffers; left > 0; left--) {
    void *buffer = weir_pool_acquire(shared, 0);
    if (weir_usable_size(buffer) > stats.kept)
      abort();
    stats.kept -= weir_usable_size(buffer);
    weir_free(buffer);
  }
  if (stats.kept != 0)
    abort();
  weir_pool_stats(shared, &stats);
  if (stats.buffers != 0 || stats.kept != 0 || stats.reused != reused)
    abort();
  own = weir_pool_create(NULL, KIB);
  weir_pool_release(own, weir_pool_acquire(own, 100));
  weir_pool_destroy(own);
  if (argument != NULL)
    unit_expect_success(child_life, NULL);
  weir_pool_destroy(shared);
}

START_TEST(children_find_pools_whole) {
  pthread_t thread[3];
  shared = weir_pool_create(NULL, 64 * KIB);
  for (uintptr_t i = 0; i < 3; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, use_shared, (void *)(i + 1)), 0);
  for (int i = 0; i < 40; i++)
    unit_expect_success(child_life, &stop);
  atomic_store(&stop, true);
  for (int i = 0; i < 3; i++)
    pthread_join(thread[i], NULL);
  weir_pool_destroy(shared);
}
END_TEST

/* What a handler of fork that runs inside of weir's does. */
static void use_inside(weir_pool_t *pool, void *buffer) {
  weir_pool_t *other = weir_pool_create(NULL, KIB);
  weir_pool_release(pool, buffer);
  ck_assert_ptr_eq(weir_pool_acquire(pool, 100), buffer);
  weir_pool_destroy(other);
}

START_TEST(the_thread_that_forks_may_use_them) {
  pthread_t thread;
  weir_pool_t *kept, *pool = weir_pool_create(NULL, KIB);
  void *buffer = acquire(pool, 100);
  /* So that the process knows of threads, and the locks are real. */
  shared = pool;
  atomic_store(&stop, true);
  ck_assert_int_eq(pthread_create(&thread, NULL, use_shared, (void *)1), 0);
  pthread_join(thread, NULL);
  wr_process_before_fork();
  use_inside(pool, buffer);
  kept = weir_pool_create(NULL, KIB);
  wr_process_after_fork();
  use_inside(pool, buffer);
  wr_process_before_fork();
  wr_process_forked();
  use_inside(kept, buffer);
  weir_pool_destroy(kept);
  weir_free(buffer);
  weir_pool_destroy(pool);
}
END_TEST

static void make_a_pool(void *argument) {
  weir_pool_destroy(weir_pool_create(argument, KIB));
}

START_TEST(pools_end_with_their_arena) {
  weir_arena_t *arena = weir_arena_create(NULL);
  for (int i = 0; i < 3; i++) {
    for (int k = 0; k < 4; k++)
      weir_pool_release(weir_pool_create(arena, KIB), weir_arena_alloc(arena, 100));
    weir_arena_reset(arena);
    for (int k = 0; k < 100; k++)
      memset(weir_arena_alloc(arena, 192), 0xff, 192);
    unit_expect_success(make_a_pool, arena);
  }
  (void)weir_pool_create(arena, KIB);
  weir_arena_destroy(arena);
  unit_expect_success(make_a_pool, NULL);
}
END_TEST

/* ---- misuse ---- */

static weir_pool_t *misused;
static char *victim;

static void release_again(void *argument) {
  (void)argument;
  weir_pool_release(misused, victim);
}

static void acquire_again(void *argument) {
  (void)argument;
  (void)!weir_pool_acquire(misused, 1);
}

static void destroy(void *argument) {
  (void)argument;
  weir_pool_destroy(misused);
}

#if WR_CHECK_CHEAP
START_TEST(a_second_release_stops_the_program) {
  misused = weir_pool_create(NULL, MIB);
  victim = acquire(misused, 1000);
  weir_pool_release(misused, weir_malloc(10));
  weir_pool_release(misused, victim);
  unit_expect_misuse(release_again, NULL, "double free", victim);
  weir_pool_release(misused, weir_malloc(10));
  unit_expect_misuse(release_again, NULL, "double free", victim);
  weir_free(acquire(misused, 1));
  /* It may be released again once it was acquired, written to or not. */
  victim = weir_pool_acquire(misused, 1);
  weir_pool_release(misused, victim);
  weir_pool_destroy(misused);
}
END_TEST

START_TEST(what_looks_as_if_it_waited_need_not) {
  char copy[16];
  misused = weir_pool_create(NULL, MIB);
  victim = acquire(misused, 1000);
  weir_pool_release(misused, victim);
  memcpy(copy, victim, sizeof copy);
  ck_assert_ptr_eq(weir_pool_acquire(misused, 1), victim);
  memcpy(victim, copy, sizeof copy);
  weir_pool_release(misused, victim);
  ck_assert_uint_eq(stats_of(misused).buffers, 1);
  weir_pool_destroy(misused);
}
END_TEST

START_TEST(writing_to_what_waits_stops_the_program) {
  uint64_t seed = 7;
  misused = weir_pool_create(NULL, MIB);
  victim = acquire(misused, 1000);
  weir_pool_release(misused, weir_malloc(10));
  weir_pool_release(misused, victim);
  for (int i = 0; i < 16; i++) {
    char before = victim[i];
    victim[i] = (char)(victim[i] ^ (1 + unit_below(&seed, 255)));
    unit_expect_misuse(acquire_again, NULL, "corrupted free list", victim);
    unit_expect_misuse(destroy, NULL, "corrupted free list", victim);
    victim[i] = before;
  }
  victim[16] = 1;
  ck_assert_ptr_eq(weir_pool_acquire(misused, 1), victim);
  weir_free(victim);
  weir_pool_destroy(misused);
}
END_TEST

START_TEST(freeing_what_waits_stops_the_program) {
  misused = weir_pool_create(NULL, MIB);
  victim = acquire(misused, 1000);
  weir_pool_release(misused, victim);
  weir_free(victim);
  unit_expect_misuse(acquire_again, NULL, "corrupted free list", victim);
}
END_TEST
#endif

START_TEST(what_is_no_block_stops_the_program) {
  static char own[64];
  misused = weir_pool_create(NULL, MIB);
  victim = own;
  unit_expect_misuse(release_again, NULL, "invalid pointer", own);
  weir_pool_destroy(misused);
  (void)acquire_again, (void)destroy;
}
END_TEST

#if WR_CHECK_CHEAP
#define OF_CHECKS \
  a_second_release_stops_the_program, what_looks_as_if_it_waited_need_not, \
      writing_to_what_waits_stops_the_program, freeing_what_waits_stops_the_program,
#else
#define OF_CHECKS
#endif

UNIT_SUITE(pool, OF_CHECKS what_is_released_last_comes_first, a_small_one_is_exchanged,
           the_bound_holds_to_the_byte, a_pool_of_nothing_and_one_of_everything,
           random_calls_beside_a_model, random_calls_in_an_arena, random_calls_in_a_buffer,
           failure_leaves_the_pool_as_it_was, a_limit_leaves_the_pool_as_it_was,
           a_pool_needs_room_for_itself, blocks_go_back_to_where_they_lie,
           children_find_pools_whole, the_thread_that_forks_may_use_them,
           pools_end_with_their_arena, what_is_no_block_stops_the_program)
