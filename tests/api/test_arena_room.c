/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room below an arena's limit that another thread is just giving back: whoever needs it waits, and
 * is not refused.
 */
#include "arenas.h"

#include <stdatomic.h>

/* What two threads hold at once stays below the limit, so no request may fail, though now and then
 * the room for one is on its way back to the kernel by the other. */
static atomic_bool large_done;
static atomic_uint refused_below;

static void take_sometimes(weir_arena_t *arena, uint64_t *state, size_t least, bool touched) {
  size_t size = least + next_random(state) % least;
  char *block = weir_arena_alloc(arena, size);
  if (block == NULL)
    atomic_fetch_add(&refused_below, 1);
  else if (touched)
    touch(block, size);
  weir_arena_free(arena, block);
}

static void *take_small(void *argument) {
  uint64_t state = 8;
  while (!atomic_load(&large_done))
    take_sometimes(argument, &state, 3 * MIB, false);
  return NULL;
}

START_TEST(below_the_limit_nothing_is_refused_while_another_gives_back) {
  weir_arena_t *arena = make(WEIR_RETAIN_UNLIMITED, 32 * MIB, 0);
  uint64_t state = 7;
  pthread_t small;
  ck_assert_int_eq(pthread_create(&small, NULL, take_small, arena), 0);
  for (int i = 0; i < 400; i++)
    take_sometimes(arena, &state, 10 * MIB, true);
  atomic_store(&large_done, true);
  pthread_join(small, NULL);
  ck_assert_uint_eq(atomic_load(&refused_below), 0);
  weir_arena_destroy(arena);
}
END_TEST

/* The same with slabs: what three threads hold is at most two thirds of the limit, but each keeps
 * empty slabs that another takes away when it needs the room. A thread that finds none to take,
 * because another has just taken them, must wait until their memory has gone; and one whose look at
 * a heap came a moment too early must look again. */
enum { SLAB_THREADS = 3, SLAB_TURNS = 4000, SLAB_BYTES = 400 << 10, SLAB_LEAST = 256 };

static void *take_slabs(void *argument) {
  uint64_t state = (uint64_t)(uintptr_t)&state;
  size_t refused = 0;

  for (int turn = 0; turn < SLAB_TURNS; turn++) {
    size_t size = (size_t)SLAB_LEAST << next_random(&state) % 8, count;
    void *block[SLAB_BYTES / SLAB_LEAST];

    for (count = 0; count * size < SLAB_BYTES; count++) {
      block[count] = weir_arena_alloc(argument, size);
      refused += block[count] == NULL;
    }
    while (count > 0)
      weir_arena_free(argument, block[--count]);
  }
  return (void *)refused;
}

START_TEST(slabs_that_another_gives_back_are_waited_for) {
  weir_arena_t *arena = make(WEIR_RETAIN_UNLIMITED, 2 * MIB, 0);

  ck_assert_uint_eq(sum_of_threads(SLAB_THREADS, take_slabs, arena), 0);
  ck_assert_uint_le(now(arena).peak_committed, 2 * MIB);
  weir_arena_destroy(arena);
}
END_TEST

static Suite *room_suite(void) {
  Suite *suite = suite_create("arena_room");
  TCase *tests = tcase_create("room");

  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, below_the_limit_nothing_is_refused_while_another_gives_back);
  tcase_add_test(tests, slabs_that_another_gives_back_are_waited_for);
  suite_add_tcase(suite, tests);
  return suite;
}

int main(void) {
  return run_suite(room_suite());
}
