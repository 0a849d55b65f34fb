/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random use of several arenas beside a model that knows every block: its arena, its size, its
 * contents. In one thread over every function, with arenas that are reset, destroyed and made anew
 * in between; and with several threads that give back each other's blocks.
 */
#include "arenas.h"

#include <stdatomic.h>

enum { ARENAS = 6, SLOTS = 400, BUFFER = 3 << 20 };

struct slot {
  unsigned char *block;
  size_t size, usable;
  uint64_t seed;
  size_t arena;
};

static struct slot slots[SLOTS];
static weir_arena_t *arenas[ARENAS];
static size_t limits[ARENAS];
static unsigned char buffers[2][BUFFER + 64];
static uint64_t state;
static uint64_t always_live;

static size_t dice(size_t sides) {
  return (size_t)(next_random(&state) % sides);
}

/* The first is the default arena, the last two are buffers, the others differ in mark and limit. */
static void create(size_t number) {
  static const size_t marks[] = {WEIR_RETAIN_DEFAULT, 0, 1 << 20, WEIR_RETAIN_UNLIMITED};
  weir_arena_options_t wanted = options();
  weir_arena_t *arena = NULL;

  wanted.name = "model";
  wanted.retain = marks[dice(LENGTH(marks))];
  wanted.limit = dice(2) == 0 ? WEIR_LIMIT_NONE : 2 * MIB + dice(8 * MIB);
  wanted.prefault = dice(3) == 0 ? dice(MIB) : 0;
  limits[number] = wanted.limit == WEIR_LIMIT_NONE ? SIZE_MAX : wanted.limit;
  if (number >= ARENAS - 2) {
    unsigned char *buffer = buffers[number - (ARENAS - 2)];
    memset(buffer, 0xa7, BUFFER + 64);
    arena = weir_arena_create_in(buffer + dice(64), BUFFER, &wanted);
  } else if (number > 0) {
    arena = weir_arena_create(&wanted);
  }
  ck_assert_msg(number == 0 || arena != NULL, "arena %zu: %s", number, strerror(errno));
  arenas[number] = arena;
}

/* May a request of that arena be refused? */
static void check_refusal(size_t number, size_t size) {
  ck_assert_int_eq(errno, ENOMEM);
  ck_assert_msg(limits[number] != SIZE_MAX || number >= ARENAS - 2,
                "%zu bytes refused by arena %zu, which has no limit", size, number);
}

static void adopt(struct slot *slot, void *block, size_t number, size_t size) {
  if (block == NULL) {
    check_refusal(number, size);
    slot->block = NULL;
    return;
  }
  ck_assert_int_eq(errno, 0);
  slot->block = block;
  slot->size = size;
  slot->usable = weir_usable_size(block);
  slot->seed = next_random(&state);
  slot->arena = number;
  ck_assert_uint_ge(slot->usable, size);
  ck_assert_ptr_eq(weir_arena_of(block), arenas[number]);
  fill(block, slot->usable, slot->seed);
}

static void take(struct slot *slot) {
  size_t number = dice(ARENAS), size = next_random_size(&state, dice(10) == 0 ? MIB : 30000);
  size_t alignment = (size_t)1 << dice(15);
  void *block;

  errno = 0;
  switch (dice(5)) {
  case 0:
    block = weir_arena_zalloc(arenas[number], 1, size);
    ck_assert(block == NULL || all_are(block, 0, size));
    break;
  case 1:
    block = weir_arena_aligned_alloc(arenas[number], alignment, size);
    ck_assert_uint_eq((uintptr_t)block % alignment, 0);
    break;
  case 2:
    block = weir_arena_realloc(arenas[number], NULL, size);
    break;
  default:
    block = weir_arena_alloc(arenas[number], size);
  }
  ck_assert_uint_eq((uintptr_t)block % 16, 0);
  adopt(slot, block, number, size);
}

static void check(const struct slot *slot) {
  ck_assert_uint_eq(weir_arena_usable_size(arenas[dice(ARENAS)], slot->block), slot->usable);
  ck_assert(holds(slot->block, slot->usable, slot->usable, slot->seed));
}

static void resize(struct slot *slot) {
  size_t size = 1 + next_random_size(&state, dice(10) == 0 ? MIB : 30000);
  struct slot old = *slot;
  void *block;

  check(slot);
  errno = 0;
  block = dice(2) == 0 ? weir_realloc(slot->block, size)
                       : weir_arena_realloc(arenas[dice(ARENAS)], slot->block, size);
  if (block == NULL) {
    check_refusal(slot->arena, size);
    check(slot);
    return;
  }
  ck_assert(holds(block, size < old.usable ? size : old.usable, old.usable, old.seed));
  adopt(slot, block, old.arena, size);
}

static void release(struct slot *slot) {
  check(slot);
  errno = 0;
  if (dice(2) == 0)
    weir_free(slot->block);
  else
    weir_arena_free(arenas[dice(ARENAS)], slot->block);
  ck_assert_int_eq(errno, 0);
  slot->block = NULL;
}

static void forget(size_t number) {
  size_t i;

  for (i = 0; i < SLOTS; i++) {
    if (slots[i].block != NULL && slots[i].arena == number) {
      check(&slots[i]);
      slots[i].block = NULL;
    }
  }
}

static void check_counts(void) {
  uint64_t live[ARENAS] = {always_live};
  size_t i;

  for (i = 0; i < SLOTS; i++) {
    if (slots[i].block != NULL)
      live[slots[i].arena] += slots[i].usable;
  }
  for (i = 0; i < ARENAS; i++) {
    weir_stats_t stats = now(arenas[i]);
    ck_assert_uint_eq(stats.live, live[i]);
    ck_assert_uint_eq(stats.committed, stats.live + stats.retained + stats.fragmented + stats.meta);
    ck_assert_uint_ge(stats.peak_committed, stats.committed);
    ck_assert_msg(stats.peak_committed <= limits[i], "arena %zu: peak %zu, limit %zu", i,
                  (size_t)stats.peak_committed, limits[i]);
  }
}

static void rarely(void) {
  static const size_t marks[] = {0, 4096, 1 << 20, WEIR_RETAIN_UNLIMITED};
  size_t number = 1 + dice(ARENAS - 1);

  switch (dice(6)) {
  case 0:
    forget(number);
    weir_arena_reset(arenas[number]);
    break;
  case 1:
    forget(number);
    weir_arena_destroy(arenas[number]);
    create(number);
    break;
  case 2:
    weir_arena_trim(arenas[dice(ARENAS)], dice(2 * MIB));
    break;
  case 3:
    weir_arena_set_retain(arenas[number], marks[dice(LENGTH(marks))]);
    break;
  default:
    check_counts();
  }
}

START_TEST(one_thread) {
  size_t i;

  state = (uint64_t)_i * 1000;
  always_live = now(NULL).live;
  for (i = 0; i < ARENAS; i++)
    create(i);
  limits[0] = SIZE_MAX;
  for (i = 0; i < 40000; i++) {
    struct slot *slot = &slots[dice(SLOTS)];
    if (slot->block == NULL)
      take(slot);
    else if (dice(3) == 0)
      resize(slot);
    else
      release(slot);
    if (dice(200) == 0)
      rarely();
  }
  for (i = 0; i < ARENAS; i++)
    forget(i);
  for (i = 0; i < ARENAS; i++)
    weir_arena_destroy(arenas[i]);
}
END_TEST

/* Blocks go from thread to thread through these; each begins with its size and seed. */
enum { THREADS = 4, PLACES = 64 };
static _Atomic(uint64_t *) places[PLACES];

static void give_away(uint64_t *block) {
  if (block == NULL)
    return;
  ck_assert(holds(block + 2, (size_t)block[0] - 16, (size_t)block[0] - 16, block[1]));
  if (block[1] % 2 == 0)
    weir_free(block);
  else
    weir_arena_free(arenas[block[1] % ARENAS], block);
}

static void *exchange(void *argument) {
  uint64_t own = (uint64_t)(uintptr_t)argument;
  size_t i;

  for (i = 0; i < 30000; i++) {
    size_t place = (size_t)(next_random(&own) % PLACES);
    size_t size = 16 + next_random_size(&own, i % 50 == 0 ? 300000 : 5000);
    weir_arena_t *arena = arenas[next_random(&own) % ARENAS];
    uint64_t *block = weir_arena_alloc(arena, size);
    if (block != NULL) {
      block[0] = size;
      block[1] = next_random(&own);
      fill(block + 2, size - 16, block[1]);
      ck_assert_ptr_eq(weir_arena_of(block), arena);
    }
    give_away(atomic_exchange(&places[place], block));
    if (i % 10000 == 9999)
      weir_arena_trim(arena, 0);
  }
  return NULL;
}

START_TEST(many_threads) {
  pthread_t threads[THREADS];
  size_t i, round;

  state = (uint64_t)_i;
  for (i = 0; i < ARENAS; i++)
    create(i);
  for (round = 0; round < 2; round++) {
    for (i = 0; i < THREADS; i++) {
      void *seed = (void *)(uintptr_t)(1 + i + 10 * round + 100 * (size_t)_i);
      ck_assert_int_eq(pthread_create(&threads[i], NULL, exchange, seed), 0);
    }
    for (i = 0; i < THREADS; i++)
      pthread_join(threads[i], NULL);
  }
  for (i = 0; i < PLACES; i++)
    give_away(atomic_exchange(&places[i], NULL));
  for (i = 1; i < ARENAS; i++) {
    ck_assert_uint_eq(now(arenas[i]).live, 0);
    ck_assert_uint_le(now(arenas[i]).peak_committed, limits[i]);
    weir_arena_destroy(arenas[i]);
  }
}
END_TEST

static Suite *model_suite(void) {
  Suite *suite = suite_create("arena_model");
  TCase *tests = tcase_create("random use");

  tcase_set_timeout(tests, 120);
  tcase_add_loop_test(tests, one_thread, 0, 8);
  tcase_add_loop_test(tests, many_threads, 0, 3);
  suite_add_tcase(suite, tests);
  return suite;
}

int main(void) {
  return run_suite(model_suite());
}
