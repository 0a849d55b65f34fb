/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that share pools: each takes buffers from one pool and releases them to another, writes
 * to them and finds what it wrote, and makes and ends pools of its own meanwhile. At the end the
 * counts are exact and nothing is live. With pthreads only, so that a thread sanitizer can follow.
 * Usage: pool [CALLS]
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/pool.h>

#include "stress.h"

enum { THREADS = 4, POOLS = 3, OUT = 16 };

static const size_t bounds[POOLS] = {20000, 300000, SIZE_MAX};
static weir_pool_t *pools[POOLS];
static size_t calls = 100000;

/* What one thread did with each pool. */
struct tally {
  unsigned number;
  uint64_t acquired[POOLS], released[POOLS];
};

struct out {
  unsigned char *buffer;
  size_t size;
  unsigned char byte;
};

static void acquire(weir_pool_t *pool, struct out *out, uint64_t dice) {
  out->size = (size_t)(dice >> 32) % (dice % 16 == 0 ? 200000 : 3000) + 1;
  out->buffer = weir_pool_acquire(pool, out->size);
  out->byte = (unsigned char)(dice >> 24);
  REQUIRE(out->buffer != NULL, "no buffer of %zu bytes", out->size);
  memset(out->buffer, out->byte, out->size);
}

static void release(weir_pool_t *pool, struct out *out) {
  REQUIRE(out->buffer[0] == out->byte && memcmp(out->buffer, out->buffer + 1, out->size - 1) == 0,
          "a buffer of %zu bytes changed", out->size);
  weir_pool_release(pool, out->buffer);
  out->buffer = NULL;
}

static void use_own(uint64_t dice) {
  weir_pool_t *own = weir_pool_create(NULL, (size_t)(dice % 5000));
  REQUIRE(own != NULL, "no pool");
  for (int i = 0; i < 4; i++)
    weir_pool_release(own, weir_malloc((size_t)(dice % 3000)));
  weir_pool_destroy(own);
}

static void look(size_t which) {
  weir_pool_stats_t stats;
  weir_pool_stats(pools[which], &stats);
  REQUIRE(stats.kept <= bounds[which] && stats.kept <= stats.peak, "%zu: %llu bytes kept", which,
          (unsigned long long)stats.kept);
  REQUIRE((stats.kept == 0) == (stats.buffers == 0), "%zu: no buffers and bytes", which);
}

static void *use(void *argument) {
  struct tally *tally = argument;
  struct out out[OUT] = {{NULL, 0, 0}};
  uint64_t state = tally->number;
  for (size_t call = 0; call < calls; call++) {
    uint64_t dice = next_random(&state);
    size_t which = (size_t)(dice >> 8) % POOLS;
    struct out *place = &out[(dice >> 16) % OUT];
    if (place->buffer == NULL) {
      acquire(pools[which], place, next_random(&state));
      tally->acquired[which]++;
    } else {
      release(pools[which], place);
      tally->released[which]++;
    }
    if (dice % 256 == 1)
      use_own(dice >> 16);
    if (dice % 256 == 2)
      look(which);
  }
  for (int i = 0; i < OUT; i++)
    weir_free(out[i].buffer);
  return NULL;
}

/* Every call of the threads is in one of the counts. */
static void check_counts(const struct tally *tallies, size_t which) {
  weir_pool_stats_t stats;
  uint64_t acquired = 0, released = 0;
  for (int i = 0; i < THREADS; i++) {
    acquired += tallies[i].acquired[which];
    released += tallies[i].released[which];
  }
  weir_pool_stats(pools[which], &stats);
  REQUIRE(stats.acquired == acquired, "%zu: %llu acquired, counted %llu", which,
          (unsigned long long)acquired, (unsigned long long)stats.acquired);
  REQUIRE(stats.buffers + stats.reused + stats.grown + stats.passed == released,
          "%zu: %llu released, and their whereabouts do not sum up", which,
          (unsigned long long)released);
  REQUIRE(stats.reused > 0 && stats.grown > 0, "%zu: nothing was reused or exchanged", which);
  look(which);
}

int main(int argc, char **argv) {
  static struct tally tallies[THREADS];
  pthread_t threads[THREADS];
  weir_stats_t before, after;
  if (argc > 1)
    calls = strtoull(argv[1], NULL, 10);
  weir_stats(&before, sizeof before);
  for (size_t i = 0; i < POOLS; i++)
    REQUIRE((pools[i] = weir_pool_create(NULL, bounds[i])) != NULL, "no pool");
  for (unsigned i = 0; i < THREADS; i++) {
    tallies[i].number = i + 1;
    REQUIRE(pthread_create(&threads[i], NULL, use, &tallies[i]) == 0, "pthread_create");
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  for (size_t i = 0; i < POOLS; i++) {
    check_counts(tallies, i);
    weir_pool_destroy(pools[i]);
  }
  weir_stats(&after, sizeof after);
  REQUIRE(after.live == before.live, "%llu bytes are still live",
          (unsigned long long)(after.live - before.live));
  return 0;
}
