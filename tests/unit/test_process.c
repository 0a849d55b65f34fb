/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process: locks around fork, and what is written at load and at exit of this program when it
 * is run again with options.
 */
#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/arena.h>

#include "init.h"
#include "thread.h"
#include "unit.h"
#include "weir.h"

/* How many of the locks that have a name are taken. */
static int held(void) {
  struct wr_arena *arena = &wr_arena_default;
  int count = (atomic_load(&arena->spans.lock.word) != 0) +
              (atomic_load(&arena->spans.growing.word) != 0) +
              (atomic_load(&arena->meta.lock.word) != 0);
  for (struct wr_heap *heap = atomic_load(&arena->heaps); heap != NULL; heap = heap->next)
    count += atomic_load(&heap->lock.word) != 0;
  return count;
}

static pthread_barrier_t barrier;

static void *have_a_heap(void *argument) {
  weir_free(weir_malloc(100));
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  return argument;
}

START_TEST(all_locks_are_held_around_fork) {
  pthread_t thread[2];
  pthread_barrier_init(&barrier, NULL, 3);
  weir_free(weir_malloc(100));
  for (int i = 0; i < 2; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, have_a_heap, NULL), 0);
  pthread_barrier_wait(&barrier);
  ck_assert_int_eq(held(), 0);
  wr_process_before_fork();
  ck_assert_int_eq(held(), 3 + 3);
  wr_process_after_fork();
  ck_assert_int_eq(held(), 0);
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < 2; i++)
    pthread_join(thread[i], NULL);
}
END_TEST

static void use_everything(void *argument) {
  void *block[100];
  if (held() != 0 || (argument != NULL && wr_lock_self != wr_os_thread()))
    abort();
  for (size_t i = 0; i < 100; i++) {
    block[i] = weir_malloc(i * i * 20);
    if (block[i] == NULL)
      abort();
    memset(block[i], 1, i * i * 20);
  }
  for (size_t i = 0; i < 100; i++)
    weir_free(block[i]);
  (void)weir_trim(0);
  wr_span_check(&wr_arena_default.spans);
  if (held() != 0)
    abort();
}

START_TEST(a_child_finds_every_lock_free) {
  unit_expect_success(use_everything, NULL);
  weir_free(weir_malloc(100));
  unit_expect_success(use_everything, NULL);
  ck_assert_int_eq(held(), 0);
}
END_TEST

static _Atomic(bool) stop;

static void *churn(void *argument) {
  uint64_t state = (uintptr_t)argument;
  void *block[32] = {NULL};
  while (!atomic_load(&stop)) {
    size_t i = unit_below(&state, 32);
    weir_free(block[i]);
    block[i] = weir_malloc(unit_below(&state, unit_below(&state, 8) == 0 ? 300000 : 2000));
  }
  for (int i = 0; i < 32; i++)
    weir_free(block[i]);
  return NULL;
}

START_TEST(children_of_a_busy_process) {
  pthread_t thread[3];
  for (uintptr_t i = 0; i < 3; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, churn, (void *)(i + 1)), 0);
  for (int i = 0; i < 25; i++) {
    weir_free(weir_malloc(100000));
    unit_expect_success(use_everything, &stop);
  }
  atomic_store(&stop, true);
  for (int i = 0; i < 3; i++)
    pthread_join(thread[i], NULL);
  ck_assert_int_eq(held(), 0);
}
END_TEST

START_TEST(verbose_says_what_is_in_force) {
  char *environment[] = {(char *)(uintptr_t) "WEIR_VERBOSE=1", (char *)(uintptr_t) "WEIR_RETAIN=1M",
                         NULL};
  char got[2000], want[200];
  snprintf(want, sizeof want,
           "weir %s active: WEIR_RETAIN=1M WEIR_THP=default WEIR_VERBOSE=1 WEIR_STATS=0"
           " WEIR_RCUTILS_RETAIN=default WEIR_RCUTILS_LIMIT=unlimited\n",
           weir_version());
  (void)unit_again(environment, got, sizeof got);
  ck_assert_str_eq(got, want);
}
END_TEST

START_TEST(statistics_go_to_standard_error_at_exit) {
  char *environment[] = {(char *)(uintptr_t) "WEIR_STATS=1", NULL};
  char got[16384], want[100];
  int process = unit_again(environment, got, sizeof got);
  snprintf(want, sizeof want, "weir %s, process %d\n", weir_version(), process);
  ck_assert_int_eq(strncmp(got, want, strlen(want)), 0);
  ck_assert_ptr_nonnull(strstr(got, "\n  live "));
  environment[0] = (char *)(uintptr_t) "WEIR_STATS=json";
  process = unit_again(environment, got, sizeof got);
  snprintf(want, sizeof want, "{\"weir\":\"%s\",\"pid\":%d,", weir_version(), process);
  ck_assert_int_eq(strncmp(got, want, strlen(want)), 0);
  ck_assert_str_eq(got + strlen(got) - 3, "]}\n");
}
END_TEST

static char folder[300];

static void make_folder(void) {
  const char *parent = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/weir-unit-XXXXXX", parent != NULL ? parent : "/tmp");
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

/* Reads a file of the folder and removes it. */
static void read_file(const char *name, char *text, size_t room) {
  char path[600];
  FILE *file;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  file = fopen(path, "r");
  ck_assert_msg(file != NULL, "%s is missing", path);
  text[fread(text, 1, room - 1, file)] = '\0';
  fclose(file);
  unlink(path);
}

START_TEST(statistics_go_to_a_file_named_by_the_process) {
  char entry[600], name[200], got[16384], want[100];
  char *environment[] = {entry, NULL};
  int process;
  make_folder();
  snprintf(entry, sizeof entry, "WEIR_STATS=json:%s/a.%%p.%%p%%x%%", folder);
  process = unit_again(environment, got, sizeof got);
  ck_assert_str_eq(got, "");
  snprintf(name, sizeof name, "a.%d.%d%%x%%", process, process);
  read_file(name, got, sizeof got);
  snprintf(want, sizeof want, "{\"weir\":\"%s\",\"pid\":%d,", weir_version(), process);
  ck_assert_int_eq(strncmp(got, want, strlen(want)), 0);
  ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(statistics_are_appended) {
  char entry[600], got[16384], *second;
  char *environment[] = {entry, NULL};
  make_folder();
  snprintf(entry, sizeof entry, "WEIR_STATS=json:%s/all", folder);
  for (int i = 0; i < 2; i++)
    (void)unit_again(environment, got, sizeof got);
  read_file("all", got, sizeof got);
  second = strchr(got, '\n');
  ck_assert_ptr_nonnull(second);
  ck_assert_int_eq(strncmp(second + 1, "{\"weir\":", 8), 0);
  ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(a_file_that_cannot_be_opened) {
  char got[16384];
  char *environment[] = {(char *)(uintptr_t) "WEIR_STATS=json:/nowhere/at/all", NULL};
  const char *json;
  (void)unit_again(environment, got, sizeof got);
  ck_assert_int_eq(strncmp(got, "weir: ", 6), 0);
  json = strchr(got, '\n');
  ck_assert_ptr_nonnull(json);
  ck_assert_int_eq(strncmp(json + 1, "{\"weir\":", 8), 0);
}
END_TEST

START_TEST(a_path_that_is_too_long_when_expanded) {
  static char entry[8000], got[16384];
  char *environment[] = {entry, NULL};
  snprintf(entry, sizeof entry, "WEIR_STATS=/tmp/");
  for (size_t at = strlen(entry); at < 7000; at += 2)
    memcpy(entry + at, "%p", 3);
  (void)unit_again(environment, got, sizeof got);
  ck_assert_int_eq(strncmp(got, "weir: ", 6), 0);
  ck_assert_ptr_nonnull(strstr(got, ", process "));
}
END_TEST

/*
 * Ends while its report goes into a pipe that nobody reads: that must hold up no other thread that
 * ends an arena, or that ends itself and has used one. Each says so by a byte.
 */
static int progress;
static weir_arena_t *to_end;

static void *end_an_arena(void *argument) {
  while (!atomic_load(&stop))
    wr_os_yield();
  usleep(200000);
  weir_arena_destroy(to_end);
  if (write(progress, "e", 1) != 1)
    abort();
  return argument;
}

static void *end_the_thread(void *argument) {
  weir_arena_free(NULL, weir_arena_alloc(argument, 100));
  while (!atomic_load(&stop))
    wr_os_yield();
  usleep(200000);
  return NULL;
}

static void *wait_for_end(void *argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, end_the_thread, argument) != 0)
    abort();
  pthread_join(thread, NULL);
  if (write(progress, "t", 1) != 1)
    abort();
  return NULL;
}

static void exit_with_a_report_that_blocks(int reports) {
  static char path[40];
  pthread_t thread[2];
  weir_arena_t *arena = weir_arena_create(NULL);
  to_end = weir_arena_create(NULL);
  snprintf(path, sizeof path, "/proc/self/fd/%d", reports);
  wr_init_options.stats = (struct wr_sink){WR_SINK_TEXT, path};
  if (arena == NULL || to_end == NULL ||
      pthread_create(&thread[0], NULL, end_an_arena, NULL) != 0 ||
      pthread_create(&thread[1], NULL, wait_for_end, arena) != 0)
    abort();
  usleep(100000);
  atomic_store(&stop, true);
  exit(0);
}

START_TEST(a_report_that_nobody_reads_holds_up_no_other_thread) {
  int reports[2], done[2];
  struct pollfd ready;
  char got[4096];
  pid_t child;
  ck_assert_int_eq(pipe(reports), 0);
  ck_assert_int_eq(pipe(done), 0);
  /* Filled to the last byte. */
  ck_assert_int_eq(fcntl(reports[1], F_SETFL, O_NONBLOCK), 0);
  while (write(reports[1], got, 1) == 1)
    continue;
  ck_assert_int_eq(fcntl(reports[1], F_SETFL, 0), 0);
  child = fork();
  if (child == 0) {
    progress = done[1];
    exit_with_a_report_that_blocks(reports[1]);
  }
  close(reports[1]);
  close(done[1]);
  for (int i = 0; i < 2; i++) {
    ready = (struct pollfd){done[0], POLLIN, 0};
    ck_assert_msg(poll(&ready, 1, 20000) == 1, "%d of 2 threads went on", i);
    ck_assert_int_eq(read(done[0], got, 1), 1);
  }
  /* And it is written all the same. */
  while (read(reports[0], got, sizeof got) > 0)
    continue;
  ck_assert_int_eq(waitpid(child, NULL, 0), child);
  close(reports[0]);
  close(done[0]);
}
END_TEST

UNIT_SUITE(process, a_report_that_nobody_reads_holds_up_no_other_thread,
           all_locks_are_held_around_fork, a_child_finds_every_lock_free,
           children_of_a_busy_process, verbose_says_what_is_in_force,
           statistics_go_to_standard_error_at_exit, statistics_go_to_a_file_named_by_the_process,
           statistics_are_appended, a_file_that_cannot_be_opened,
           a_path_that_is_too_long_when_expanded)
