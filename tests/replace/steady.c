/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop that syscalls.sh looks at from outside: takes, writes and frees the same buffers, and
 * marks where its steady part begins and ends by closing a descriptor that does not exist.
 * Usage: steady SIZE LIVE plain|copy|thread
 */
#include "expect.h"

#include <pthread.h>
#include <semaphore.h>

enum { WARM_UP = 2, ROUNDS = 30, LIVE_MAX = 16, MARK = -4242 };
static void *buffers[LIVE_MAX];
static size_t size, live;
static sem_t filled, emptied;

static void take_all(void) {
  size_t i;

  for (i = 0; i < live; i++)
    expect_touch(buffers[i] = expect_hide(malloc(size)), size);
}

static void free_all(void) {
  size_t i;

  for (i = 0; i < live; i++)
    free(buffers[i]);
}

static void *consumer(void *unused) {
  for (;;) {
    sem_wait(&filled);
    free_all();
    sem_post(&emptied);
  }
  return unused;
}

static void iterate(const char *mode) {
  void *header;

  if (strcmp(mode, "copy") == 0) {
    take_all();
    header = expect_hide(malloc(48));
    memset(header, 1, 48);
    free(header);
    free_all();
  } else if (strcmp(mode, "thread") == 0) {
    take_all();
    sem_post(&filled);
    sem_wait(&emptied);
  } else {
    take_all();
    free_all();
  }
}

int main(int argc, char **argv) {
  pthread_t thread;
  int i;

  expect_start();
  REQUIRE(argc == 4, "usage: steady SIZE LIVE MODE");
  size = strtoull(argv[1], NULL, 10);
  live = strtoull(argv[2], NULL, 10);
  REQUIRE(live <= LIVE_MAX, "too many");
  sem_init(&filled, 0, 0);
  sem_init(&emptied, 0, 0);
  if (strcmp(argv[3], "thread") == 0)
    pthread_create(&thread, NULL, consumer, NULL);
  for (i = 0; i < WARM_UP; i++)
    iterate(argv[3]);
  close(MARK);
  for (i = 0; i < ROUNDS; i++)
    iterate(argv[3]);
  close(MARK);
  return expect_done();
}
