/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and their heaps, with real threads: adoption, what comes after a thread's teardown, the
 * pool after fork, and blocks that travel between threads while their heaps are trimmed.
 */
#include "thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "init.h"
#include "unit.h"
#include "weir.h"

static size_t heaps(void) {
  return wr_counter_read(&wr_arena_default.heap_count);
}

static void run(void *(*what)(void *argument), void *argument) {
  pthread_t thread;
  ck_assert_int_eq(pthread_create(&thread, NULL, what, argument), 0);
  pthread_join(thread, NULL);
}

static void *take_one(void *argument) {
  void **block = argument;
  block[0] = weir_malloc(100);
  block[1] = wr_heap_self;
  return NULL;
}

START_TEST(a_heap_is_adopted_by_the_next_thread) {
  void *one[2], *two[2];
  run(take_one, one);
  ck_assert_uint_eq(heaps(), 1);
  ck_assert(!atomic_load(&((struct wr_heap *)one[1])->attended));
  for (int i = 0; i < 20; i++) {
    run(take_one, two);
    ck_assert_ptr_eq(two[1], one[1]);
    weir_free(two[0]);
  }
  ck_assert_uint_eq(heaps(), 1);
  weir_free(one[0]);
  wr_heap_check(one[1]);
}
END_TEST

static pthread_barrier_t barrier;

static void *take_one_together(void *argument) {
  take_one(argument);
  pthread_barrier_wait(&barrier);
  return NULL;
}

START_TEST(threads_at_once_have_heaps_of_their_own) {
  pthread_t thread[4];
  void *got[4][2];
  pthread_barrier_init(&barrier, NULL, 4);
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, take_one_together, got[i]), 0);
  for (int i = 0; i < 4; i++)
    pthread_join(thread[i], NULL);
  ck_assert_uint_eq(heaps(), 4);
  for (int i = 0; i < 4; i++) {
    for (int k = 0; k < i; k++)
      ck_assert_ptr_ne(got[i][1], got[k][1]);
    weir_free(got[i][0]);
  }
}
END_TEST

static void *free_it(void *argument) {
  weir_free(argument);
  return NULL;
}

START_TEST(blocks_outlive_their_thread) {
  enum { BLOCKS = 500 };
  static void *got[BLOCKS][2];
  weir_stats_t stats;
  for (int i = 0; i < BLOCKS; i += 50) {
    run(take_one, got[i]);
    memset(got[i][0], 0x77, 100);
  }
  for (int i = 0; i < BLOCKS; i += 50)
    ck_assert_int_eq(((char *)got[i][0])[99], 0x77);
  for (int i = 0; i < BLOCKS; i += 50)
    run(free_it, got[i][0]);
  weir_stats(&stats, sizeof stats);
  ck_assert_uint_eq(stats.live, 0);
}
END_TEST

static pthread_key_t late;
static int rounds;
static bool was_dead, worked;
static size_t heaps_before;

/* Comes after weir's own destructor in each round, as its key is younger, and waits for its end. */
static void at_end(void *argument) {
  void *block[50];
  if (wr_heap_self != &wr_heap_dead && ++rounds < 4) {
    pthread_setspecific(late, argument);
    return;
  }
  was_dead = wr_heap_self == &wr_heap_dead;
  heaps_before = heaps();
  for (int i = 0; i < 50; i++) {
    block[i] = weir_malloc((size_t)i * 300);
    worked = block[i] != NULL;
    if (!worked)
      return;
    memset(block[i], i, (size_t)i * 300);
  }
  for (int i = 0; i < 50; i++) {
    worked = worked && (i == 0 || *(char *)block[i] == i);
    weir_free(block[i]);
  }
  block[0] = weir_malloc(200000);
  worked = worked && block[0] != NULL;
  weir_free(block[0]);
  weir_free(argument);
  worked = worked && wr_heap_self == &wr_heap_dead;
}

static void *end_late(void *argument) {
  (void)argument;
  void *block = weir_malloc(64);
  pthread_setspecific(late, block);
  return NULL;
}

START_TEST(after_its_teardown_a_thread_borrows) {
  weir_stats_t stats;
  /* weir's key is made first. */
  wr_init();
  ck_assert_int_eq(pthread_key_create(&late, at_end), 0);
  run(end_late, NULL);
  ck_assert(was_dead);
  ck_assert(worked);
  ck_assert_uint_eq(heaps(), heaps_before);
  ck_assert_uint_eq(heaps(), 1);
  weir_stats(&stats, sizeof stats);
  ck_assert_uint_eq(stats.live, 0);
  /* What was lent is in the pool again. */
  run(take_one, (void *[2]){NULL, NULL});
  ck_assert_uint_eq(heaps(), 1);
}
END_TEST

static void *other[2];

static void *hold(void *argument) {
  take_one(other);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  return argument;
}

static void use_the_pool(void *argument) {
  size_t before = heaps();
  struct wr_heap *own = argument, *got;
  if (wr_heap_self != own || atomic_load(&((struct wr_heap *)other[1])->attended) ||
      !atomic_load(&own->attended))
    abort();
  /* The block of a thread that is not there can be freed. */
  weir_free(other[0]);
  wr_heap_check(other[1]);
  wr_heap_check(own);
  /* As a new thread does. */
  wr_heap_self = &wr_heap_unborn;
  got = wr_thread_enter(&wr_arena_default);
  if (got != other[1] || heaps() != before || wr_heap_self != got)
    abort();
  wr_thread_leave(got);
  wr_heap_self = own;
  for (size_t size = 0; size < 200000; size = size * 2 + 1)
    weir_free(weir_malloc(size));
}

START_TEST(a_child_has_the_heaps_of_the_threads_it_lacks) {
  pthread_t thread;
  pthread_barrier_init(&barrier, NULL, 2);
  weir_free(weir_malloc(1));
  ck_assert_int_eq(pthread_create(&thread, NULL, hold, NULL), 0);
  pthread_barrier_wait(&barrier);
  unit_expect_success(use_the_pool, wr_heap_self);
  ck_assert(atomic_load(&((struct wr_heap *)other[1])->attended));
  pthread_barrier_wait(&barrier);
  pthread_join(thread, NULL);
  weir_free(other[0]);
}
END_TEST

#define THREADS 4
#define SLOTS 256
#define STEPS 20000

static _Atomic(unsigned char *) slot[SLOTS];
static _Atomic(int) broken, done;

/* Puts blocks into slots for all, and frees what it finds there. */
static void *exchange(void *argument) {
  uint64_t state = (uintptr_t)argument * 65537 + 1;
  /* None is done before the last begins. */
  pthread_barrier_wait(&barrier);
  for (int step = 0; step < STEPS; step++) {
    size_t size = 8 + unit_below(&state, step % 64 == 0 ? 100000 : 700);
    unsigned char *block = weir_malloc(size);
    if (block == NULL) {
      atomic_fetch_add(&broken, 1);
      continue;
    }
    block[0] = block[size - 1] = (unsigned char)(size % 251);
    memcpy(block + 1, &(uint32_t){(uint32_t)size}, 4);
    block = atomic_exchange(&slot[unit_below(&state, SLOTS)], block);
    if (block != NULL) {
      uint32_t was;
      memcpy(&was, block + 1, 4);
      if (block[0] != was % 251 || block[was - 1] != was % 251)
        atomic_fetch_add(&broken, 1);
      weir_free(block);
    }
  }
  /* None ends before the last is done, or the others' frees would not be remote. */
  pthread_barrier_wait(&barrier);
  atomic_fetch_add(&done, 1);
  return NULL;
}

START_TEST(blocks_travel_while_heaps_are_trimmed) {
  pthread_t thread[THREADS];
  weir_stats_t stats;
  pthread_barrier_init(&barrier, NULL, THREADS);
  for (uintptr_t i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, exchange, (void *)(i + 1)), 0);
  while (atomic_load(&done) < THREADS) {
    (void)weir_trim(100000);
    wr_os_yield();
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(thread[i], NULL);
  ck_assert_int_eq(atomic_load(&broken), 0);
  for (int i = 0; i < SLOTS; i++)
    weir_free(atomic_load(&slot[i]));
  weir_stats(&stats, sizeof stats);
  ck_assert_uint_eq(stats.live, 0);
  ck_assert_uint_gt(stats.remote_frees, 0);
  (void)weir_trim(0);
  weir_stats(&stats, sizeof stats);
  ck_assert_uint_eq(stats.active, 0);
  ck_assert_uint_eq(stats.retained + stats.fragmented, 0);
  wr_span_check(&wr_arena_default.spans);
  for (struct wr_heap *heap = atomic_load(&wr_arena_default.heaps); heap != NULL; heap = heap->next)
    wr_heap_check(heap);
}
END_TEST

UNIT_SUITE(thread, a_heap_is_adopted_by_the_next_thread, threads_at_once_have_heaps_of_their_own,
           blocks_outlive_their_thread, after_its_teardown_a_thread_borrows,
           a_child_has_the_heaps_of_the_threads_it_lacks, blocks_travel_while_heaps_are_trimmed)
