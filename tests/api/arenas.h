/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of arenas share: arenas made in one line, their statistics, patterns to fill
 * blocks with, and a look at the process from outside. To be
 * included by a file of Check tests.
 */
#ifndef TESTS_API_ARENAS_H
#define TESTS_API_ARENAS_H

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <weir/arena.h>

#include "../random.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* A sanitizer's own memory comes and goes beside the program's: no exact look from outside then. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static inline weir_stats_t now(weir_arena_t *arena) {
  weir_stats_t stats;

  memset(&stats, 0xee, sizeof stats);
  weir_arena_stats(arena, &stats, sizeof stats);
  return stats;
}

/** Every system call that weir counts. */
static inline uint64_t calls(weir_arena_t *arena) {
  weir_stats_t stats = now(arena);

  return stats.sys_map + stats.sys_unmap + stats.sys_purge + stats.sys_advise + stats.sys_probe +
         stats.sys_move;
}

static inline weir_arena_options_t options(void) {
  weir_arena_options_t defaults = WEIR_ARENA_OPTIONS_INIT;

  return defaults;
}

static inline weir_arena_t *make(size_t retain, size_t limit, size_t prefault) {
  weir_arena_options_t wanted = options();
  weir_arena_t *arena;

  wanted.name = "test";
  wanted.retain = retain;
  wanted.limit = limit;
  wanted.prefault = prefault;
  errno = 99;
  arena = weir_arena_create(&wanted);
  ck_assert_msg(arena != NULL, "weir_arena_create: %s", strerror(errno));
  ck_assert_int_eq(errno, 99);
  return arena;
}

/** So many threads that run `what` on the arena, all at once. Returns the sum of their results. */
static inline size_t sum_of_threads(size_t count, void *(*what)(void *arena), weir_arena_t *arena) {
  pthread_t threads[16];
  size_t i, sum = 0;

  ck_assert_uint_le(count, LENGTH(threads));
  for (i = 0; i < count; i++)
    ck_assert_int_eq(pthread_create(&threads[i], NULL, what, arena), 0);
  for (i = 0; i < count; i++) {
    void *result;
    pthread_join(threads[i], &result);
    sum += (size_t)result;
  }
  return sum;
}

static inline weir_arena_t *make_plain(void) {
  return make(WEIR_RETAIN_DEFAULT, WEIR_LIMIT_NONE, 0);
}

static inline weir_arena_t *make_in(void *buffer, size_t size) {
  weir_arena_t *arena = weir_arena_create_in(buffer, size, NULL);

  ck_assert_msg(arena != NULL, "weir_arena_create_in(%p, %zu): %s", buffer, size, strerror(errno));
  return arena;
}

static inline bool all_are(const void *block, unsigned char value, size_t count) {
  const unsigned char *bytes = block;

  return count == 0 || (bytes[0] == value && memcmp(bytes, bytes + 1, count - 1) == 0);
}

/** Write one byte in each page. */
static inline void touch(void *block, size_t size) {
  volatile unsigned char *bytes = block;
  size_t i;

  for (i = 0; i < size; i += 4096)
    bytes[i] = 1;
  if (size > 0)
    bytes[size - 1] = 1;
}

/** Byte `i` of the pattern `seed`. */
static inline unsigned char pattern(uint64_t seed, size_t i) {
  return (unsigned char)(seed + i * 7 + (i >> 8));
}

/** Both ends of a block get the pattern: the middle of a large one would take all the time. */
static inline void fill(void *block, size_t size, uint64_t seed) {
  unsigned char *bytes = block;
  size_t i;

  for (i = 0; i < size; i++) {
    if (i == 512 && size > 1024)
      i = size - 512;
    bytes[i] = pattern(seed, i);
  }
}

/** Does it still hold the first `kept` of the `size` bytes that fill wrote? */
static inline bool holds(const void *block, size_t kept, size_t size, uint64_t seed) {
  const unsigned char *bytes = block;
  size_t i;

  for (i = 0; i < kept; i++) {
    if (i == 512 && size > 1024)
      i = size - 512;
    if (i < kept && bytes[i] != pattern(seed, i))
      return false;
  }
  return true;
}

/** Minor and major faults of the process so far. */
static inline long faults(void) {
  struct rusage usage;

  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

/** The resident set, exact to the page. */
static inline size_t resident(void) {
  char text[4096];
  const char *line;
  FILE *file = fopen("/proc/self/smaps_rollup", "r");
  size_t length;

  ck_assert_ptr_nonnull(file);
  length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = '\0';
  line = strstr(text, "Rss:");
  ck_assert_ptr_nonnull(line);
  return strtoull(line + 4, NULL, 10) << 10;
}

/** Run `body(argument)` in another thread and wait for its end. */
static inline void *elsewhere(void *(*body)(void *), void *argument) {
  pthread_t thread;
  void *result;

  ck_assert_int_eq(pthread_create(&thread, NULL, body, argument), 0);
  ck_assert_int_eq(pthread_join(thread, &result), 0);
  return result;
}

static inline int run_suite(Suite *suite) {
  SRunner *runner = srunner_create(suite);
  int failed;

  srunner_run_all(runner, CK_NORMAL);
  failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}

#endif
