/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the unit tests share: see unit.h.
 */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Far more than any test takes, with a sanitizer and on a busy machine. */
#define SECONDS 120

Suite *unit_suite(const char *name, const TTest **tests) {
  Suite *suite = suite_create(name);
  TCase *cases = tcase_create(name);
  tcase_set_timeout(cases, SECONDS);
  for (; *tests != NULL; tests++)
    tcase_add_test(cases, *tests);
  suite_add_tcase(suite, cases);
  return suite;
}

uint64_t unit_random(uint64_t *state) {
  /* Marsaglia's xorshift. */
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

size_t unit_below(uint64_t *state, size_t limit) {
  return (size_t)((unit_random(state) >> 16) % limit);
}

/* Reads to the end of what the child writes, as a string. */
static void read_all(int fd, char *text, size_t room) {
  char rest[256];
  size_t used = 0;
  for (;;) {
    bool full = used + 1 == room;
    ssize_t got = read(fd, full ? rest : text + used, full ? sizeof rest : room - used - 1);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    used += full ? 0 : (size_t)got;
  }
  text[used] = '\0';
  close(fd);
}

/* Forks; the parent gets the end to read standard error from. */
static pid_t fork_with_pipe(int *fd) {
  int ends[2];
  pid_t child;
  ck_assert_int_eq(pipe(ends), 0);
  child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    return 0;
  }
  close(ends[1]);
  *fd = ends[0];
  return child;
}

static int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    ck_assert_int_eq(errno, EINTR);
  return status;
}

int unit_child(void (*what)(void *argument), void *argument, char *text, size_t room) {
  int fd = -1;
  pid_t child = fork_with_pipe(&fd);
  if (child == 0) {
    what(argument);
    _exit(0);
  }
  read_all(fd, text, room);
  return wait_for(child);
}

void unit_expect_abort(void (*what)(void *argument), void *argument, const char *text) {
  char got[1024];
  int status = unit_child(what, argument, got, sizeof got);
  ck_assert_str_eq(got, text);
  ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "wait status %#x", status);
}

void unit_expect_misuse(void (*what)(void *argument), void *argument, const char *kind,
                        const void *address) {
  char line[128];
  snprintf(line, sizeof line, "weir: %s: 0x%jx\n", kind, (uintmax_t)(uintptr_t)address);
  unit_expect_abort(what, argument, line);
}

void unit_expect_success(void (*what)(void *argument), void *argument) {
  char got[4096];
  int status = unit_child(what, argument, got, sizeof got);
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status %#x: %s", status, got);
}

int unit_again(char *const environment[], char *text, size_t room) {
  /* No suite has this name, so that main comes back at once. */
  char *const arguments[] = {(char *)(uintptr_t) "unit", (char *)(uintptr_t) "no suite", NULL};
  int fd = -1;
  pid_t child = fork_with_pipe(&fd);
  if (child == 0) {
    /* What Check says of no tests is of no interest. */
    close(1);
    execve("/proc/self/exe", arguments, environment);
    _exit(127);
  }
  read_all(fd, text, room);
  int status = wait_for(child);
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) != 127, "wait status %#x: %s", status,
                text);
  return (int)child;
}

int unit_sink(void *context, const char *bytes, size_t length) {
  struct unit_sink *sink = context;
  if (++sink->calls == sink->fail_at)
    return sink->error;
  ck_assert_uint_lt(sink->used + length, sizeof sink->text);
  memcpy(sink->text + sink->used, bytes, length);
  sink->used += length;
  sink->text[sink->used] = '\0';
  return 0;
}
