/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the test programs of the replaced malloc share: checks that print and count, a look at the
 * process from outside (resident set, page faults), patterns to fill blocks with, and a table of
 * cases each of which runs in a process of its own. Nothing here allocates, so that the programs
 * see only the blocks they ask for. Works in C and C++, in dynamic and (EXPECT_STATIC) in static
 * programs. The same programs pass with any correct malloc: what only weir promises is guarded by
 * expect_weir().
 *
 * Environment: EXPECT_WEIR=1 says that weir must be in use, so a program that would silently
 * test another malloc fails. EXPECT_STRICT=1 makes the weir-only checks run for any malloc.
 */
#ifndef EXPECT_H
#define EXPECT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/weir.h>

#include "../random.h"

/* The programs do on purpose, and at run time, what these warnings are about. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Walloc-size-larger-than="
#pragma GCC diagnostic ignored "-Wfree-nonheap-object"
#pragma GCC diagnostic ignored "-Wunused-result"
#if __GNUC__ >= 12
#pragma GCC diagnostic ignored "-Wuse-after-free"
#endif
#endif

#define EXPECT_SKIP 77
#define EXPECT_KIB ((size_t)1 << 10)
#define EXPECT_MIB ((size_t)1 << 20)
#define EXPECT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#ifdef EXPECT_STATIC
/* A static program has no table to look names up in: weak references stay NULL without weir. */
#pragma weak weir_version
#pragma weak weir_retain
#pragma weak weir_set_retain
#pragma weak weir_trim
#pragma weak weir_stats
#define EXPECT_FN(name) (&name)
#define EXPECT_EXTRA(type, name) ((type)NULL)
#else
/** The function of weir's API of that name, or NULL when weir is not in the process. */
#define EXPECT_FN(name) ((__typeof__(&name))dlsym(RTLD_DEFAULT, #name))
/** A function that the libc's headers may lack, as `type`, or NULL. */
#define EXPECT_EXTRA(type, name) ((type)dlsym(RTLD_DEFAULT, #name))
#endif

/** Check `cond`; when it does not hold, print the place and the message, and go on. */
#define EXPECT(cond, ...) \
  do { \
    if (!(cond)) \
      expect_fail(__FILE__, __LINE__, __VA_ARGS__); \
  } while (0)

/** As EXPECT, but the program cannot go on. */
#define REQUIRE(cond, ...) \
  do { \
    if (!(cond)) { \
      expect_fail(__FILE__, __LINE__, __VA_ARGS__); \
      _exit(1); \
    } \
  } while (0)

static int expect_failures;

__attribute__((format(printf, 3, 4))) static inline void expect_fail(const char *file, int line,
                                                                     const char *format, ...) {
  char text[512];
  int length = snprintf(text, sizeof text, "FAIL %s:%d: ", file, line);
  va_list arguments;

  /* One broken property fails thousands of checks: the first dozen say it all. */
  if (__atomic_add_fetch(&expect_failures, 1, __ATOMIC_RELAXED) > 12)
    return;
  va_start(arguments, format);
  vsnprintf(text + length, sizeof text - (size_t)length - 1, format, arguments);
  va_end(arguments);
  strcat(text, "\n");
  if (write(STDERR_FILENO, text, strlen(text)) < 0)
    _exit(1);
}

static inline bool expect_weir(void) {
  return EXPECT_FN(weir_version) != NULL;
}

/** Must the checks that only weir promises hold? */
static inline bool expect_strict(void) {
  return expect_weir() || getenv("EXPECT_STRICT") != NULL;
}

/** First call of every program: fail at once when weir should serve it and does not. */
static inline void expect_start(void) {
  if (getenv("EXPECT_WEIR") != NULL && !expect_weir()) {
    fprintf(stderr, "FAIL: weir is not in use in this program\n");
    _exit(1);
  }
}

/** Last call of every program: its exit status. */
static inline int expect_done(void) {
  int failures = __atomic_load_n(&expect_failures, __ATOMIC_RELAXED);

  if (failures != 0)
    fprintf(stderr, "%d checks failed\n", failures);
  return failures != 0;
}

/** Hide where a pointer comes from: the compiler must not reason about what is freed or sized. */
static inline void *expect_hide(const void *pointer) {
  __asm__ volatile("" : "+r"(pointer));
  return (void *)(uintptr_t)pointer;
}

static inline size_t expect_hide_size(size_t size) {
  __asm__ volatile("" : "+r"(size));
  return size;
}

static inline size_t expect_page(void) {
  return (size_t)sysconf(_SC_PAGESIZE);
}

static inline bool expect_aligned(const void *pointer, size_t alignment) {
  return ((uintptr_t)pointer & (alignment - 1)) == 0;
}

/** The line `key` ("Rss:") of a /proc file in bytes; read without stdio, which would allocate. */
static inline size_t expect_proc(const char *path, const char *key) {
  char text[8192];
  size_t length = 0;
  ssize_t got;
  char *line;
  int fd = open(path, O_RDONLY | O_CLOEXEC);

  if (fd < 0)
    return 0;
  while (length < sizeof text - 1 &&
         (got = read(fd, text + length, sizeof text - 1 - length)) > 0) {
    length += (size_t)got;
  }
  close(fd);
  text[length] = '\0';
  line = strstr(text, key);
  return line == NULL ? 0 : (size_t)strtoull(line + strlen(key), NULL, 10) * EXPECT_KIB;
}

/** The resident set, exact: /proc/self/statm may be off by a few dozen pages a processor. */
static inline size_t expect_rss(void) {
  return expect_proc("/proc/self/smaps_rollup", "Rss:");
}

/** Minor faults so far of the process (RUSAGE_SELF) or the calling thread (RUSAGE_THREAD). */
static inline long expect_faults(int who) {
  struct rusage usage;

  getrusage((__rusage_who_t)who, &usage);
  return usage.ru_minflt;
}

/** Write `size` bytes of the pattern `seed`. */
static inline void expect_fill(void *block, size_t size, uint64_t seed) {
  unsigned char *bytes = (unsigned char *)block;
  size_t i;

  for (i = 0; i + 8 <= size; i += 8) {
    uint64_t word = (seed + i) * 0x9e3779b97f4a7c15u;
    memcpy(bytes + i, &word, 8);
  }
  for (; i < size; i++)
    bytes[i] = (unsigned char)(seed + i * 31);
}

/** Are the first `size` bytes those of the pattern of `seed` laid over `whole` bytes? */
static inline bool expect_holds_part(const void *block, size_t size, size_t whole, uint64_t seed) {
  const unsigned char *bytes = (const unsigned char *)block;
  size_t words = whole / 8 * 8;
  size_t i;

  for (i = 0; i < words && i < size; i += 8) {
    uint64_t word = (seed + i) * 0x9e3779b97f4a7c15u;
    if (memcmp(bytes + i, &word, size - i < 8 ? size - i : 8) != 0)
      return false;
  }
  for (i = words; i < size; i++) {
    if (bytes[i] != (unsigned char)(seed + i * 31))
      return false;
  }
  return true;
}

static inline bool expect_holds(const void *block, size_t size, uint64_t seed) {
  return expect_holds_part(block, size, size, seed);
}

static inline bool expect_zero(const void *block, size_t size) {
  const unsigned char *bytes = (const unsigned char *)block;

  return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* Takes and frees so many blocks of each size that none is served by a larger one's slab any more,
 * as the first of a thread are. */
static inline void expect_settle(void) {
  static void *blocks[512];
  size_t size, i;
  for (size = 1; size <= 2 * EXPECT_KIB; size += size < 16 ? 15 : 16) {
    for (i = 0; i < EXPECT_COUNT(blocks); i++)
      blocks[i] = expect_hide(malloc(expect_hide_size(size)));
    for (i = 0; i < EXPECT_COUNT(blocks); i++)
      free(blocks[i]);
  }
}

/** Write one byte in each of the block's pages, so that all of them are resident. */
static inline void expect_touch(void *block, size_t size) {
  volatile unsigned char *bytes = (volatile unsigned char *)block;
  size_t page = expect_page();
  size_t i;

  for (i = 0; i < size; i += page)
    bytes[i] = (unsigned char)i;
  if (size > 0)
    bytes[size - 1] = 1;
}

/** One case of a program that runs each in a process of its own. */
struct expect_case {
  const char *name;
  void (*run)(void);
  const char *setting; /**< NAME=VALUE put into the environment of that process, or NULL */
};

/** How a child ended: its exit status, or 128 and the signal. */
static inline int expect_wait(pid_t child) {
  int status = 0;

  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/** Fork so often, one child after the other, until one fails. `live` is the life of each, by its
 * number, which it ends itself. */
static inline void expect_forks(size_t times, void (*live)(size_t number)) {
  size_t i;
  int result = 0;

  for (i = 0; i < times && result == 0; i++) {
    pid_t child = fork();

    if (child == 0)
      live(i);
    REQUIRE(child > 0, "fork: %s", strerror(errno));
    result = expect_wait(child);
    EXPECT(result == 0, "child %zu: %s %d", i, result > 128 ? "signal" : "exit",
           result > 128 ? result - 128 : result);
  }
}

static inline int expect_run_child(const struct expect_case *one, char *self) {
  int status = 0;
  pid_t child = fork();

  if (child == 0) {
    char *arguments[] = {self, (char *)(uintptr_t)one->name, NULL};
    if (one->setting != NULL)
      putenv((char *)(uintptr_t)one->setting);
    execv("/proc/self/exe", arguments);
    _exit(126);
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    continue;
  return status;
}

/** Run the case that argv[1] names in this process, or all of them, each in a fresh process. */
static inline int expect_cases(const struct expect_case *cases, size_t count, int argc,
                               char **argv) {
  size_t i;
  int failed = 0;

  expect_start();
  for (i = 0; i < count; i++) {
    if (argc > 1) {
      if (strcmp(cases[i].name, argv[1]) != 0)
        continue;
      cases[i].run();
      return expect_done();
    } else {
      int status = expect_run_child(&cases[i], argv[0]);
      bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;

      printf("%s %s%s%s\n", good ? "ok  " : "FAIL", cases[i].name,
             cases[i].setting != NULL ? " " : "", cases[i].setting != NULL ? cases[i].setting : "");
      if (!good && WIFSIGNALED(status))
        printf("     killed by signal %d\n", WTERMSIG(status));
      fflush(stdout);
      failed += !good;
    }
  }
  if (argc > 1) {
    fprintf(stderr, "no case is called %s\n", argv[1]);
    return 1;
  }
  return failed != 0;
}

#endif
