/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For test programs of misuse: each case frees, resizes or measures what it must not, in a process
 * of its own, which must end by SIGABRT after exactly one line that names the kind and the address.
 * A case writes the line it expects to its standard output first.
 */
#ifndef MISUSE_H
#define MISUSE_H

#include <pthread.h>

#include "expect.h"

#define INVALID "invalid pointer"
#define DOUBLE "double free"
/* Memory given back loses its past: such a pointer may have become invalid altogether. */
#define EITHER "invalid pointer or double free"
#define CORRUPT "corrupted free list"

/* Say which line must come, then go on to deserve it. */
static inline void *doomed(const char *kind, void *address) {
  char line[128];
  int length = snprintf(line, sizeof line, "%s: %p", kind, address);

  if (write(STDOUT_FILENO, line, (size_t)length) != length)
    _exit(2);
  return expect_hide(address);
}

static inline void *give(void *block) {
  free(block);
  return NULL;
}

/* Free a block in another thread. */
static inline void give_elsewhere(void *block) {
  pthread_t thread;

  if (pthread_create(&thread, NULL, give, block) != 0)
    _exit(6);
  pthread_join(thread, NULL);
}

/* Does the line say what the case expected? The address may be left open. */
static inline bool line_fits(const char *line, const char *expected) {
  const char *colon = strchr(expected, ':');
  char kind[64];
  const char *address;

  if (colon == NULL || strncmp(line, "weir: ", 6) != 0)
    return false;
  address = strrchr(line, ':');
  snprintf(kind, sizeof kind, "%.*s", (int)(address - line) - 6, line + 6);
  if (strncmp(expected, EITHER, strlen(EITHER)) == 0) {
    if (strcmp(kind, INVALID) != 0 && strcmp(kind, DOUBLE) != 0)
      return false;
  } else if (strlen(kind) != (size_t)(colon - expected) ||
             strncmp(kind, expected, strlen(kind)) != 0) {
    return false;
  }
  if (strstr(colon, "nil") != NULL)
    return strncmp(address, ": 0x", 4) == 0;
  /* The expected address ends the text, the line ends with a line feed. */
  return strncmp(address, colon, strlen(colon)) == 0 && strcmp(address + strlen(colon), "\n") == 0;
}

static inline size_t drain(int fd, char *text, size_t room) {
  size_t length = 0;
  ssize_t got;

  while (length < room - 1 && (got = read(fd, text + length, room - 1 - length)) > 0) {
    length += (size_t)got;
  }
  text[length] = '\0';
  close(fd);
  return length;
}

static inline bool die_rightly(const struct expect_case *one, char *self) {
  char line[1024], expected[256];
  int out[2], err[2], status = 0;
  pid_t child;

  if (pipe(out) != 0 || pipe(err) != 0)
    return false;
  child = fork();
  if (child == 0) {
    char *arguments[] = {self, (char *)(uintptr_t)one->name, NULL};
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    close(out[0]);
    close(err[0]);
    if (one->setting != NULL)
      putenv((char *)(uintptr_t)one->setting);
    execv("/proc/self/exe", arguments);
    _exit(126);
  }
  close(out[1]);
  close(err[1]);
  drain(out[0], expected, sizeof expected);
  drain(err[0], line, sizeof line);
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && line_fits(line, expected))
    return true;
  printf("FAIL %s: %s %d, expected \"%s\", printed \"%s\"\n", one->name,
         WIFSIGNALED(status) ? "signal" : "exit",
         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), expected, line);
  return false;
}

/** Without arguments all cases, with a case's name only that one, in this process. */
static inline int misuse_cases(const struct expect_case *cases, size_t count, int argc,
                               char **argv) {
  struct rlimit none = {0, 0};
  size_t i, failed = 0;

  setrlimit(RLIMIT_CORE, &none);
  if (argc > 1) {
    /* A wild pointer that is taken for a block may lead anywhere, also into a loop. */
    alarm(10);
    expect_cases(cases, count, argc, argv);
    return 0;
  }
  if (!expect_strict())
    return EXPECT_SKIP;
  for (i = 0; i < count; i++)
    failed += !die_rightly(&cases[i], argv[0]);
  printf("%zu cases, %zu failed\n", count, failed);
  return failed != 0;
}

#endif
