/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork while other threads are inside malloc: the child takes blocks of all classes, frees and
 * checks what it inherited, forks again, and starts a thread; with handlers of pthread_atfork
 * that allocate, with purges going on, and from a thread that is not the main one. A child that
 * hangs is killed by its alarm and fails the test.
 */
#include "expect.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { THREADS = 4, INHERITED = 300, WATCHDOG = 20 };
static atomic_bool stop;
static void *inherited[INHERITED];
static size_t inherited_size[INHERITED];
static void *prepared;

/* Takes and frees without end; one of the threads goes over the mark or trims all the time. */
static void *busy(void *argument) {
  size_t number = (size_t)(uintptr_t)argument;
  uint64_t state = number + 1;
  void *own[64] = {0};
  size_t i;

  while (!atomic_load(&stop)) {
    size_t place = (size_t)(next_random(&state) % EXPECT_COUNT(own));
    size_t limit = number == 0 ? 3 * EXPECT_MIB : 70000;
    free(own[place]);
    own[place] = expect_hide(malloc(next_random_size(&state, limit)));
    if (own[place] != NULL)
      *(volatile char *)own[place] = 1;
    if (number == 1 && state % 1024 == 0)
      malloc_trim(0);
    /* Four threads on two processors must let the children run now and then. */
    if (state % 256 == 1)
      usleep(300);
  }
  for (i = 0; i < EXPECT_COUNT(own); i++)
    free(own[i]);
  return NULL;
}

static void take_inherited(void) {
  uint64_t state = 3;
  size_t i;

  for (i = 0; i < INHERITED; i++) {
    inherited_size[i] = next_random_size(&state, i % 20 == 0 ? 300000 : 20000);
    inherited[i] = expect_hide(malloc(inherited_size[i]));
    REQUIRE(inherited[i] != NULL, "malloc");
    expect_fill(inherited[i], inherited_size[i], i);
  }
}

/* Every class, a few payloads, and all of it freed again. */
static void all_classes(void) {
  void *blocks[100];
  size_t count = 0, size;

  for (size = 1; size < 400 * EXPECT_KIB; size += size / 6 + 15) {
    blocks[count] = expect_hide(malloc(size));
    if (blocks[count] == NULL)
      _exit(10);
    memset(blocks[count], 0x3c, size < 200 ? size : 200);
    count++;
  }
  while (count > 0)
    free(blocks[--count]);
}

static void *thread_in_child(void *unused) {
  all_classes();
  return unused;
}

static void free_inherited(void) {
  size_t i;

  for (i = 0; i < INHERITED; i++) {
    if (!expect_holds(inherited[i], inherited_size[i], i))
      _exit(11);
    free(inherited[i]);
  }
}

static void child_life(size_t number) {
  pthread_t thread;
  pid_t grandchild;

  alarm(WATCHDOG);
  all_classes();
  free_inherited();
  grandchild = fork();
  if (grandchild == 0) {
    alarm(WATCHDOG);
    all_classes();
    _exit(0);
  }
  if (grandchild < 0 || expect_wait(grandchild) != 0)
    _exit(12);
  if (number % 4 == 0) {
    if (pthread_create(&thread, NULL, thread_in_child, NULL) != 0)
      _exit(13);
    pthread_join(thread, NULL);
    malloc_trim(0);
  }
  all_classes();
  if (number % 16 == 0) {
    execl("/bin/true", "true", (char *)NULL);
    _exit(14);
  }
  _exit(0);
}

static void fork_often(size_t times) {
  pthread_t threads[THREADS];
  size_t i;

  take_inherited();
  for (i = 0; i < THREADS; i++) {
    REQUIRE(pthread_create(&threads[i], NULL, busy, (void *)i) == 0, "pthread_create");
  }
  expect_forks(times, child_life);
  atomic_store(&stop, true);
  for (i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  for (i = 0; i < INHERITED; i++) {
    EXPECT(expect_holds(inherited[i], inherited_size[i], i), "a child changed its parent's block");
    free(inherited[i]);
  }
}

static void plain(void) {
  fork_often(96);
}

static void *from_thread(void *unused) {
  fork_often(24);
  return unused;
}

static void other_thread(void) {
  pthread_t thread;

  REQUIRE(pthread_create(&thread, NULL, from_thread, NULL) == 0, "pthread_create");
  pthread_join(thread, NULL);
}

/* What libraries register: memory taken before the fork, freed and taken anew on both sides. */
static void prepare(void) {
  prepared = expect_hide(malloc(1000));
  memset(prepared, 1, 1000);
}

static void release(void) {
  void *more = expect_hide(calloc(100, 100));

  if (more == NULL || *(char *)prepared != 1)
    _exit(20);
  free(prepared);
  prepared = expect_hide(malloc(100000));
  free(prepared);
  free(more);
}

static void handlers(void) {
  REQUIRE(pthread_atfork(prepare, release, release) == 0, "pthread_atfork");
  fork_often(24);
}

/* The child of a program whose only allocation is the one being done by another thread. */
static void during_first(void) {
  size_t i;

  for (i = 0; i < 40; i++) {
    pid_t outer = fork();
    if (outer == 0) {
      pthread_t thread;
      pid_t inner;
      alarm(WATCHDOG);
      pthread_create(&thread, NULL, thread_in_child, NULL);
      inner = fork();
      if (inner == 0) {
        alarm(WATCHDOG);
        all_classes();
        _exit(0);
      }
      pthread_join(thread, NULL);
      _exit(expect_wait(inner));
    }
    EXPECT(expect_wait(outer) == 0, "fork during a first malloc");
  }
}

/* What a child of vfork does before exec, and what system() does, leave no trace. */
static void spawned(void) {
  size_t i;

  for (i = 0; i < 20; i++) {
    EXPECT(system("exit 7") == 7 << 8, "system");
    all_classes();
  }
}

/* fork takes libc's lock of the list of streams, which a thread in fflush(NULL) holds while its
 * stream's function allocates: the order of the two locks must be the same for both. */
static ssize_t write_and_allocate(void *unused, const char *bytes, size_t length) {
  (void)unused;
  (void)bytes;
  free(expect_hide(malloc(200000)));
  return (ssize_t)length;
}

static void *flush_all(void *stream) {
  while (!atomic_load(&stop)) {
    fputs("hello", stream);
    fflush(NULL);
  }
  return stream;
}

static void list_of_streams(void) {
  cookie_io_functions_t functions = {.write = write_and_allocate};
  FILE *stream = fopencookie(NULL, "w", functions);
  pthread_t thread;
  size_t i;

  REQUIRE(stream != NULL, "fopencookie");
  REQUIRE(pthread_create(&thread, NULL, flush_all, stream) == 0, "pthread_create");
  for (i = 0; i < 200; i++) {
    pid_t child = fork();
    if (child == 0)
      _exit(0);
    REQUIRE(child > 0 && expect_wait(child) == 0, "child %zu", i);
  }
  atomic_store(&stop, true);
  pthread_join(thread, NULL);
  fclose(stream);
}

/* A child that clone makes runs no handlers, and takes its parent's thread for its own. */
static void *use_payloads(void *unused) {
  size_t i;

  for (i = 0; i < 20000; i++) {
    char *block = expect_hide(malloc(200000));
    if (block == NULL)
      _exit(10);
    *(volatile char *)block = 1;
    free(block);
  }
  return unused;
}

static int cloned_life(void *unused) {
  pthread_t threads[3];
  size_t i;

  (void)unused;
  alarm(WATCHDOG);
  for (i = 0; i < 3; i++) {
    if (pthread_create(&threads[i], NULL, use_payloads, NULL) != 0)
      _exit(13);
  }
  use_payloads(NULL);
  for (i = 0; i < 3; i++)
    pthread_join(threads[i], NULL);
  all_classes();
  _exit(0);
}

static void cloned(void) {
  static char stack[1 << 20];
  pthread_t thread;
  pid_t child;

  /* So that the parent knows of threads and has their identities. */
  REQUIRE(pthread_create(&thread, NULL, thread_in_child, NULL) == 0, "pthread_create");
  pthread_join(thread, NULL);
  child = clone(cloned_life, stack + sizeof stack, SIGCHLD, NULL);
  REQUIRE(child > 0, "clone: %s", strerror(errno));
  EXPECT(expect_wait(child) == 0, "a child of clone");
}

int main(int argc, char **argv) {
  static const struct expect_case cases[] = {
      {"during_first", during_first, NULL},
      {"plain", plain, NULL},
      {"other_thread", other_thread, NULL},
      {"handlers", handlers, NULL},
      {"other_thread", other_thread, "WEIR_RETAIN=0"},
      {"spawned", spawned, NULL},
      {"list_of_streams", list_of_streams, NULL},
      {"cloned", cloned, NULL},
  };

  return expect_cases(cases, EXPECT_COUNT(cases), argc, argv);
}
