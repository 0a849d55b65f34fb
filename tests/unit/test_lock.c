/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock: what its word says, exclusion, and that a waiter gets it from the thread that gives it.
 */
#include "lock.h"

#include <pthread.h>
#include <stdlib.h>

#include "unit.h"

#define THREADS 4
#define ROUNDS 20000

static uint32_t word(struct wr_lock *lock) {
  return atomic_load(&lock->word);
}

/* A thread that does nothing until it is let go: with it, the process has two. */
static struct wr_lock gate;
static pthread_t company;

static void *keep_company(void *argument) {
  (void)argument;
  wr_lock_take(&gate);
  wr_lock_give(&gate);
  return NULL;
}

static void *do_nothing(void *argument) {
  return argument;
}

static void begin_company(void) {
  pthread_t first;
  /* The gate is taken as a process with threads does it. */
  ck_assert_int_eq(pthread_create(&first, NULL, do_nothing, NULL), 0);
  wr_lock_take(&gate);
  ck_assert_int_eq(pthread_create(&company, NULL, keep_company, NULL), 0);
  pthread_join(first, NULL);
}

static void end_company(void) {
  wr_lock_give(&gate);
  pthread_join(company, NULL);
  ck_assert_uint_eq(word(&gate), 0);
}

START_TEST(the_word_says_whether_it_is_held) {
  struct wr_lock lock = {0};
  for (int i = 0; i < 3; i++) {
    wr_lock_take(&lock);
    ck_assert_uint_ne(word(&lock), 0);
    wr_lock_give(&lock);
    ck_assert_uint_eq(word(&lock), 0);
  }
  wr_lock_take(&lock);
  wr_lock_init(&lock);
  ck_assert_uint_eq(word(&lock), 0);
}
END_TEST

START_TEST(the_word_names_the_holder) {
  struct wr_lock lock = {0};
  begin_company();
  wr_lock_take(&lock);
  ck_assert_uint_eq(word(&lock), wr_os_thread());
  ck_assert_uint_eq(wr_lock_self, wr_os_thread());
  wr_lock_give(&lock);
  ck_assert_uint_eq(word(&lock), 0);
  end_company();
}
END_TEST

struct shared {
  struct wr_lock lock;
  size_t count; /* guarded by the lock, and not atomic */
  bool inside;
  bool broken;
};

static void *contend(void *argument) {
  struct shared *shared = argument;
  for (int i = 0; i < ROUNDS; i++) {
    wr_lock_take(&shared->lock);
    shared->broken |= shared->inside;
    shared->inside = true;
    /* Sometimes the holder is off its processor, so that the others go to sleep. */
    if (i % 512 == 0)
      wr_os_yield();
    shared->count++;
    shared->inside = false;
    wr_lock_give(&shared->lock);
  }
  return NULL;
}

START_TEST(one_thread_at_a_time) {
  struct shared shared = {.count = 0};
  pthread_t thread[THREADS];
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, contend, &shared), 0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(thread[i], NULL);
  ck_assert_uint_eq(shared.count, (size_t)THREADS * ROUNDS);
  ck_assert(!shared.broken);
  ck_assert_uint_eq(word(&shared.lock), 0);
}
END_TEST

struct hand_over {
  struct wr_lock lock;
  _Atomic(bool) comes;
  uint32_t seen; /* the word as the waiter found it when it had the lock */
  uint32_t self;
  int data;
  int got;
};

static void *wait_for_it(void *argument) {
  struct hand_over *over = argument;
  over->self = wr_os_thread();
  atomic_store(&over->comes, true);
  wr_lock_take(&over->lock);
  over->seen = word(&over->lock);
  over->got = over->data;
  wr_lock_give(&over->lock);
  return NULL;
}

START_TEST(a_waiter_gets_the_lock_and_what_was_written) {
  begin_company();
  for (int i = 0; i < 20; i++) {
    struct hand_over over = {.data = 0};
    pthread_t thread;
    wr_lock_take(&over.lock);
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_it, &over), 0);
    while (!atomic_load(&over.comes))
      wr_os_yield();
    /* Until the kernel has noted the waiter, where it lends priorities; else for a while. */
    for (int turns = 0; turns < 2000 && word(&over.lock) == wr_lock_self; turns++)
      wr_os_yield();
    ck_assert_uint_eq(word(&over.lock) & 0x3fffffff, wr_lock_self);
    over.data = i + 1;
    wr_lock_give(&over.lock);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(over.seen & 0x3fffffff, over.self);
    ck_assert_int_eq(over.got, i + 1);
    ck_assert_uint_eq(word(&over.lock), 0);
  }
  end_company();
}
END_TEST

static uint32_t parent;

static void check_child(void *argument) {
  struct wr_lock *lock = argument;
  wr_lock_forked(true);
  wr_lock_init(lock);
  if (wr_lock_self == parent || wr_lock_self != wr_os_thread())
    abort();
  wr_lock_take(lock);
  if (word(lock) == 0)
    abort();
  wr_lock_give(lock);
  if (word(lock) != 0)
    abort();
}

START_TEST(a_child_has_an_identity_of_its_own) {
  struct wr_lock lock = {0};
  begin_company();
  wr_lock_take(&lock);
  parent = wr_lock_self;
  unit_expect_success(check_child, &lock);
  wr_lock_give(&lock);
  ck_assert_uint_eq(word(&lock), 0);
  end_company();
}
END_TEST

static struct wr_lock forked_lock;

static void *take_it(void *done) {
  wr_lock_take(&forked_lock);
  atomic_store((_Atomic(bool) *)done, true);
  wr_lock_give(&forked_lock);
  return NULL;
}

/* Handlers that run while fork holds the locks may take them again; other threads still wait. */
START_TEST(the_thread_that_forks_may_take_its_locks_again) {
  static _Atomic(bool) done;
  pthread_t thread;
  atomic_store(&done, false);
  begin_company();
  wr_lock_forking();
  wr_lock_hold(&forked_lock);
  ck_assert_int_eq(pthread_create(&thread, NULL, take_it, &done), 0);
  for (int i = 0; i < 100; i++) {
    wr_lock_take(&forked_lock);
    wr_lock_take(&forked_lock);
    wr_lock_give(&forked_lock);
    wr_lock_give(&forked_lock);
    wr_os_yield();
    ck_assert(!atomic_load(&done));
  }
  wr_lock_give(&forked_lock);
  wr_lock_forked(false);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  ck_assert(atomic_load(&done));
  ck_assert_uint_eq(word(&forked_lock), 0);
  end_company();
}
END_TEST

UNIT_SUITE(lock, the_word_says_whether_it_is_held, the_word_names_the_holder, one_thread_at_a_time,
           a_waiter_gets_the_lock_and_what_was_written, a_child_has_an_identity_of_its_own,
           the_thread_that_forks_may_take_its_locks_again)
