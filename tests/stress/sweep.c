/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads free each other's blocks while another trims the arena and reads its statistics, without
 * pause: so that what waits for a thread is looked at, and its slabs are given back, just while
 * that thread goes on. In a small buffer, where that happens most. Every block is checked when it
 * is freed. With pthreads only, so that a thread sanitizer can follow. Usage: sweep [ROUNDS]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/arena.h>
#include <weir/weir.h>

#include "stress.h"

enum { THREADS = 4, OWN = 64, SHARED = 64, STEPS = 200, LARGEST = 2000 };

static unsigned char buffer[3 << 20];
static weir_arena_t *arena;
static _Atomic(unsigned char *) shared[SHARED]; /* blocks that wait to be freed by anybody */
static atomic_bool done;
static size_t rounds = 1500;

/* A block's first word is its size, and all behind it one byte made of the block's address. */
static unsigned char *take(uint64_t *state) {
  uint32_t size = 16 + (uint32_t)(next_random(state) % LARGEST);
  unsigned char *block = weir_arena_alloc(arena, size);
  if (block == NULL)
    return NULL;
  memcpy(block, &size, sizeof size);
  memset(block + sizeof size, (int)((uintptr_t)block >> 4 & 0xff), size - sizeof size);
  return block;
}

static void give(unsigned char *block) {
  uint32_t size;
  if (block == NULL)
    return;
  memcpy(&size, block, sizeof size);
  REQUIRE(size >= 16 && size < 16 + LARGEST, "a block has %u bytes", size);
  for (size_t i = sizeof size; i < size; i++)
    REQUIRE(block[i] == ((uintptr_t)block >> 4 & 0xff), "byte %zu of %u was written", i, size);
  weir_arena_free(arena, block);
}

static void *work(void *argument) {
  uint64_t state = (uintptr_t)argument * 7919;
  unsigned char *own[OWN] = {NULL};
  for (size_t round = 0; round < rounds; round++) {
    /* In some rounds a thread only frees, and what others free of it then waits. */
    bool frees_only = next_random(&state) % 4 == 0;
    for (int step = 0; step < STEPS; step++) {
      unsigned char **one = &own[next_random(&state) % OWN];
      if (*one == NULL)
        *one = frees_only ? NULL : take(&state);
      else if (next_random(&state) % 3 == 0)
        give(atomic_exchange(&shared[next_random(&state) % SHARED], *one)), *one = NULL;
      else
        give(*one), *one = NULL;
    }
  }
  for (int i = 0; i < OWN; i++)
    give(own[i]);
  return NULL;
}

static void *look(void *argument) {
  uint64_t state = 99;
  weir_stats_t stats;
  (void)argument;
  while (!atomic_load(&done)) {
    (void)weir_arena_trim(arena, next_random(&state) % 2 == 0 ? 0 : SIZE_MAX);
    weir_arena_stats(arena, &stats, sizeof stats);
    REQUIRE(stats.live <= sizeof buffer, "%zu bytes are live", (size_t)stats.live);
  }
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t threads[THREADS], looker;
  weir_stats_t stats;
  if (argc > 1)
    rounds = strtoul(argv[1], NULL, 10);
  arena = weir_arena_create_in(buffer, sizeof buffer, NULL);
  REQUIRE(arena != NULL, "no arena");
  REQUIRE(pthread_create(&looker, NULL, look, NULL) == 0, "no thread");
  for (size_t i = 0; i < THREADS; i++)
    REQUIRE(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0, "no thread");
  for (size_t i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  atomic_store(&done, true);
  pthread_join(looker, NULL);
  for (int i = 0; i < SHARED; i++)
    give(atomic_load(&shared[i]));
  weir_arena_stats(arena, &stats, sizeof stats);
  REQUIRE(stats.live == 0, "%zu bytes stay live", (size_t)stats.live);
  weir_arena_destroy(arena);
  return 0;
}
