/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Malloc while a thread is torn down: destructors of thread-specific keys that take and free and
 * set themselves again for as many rounds as POSIX allows, in thousands of threads; detached
 * threads; threads that leave blocks for others; and thousands of atexit handlers. The resident
 * set must not grow with the number of threads that came and went.
 */
#include "expect.h"

#include <pthread.h>
#include <semaphore.h>

static pthread_key_t keys[4];
static sem_t finished;
static int rounds_seen;

static void destructor_of(pthread_key_t key, void *value) {
  size_t round = (size_t)(uintptr_t)value;
  void *blocks[200];
  size_t i;

  for (i = 0; i < EXPECT_COUNT(blocks); i++) {
    size_t size = 1 + i * 100 + round;
    blocks[i] = i % 5 == 0 ? expect_hide(calloc(1, size)) : expect_hide(malloc(size));
    REQUIRE(blocks[i] != NULL, "malloc in a destructor");
    memset(blocks[i], 0x33, size < 64 ? size : 64);
  }
  for (i = 0; i < EXPECT_COUNT(blocks); i++) {
    if (i % 20 == 0)
      blocks[i] = expect_hide(realloc(blocks[i], 500));
    free(blocks[i]);
  }
  if (round < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pthread_setspecific(key, (void *)(round + 1));
  } else {
    __atomic_add_fetch(&rounds_seen, 1, __ATOMIC_RELAXED);
  }
}

static void destructor_0(void *value) {
  destructor_of(keys[0], value);
}
static void destructor_1(void *value) {
  destructor_of(keys[1], value);
}

/* A payload that dies only with its thread, and was taken by another. */
static void destructor_free(void *value) {
  free(value);
  free(expect_hide(malloc(200000)));
}

static void *tear(void *payload) {
  void *own = expect_hide(malloc(300));

  pthread_setspecific(keys[2], payload);
  pthread_setspecific(keys[0], (void *)1);
  pthread_setspecific(keys[1], (void *)1);
  pthread_setspecific(keys[3], own);
  return NULL;
}

/* Destructors are the first thing in these threads that allocates. */
static void *tear_only(void *unused) {
  pthread_setspecific(keys[0], (void *)1);
  return unused;
}

static void *tear_detached(void *unused) {
  pthread_setspecific(keys[0], (void *)1);
  free(expect_hide(malloc(100)));
  sem_post(&finished);
  return unused;
}

static void some_threads(size_t count) {
  size_t i;

  for (i = 0; i < count; i++) {
    pthread_t threads[2];
    void *payload = expect_hide(malloc(100000));

    REQUIRE(pthread_create(&threads[0], NULL, tear, payload) == 0, "pthread_create");
    REQUIRE(pthread_create(&threads[1], NULL, tear_only, NULL) == 0, "pthread_create");
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
  }
}

/*
 * The resident set must not grow from `before` to now: not by more than what is kept at hand below
 * the mark, and when that is given back not at all.
 */
static void check_flat(size_t before, const char *what) {
  size_t now = expect_rss();

  EXPECT(now <= before + 32 * EXPECT_MIB, "%s: %zu KiB became %zu", what, before >> 10, now >> 10);
  malloc_trim(0);
  now = expect_rss();
  EXPECT(now <= before + 2 * EXPECT_MIB, "%s, trimmed: %zu KiB became %zu", what, before >> 10,
         now >> 10);
}

static size_t rest(void) {
  malloc_trim(0);
  return expect_rss();
}

static void joined(void) {
  size_t before;

  some_threads(100);
  before = rest();
  some_threads(900);
  check_flat(before, "threads that end");
  EXPECT(rounds_seen > 0, "no destructor ran its last round");
}

/* Wait until the process has at most so many threads: detached ones end when they like. */
static void wait_for_threads(size_t limit) {
  while (expect_proc("/proc/self/status", "Threads:") / EXPECT_KIB > limit)
    usleep(500);
}

static void detach_some(size_t count) {
  pthread_attr_t attributes;
  size_t i;

  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  for (i = 0; i < count; i++) {
    pthread_t thread;
    wait_for_threads(6);
    REQUIRE(pthread_create(&thread, &attributes, tear_detached, NULL) == 0, "pthread_create");
    sem_wait(&finished);
  }
  pthread_attr_destroy(&attributes);
  wait_for_threads(1);
}

static void detached(void) {
  size_t before;

  detach_some(200);
  before = rest();
  detach_some(800);
  check_flat(before, "threads that end");
}

/* 8192 handlers that take and free while the process ends; the last to run tells the result. */
enum { HANDLERS = 8192 };
static void *exit_blocks[HANDLERS];
static size_t exit_count;

static void at_exit(void) {
  void *block = expect_hide(malloc(1 + exit_count % 3000));

  REQUIRE(block != NULL, "malloc in an atexit handler");
  free(exit_blocks[exit_count]);
  exit_blocks[exit_count++] = block;
}

static void last_at_exit(void) {
  size_t i;

  if (exit_count != HANDLERS)
    _exit(1);
  for (i = 0; i < HANDLERS; i++)
    free(exit_blocks[i]);
}

static void exits(void) {
  size_t i;

  REQUIRE(atexit(last_at_exit) == 0, "atexit");
  for (i = 0; i < HANDLERS; i++) {
    exit_blocks[i] = expect_hide(malloc(50));
    REQUIRE(atexit(at_exit) == 0, "atexit");
  }
}

/* exit() in one thread while others allocate. */
static void *endless(void *unused) {
  for (;;) {
    free(expect_hide(malloc(100)));
    free(expect_hide(malloc(100000)));
  }
  return unused;
}

static void exit_beside(void) {
  size_t i;

  for (i = 0; i < 3; i++) {
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, endless, NULL) == 0, "pthread_create");
  }
  exits();
}

int main(int argc, char **argv) {
  static const struct expect_case cases[] = {
      {"joined", joined, NULL},
      {"detached", detached, NULL},
      {"exits", exits, NULL},
      {"exit_beside", exit_beside, NULL},
  };

  sem_init(&finished, 0, 0);
  pthread_key_create(&keys[0], destructor_0);
  pthread_key_create(&keys[1], destructor_1);
  pthread_key_create(&keys[2], destructor_free);
  pthread_key_create(&keys[3], destructor_free);
  return expect_cases(cases, EXPECT_COUNT(cases), argc, argv);
}
