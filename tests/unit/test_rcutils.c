/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The adapter to rcutils without rcutils: the sizes and pointers at the edges of its contract, and
 * the process's arena: made once whoever comes first, also around a fork, with the options of the
 * environment, and without it when it cannot be made. tests/adapter has the rest.
 */
#include "adapter/rcutils.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init.h"
#include "unit.h"

#define MIB ((size_t)1 << 20)

static uint64_t live(weir_arena_t *arena) {
  weir_stats_t stats;
  weir_arena_stats(arena, &stats, sizeof stats);
  return stats.live;
}

START_TEST(each_block_of_size_0_is_its_own) {
  uint64_t before = live(NULL);
  void *block[] = {
      weir_rcutils_allocate(0, NULL),
      weir_rcutils_allocate(0, NULL),
      weir_rcutils_zero_allocate(0, 8, NULL),
      weir_rcutils_zero_allocate(8, 0, NULL),
      weir_rcutils_zero_allocate(0, 0, NULL),
      weir_rcutils_reallocate(NULL, 0, NULL),
      weir_rcutils_reallocate(weir_rcutils_allocate(5000, NULL), 0, NULL),
      weir_rcutils_reallocate(weir_rcutils_allocate(5 * MIB, NULL), 0, NULL),
  };
  for (size_t i = 0; i < sizeof block / sizeof block[0]; i++) {
    ck_assert_ptr_nonnull(block[i]);
    for (size_t j = 0; j < i; j++)
      ck_assert_ptr_ne(block[i], block[j]);
  }
  for (size_t i = 0; i < sizeof block / sizeof block[0]; i++)
    weir_rcutils_deallocate(block[i], NULL);
  ck_assert_uint_eq(live(NULL), before);
}
END_TEST

START_TEST(products_that_overflow_are_refused) {
  volatile size_t large = SIZE_MAX / 2 + 1;
  uint64_t before = live(NULL);
  errno = 0;
  ck_assert_ptr_null(weir_rcutils_zero_allocate(large, 2, NULL));
  ck_assert_int_eq(errno, ENOMEM);
  ck_assert_ptr_null(weir_rcutils_zero_allocate(2, large, NULL));
  ck_assert_ptr_null(weir_rcutils_zero_allocate(large + 3, large + 5, NULL));
  ck_assert_ptr_null(weir_rcutils_zero_allocate((size_t)PTRDIFF_MAX + 1, 1, NULL));
  ck_assert_uint_eq(live(NULL), before);
}
END_TEST

START_TEST(null_is_taken) {
  uint64_t before = live(NULL);
  char *block;
  errno = 99;
  weir_rcutils_deallocate(NULL, NULL);
  block = weir_rcutils_reallocate(NULL, 100, NULL);
  ck_assert_ptr_nonnull(block);
  memset(block, 1, 100);
  weir_rcutils_deallocate(block, NULL);
  ck_assert_int_eq(errno, 99);
  ck_assert_uint_eq(live(NULL), before);
}
END_TEST

START_TEST(failures_leave_the_old_block) {
  volatile size_t much = (size_t)PTRDIFF_MAX + 1;
  char *block = weir_rcutils_allocate(10, NULL);
  strcpy(block, "kept");
  errno = 0;
  ck_assert_ptr_null(weir_rcutils_reallocate(block, much, NULL));
  ck_assert_int_eq(errno, ENOMEM);
  errno = 0;
  ck_assert_ptr_null(weir_rcutils_allocate(much, NULL));
  ck_assert_int_eq(errno, ENOMEM);
  ck_assert_str_eq(block, "kept");
  weir_rcutils_deallocate(block, NULL);
}
END_TEST

/* ---- the process's arena ---- */

static atomic_uint arrived;
enum { CROWD = 4 };

static void *come(void *argument) {
  (void)argument;
  atomic_fetch_add(&arrived, 1);
  while (atomic_load(&arrived) < CROWD)
    continue;
  return weir_rcutils_arena();
}

static void be_first_at_once(void *argument) {
  pthread_t thread[CROWD];
  void *got[CROWD];
  (void)argument;
  for (int i = 0; i < CROWD; i++)
    if (pthread_create(&thread[i], NULL, come, NULL) != 0)
      _exit(1);
  for (int i = 0; i < CROWD; i++)
    pthread_join(thread[i], &got[i]);
  for (int i = 0; i < CROWD; i++)
    if (got[i] == NULL || got[i] != (void *)weir_rcutils_arena())
      _exit(2);
}

START_TEST(threads_that_come_at_once_get_one_arena) {
  for (int i = 0; i < 40; i++)
    unit_expect_success(be_first_at_once, NULL);
}
END_TEST

START_TEST(the_arena_stays) {
  weir_arena_t *arena;
  void *block;
  errno = 99;
  arena = weir_rcutils_arena();
  ck_assert_int_eq(errno, 99);
  ck_assert_ptr_nonnull(arena);
  ck_assert_str_eq(weir_arena_name(arena), "rcutils");
  ck_assert_uint_eq(weir_arena_retain(arena), weir_retain());
  block = weir_rcutils_allocate(1000, arena);
  ck_assert_ptr_eq(weir_arena_of(block), arena);
  ck_assert_ptr_eq(weir_rcutils_arena(), arena);
  weir_rcutils_deallocate(block, arena);
  ck_assert_uint_eq(live(arena), 0);
}
END_TEST

/* In a child: exits with 0 when the arena is there and serves. */
static void use_arena(void *expected) {
  weir_arena_t *arena = weir_rcutils_arena();
  char *small = weir_rcutils_allocate(100, arena);
  char *large = weir_rcutils_allocate(300000, arena);
  alarm(60);
  if (arena == NULL || (expected != NULL && arena != expected) || small == NULL || large == NULL)
    _exit(3);
  memset(small, 1, 100);
  memset(large, 1, 300000);
  weir_rcutils_deallocate(small, arena);
  weir_rcutils_deallocate(large, arena);
  _exit(0);
}

START_TEST(children_have_the_arena) {
  weir_arena_t *arena;
  unit_expect_success(use_arena, NULL);
  arena = weir_rcutils_arena();
  unit_expect_success(use_arena, arena);
}
END_TEST

static void fork_while_made(void *argument) {
  pthread_t thread;
  pid_t child;
  int status = 1;
  (void)argument;
  atomic_store(&arrived, CROWD);
  if (pthread_create(&thread, NULL, come, NULL) != 0)
    _exit(1);
  child = fork();
  if (child == 0)
    use_arena(NULL);
  pthread_join(thread, NULL);
  if (waitpid(child, &status, 0) != child || status != 0)
    _exit(2);
}

START_TEST(a_fork_may_come_in_between) {
  for (int i = 0; i < 40; i++)
    unit_expect_success(fork_while_made, NULL);
}
END_TEST

START_TEST(the_options_are_in_force) {
  weir_arena_t *arena;
  void *block;
  wr_init();
  wr_init_options.rcutils_retain = 3 * MIB;
  wr_init_options.rcutils_limit = 5 * MIB;
  arena = weir_rcutils_arena();
  ck_assert_uint_eq(weir_arena_retain(arena), 3 * MIB);
  errno = 0;
  ck_assert_ptr_null(weir_rcutils_allocate(6 * MIB, arena));
  ck_assert_int_eq(errno, ENOMEM);
  block = weir_rcutils_allocate(4 * MIB, arena);
  ck_assert_ptr_nonnull(block);
  strcpy(block, "kept");
  ck_assert_ptr_null(weir_rcutils_reallocate(block, 6 * MIB, arena));
  ck_assert_str_eq(block, "kept");
  weir_rcutils_deallocate(block, arena);
}
END_TEST

static void refuse_limit(void *argument) {
  weir_arena_t *arena;
  void *block;
  (void)argument;
  wr_init();
  wr_init_options.rcutils_limit = 1024;
  arena = weir_rcutils_arena();
  block = weir_rcutils_allocate(MIB, arena);
  if (arena == NULL || block == NULL || weir_rcutils_arena() != arena)
    _exit(1);
}

START_TEST(a_limit_that_no_arena_fits_under_is_named) {
  char said[1024];
  ck_assert_int_eq(unit_child(refuse_limit, NULL, said, sizeof said), 0);
  ck_assert_str_eq(said, "weir: WEIR_RCUTILS_LIMIT=1K is not enough for an arena; keeping "
                         "unlimited\n");
}
END_TEST

START_TEST(without_memory_it_is_the_default_arena) {
  struct rlimit before, none = {0, 0};
  weir_arena_t *arena;
  int error;
  wr_init();
  ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
  none.rlim_max = before.rlim_max;
  errno = 99;
  (void)setrlimit(RLIMIT_AS, &none);
  arena = weir_rcutils_arena();
  error = errno;
  (void)setrlimit(RLIMIT_AS, &before);
  ck_assert_ptr_null(arena);
  ck_assert_int_eq(error, 99);
  ck_assert_ptr_nonnull(weir_rcutils_arena());
}
END_TEST

UNIT_SUITE(rcutils, each_block_of_size_0_is_its_own, products_that_overflow_are_refused,
           null_is_taken, failures_leave_the_old_block, threads_that_come_at_once_get_one_arena,
           the_arena_stays, children_have_the_arena, a_fork_may_come_in_between,
           the_options_are_in_force, a_limit_that_no_arena_fits_under_is_named,
           without_memory_it_is_the_default_arena)
