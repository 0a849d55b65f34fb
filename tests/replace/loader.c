/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir opened with dlopen by a program that has its own malloc: it loads after other libraries
 * with thread-local data, many times, serves threads, and survives that its users close it.
 * Usage: loader_plain LIBRARY [OTHER-LIBRARY...]
 */
#include "expect.h"

#include <pthread.h>

typedef void *(*take_fn)(size_t);
typedef void (*give_fn)(void *);
typedef size_t (*trim_fn)(size_t);

static take_fn take;
static give_fn give;
static trim_fn trim;

static void use(void) {
  void *blocks[200];
  size_t i;

  for (i = 0; i < EXPECT_COUNT(blocks); i++) {
    size_t size = i * i * 5;
    blocks[i] = expect_hide(take(size));
    REQUIRE(blocks[i] != NULL, "a block of %zu", size);
    memset(blocks[i], (int)i, size);
  }
  for (i = 0; i < EXPECT_COUNT(blocks); i++)
    give(blocks[i]);
}

static void *in_thread(void *unused) {
  use();
  return unused;
}

static pthread_barrier_t used, closed;

/* This thread goes on, and ends, after its library was closed. */
static void *beyond_close(void *unused) {
  use();
  pthread_barrier_wait(&used);
  pthread_barrier_wait(&closed);
  return unused;
}

static void *open_library(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

  REQUIRE(library != NULL, "%s", dlerror());
  take = (take_fn)dlsym(library, "weir_malloc");
  give = (give_fn)dlsym(library, "weir_free");
  trim = (trim_fn)dlsym(library, "weir_trim");
  REQUIRE(take != NULL && give != NULL && trim != NULL, "%s has no weir_malloc", path);
  return library;
}

int main(int argc, char **argv) {
  pthread_t thread;
  void *library;
  int i, loaded = 0;

  expect_start();
  REQUIRE(argc > 1, "usage: loader_plain LIBRARY [OTHER-LIBRARY...]");
  for (i = 2; i < argc; i++)
    loaded += dlopen(argv[i], RTLD_NOW | RTLD_LOCAL) != NULL;
  printf("%d of %d other libraries loaded\n", loaded, argc - 2);
  for (i = 0; i < 20; i++) {
    library = open_library(argv[1]);
    use();
    REQUIRE(pthread_create(&thread, NULL, in_thread, NULL) == 0, "pthread_create");
    pthread_join(thread, NULL);
    trim(0);
    dlclose(library);
    free(expect_hide(malloc(1000)));
  }
  library = open_library(argv[1]);
  pthread_barrier_init(&used, NULL, 2);
  pthread_barrier_init(&closed, NULL, 2);
  REQUIRE(pthread_create(&thread, NULL, beyond_close, NULL) == 0, "pthread_create");
  pthread_barrier_wait(&used);
  dlclose(library);
  pthread_barrier_wait(&closed);
  pthread_join(thread, NULL);
  return expect_done();
}
