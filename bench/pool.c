/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool of buffers beside the allocator it takes them from: a message takes a few buffers, writes
 * them and gives them back, once through weir_pool_acquire and weir_pool_release, once through
 * weir_arena_alloc and weir_arena_free. Both by turns in one process, so that a disturbance of the
 * machine hits both. The program has weir linked in; a preloaded malloc changes nothing.
 */
#include "bench.h"

#include <weir/pool.h>

enum { MOST_LIVE = 4096 };
enum { FILL_PAGE, FILL_BYTE, FILL_NONE };
enum { ARENA_DEFAULT, ARENA_OWN };

static uint64_t size = 1u << 20, live = 2, iterations = 200, rounds = 1;
static uint64_t fill = FILL_PAGE, in_arena = ARENA_DEFAULT;

static const struct bench_option options[] = {
    {"size", BENCH_BYTES, &size, 1, (uint64_t)1 << 40, NULL, "size of each buffer"},
    {"live", BENCH_COUNT, &live, 1, MOST_LIVE, NULL, "buffers held at once"},
    {"iterations", BENCH_COUNT, &iterations, 1, 100000000, NULL,
     "measured iterations of each kind"},
    {"rounds", BENCH_COUNT, &rounds, 1, 1000000, NULL,
     "messages an iteration; over 1 it keeps the clock out of small sizes"},
    {"fill", BENCH_WORD, &fill, 0, 0, "page|byte|none",
     "write one byte a page, all, or nothing (default page)"},
    {"arena", BENCH_WORD, &in_arena, 0, 0, "default|own",
     "the default arena, or one of its own (default default)"},
};

static weir_arena_t *arena;
static weir_pool_t *pool;
static void *blocks[MOST_LIVE];

static void *take_pooled(size_t bytes) {
  return weir_pool_acquire(pool, bytes);
}

static void give_pooled(void *block) {
  weir_pool_release(pool, block);
}

static void *take_plain(size_t bytes) {
  return weir_arena_alloc(arena, bytes);
}

static void give_plain(void *block) {
  weir_arena_free(arena, block);
}

static const struct kind {
  void *(*take)(size_t bytes);
  void (*give)(void *block);
} pooled = {take_pooled, give_pooled}, plain = {take_plain, give_plain};

static void pass_message(const struct kind *kind) {
  for (uint64_t i = 0; i < live; i++) {
    blocks[i] = kind->take((size_t)size);
    if (blocks[i] == NULL)
      bench_stop(1, "no memory for a buffer");
    if (fill == FILL_BYTE)
      memset(blocks[i], (int)i + 1, (size_t)size);
    else if (fill == FILL_PAGE)
      bench_touch(blocks[i], (size_t)size);
    bench_keep(blocks[i]);
  }
  for (uint64_t i = 0; i < live; i++)
    kind->give(blocks[i]);
}

/* Picoseconds a message, because a small one takes only tens of nanoseconds. */
static uint64_t iterate(const struct kind *kind) {
  uint64_t start = bench_now();
  for (uint64_t round = 0; round < rounds; round++)
    pass_message(kind);
  return (bench_now() - start) * 1000 / rounds;
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "pool",
              "Take, write and give back the buffers of a message, by a pool and by the allocator.",
              options, sizeof options / sizeof *options, NULL);
  uint64_t *by_pool = bench_array((size_t)iterations * sizeof *by_pool);
  uint64_t *by_plain = bench_array((size_t)iterations * sizeof *by_plain);
  arena = in_arena == ARENA_OWN ? weir_arena_create(NULL) : NULL;
  pool = weir_pool_create(arena, SIZE_MAX);
  if (pool == NULL)
    bench_stop(1, "no memory for a pool");
  /* What each kind is served with is there before anything is counted. */
  for (int i = 0; i < 3; i++) {
    (void)iterate(&pooled);
    (void)iterate(&plain);
  }

  uint64_t faults = bench_faults(RUSAGE_SELF);
  for (uint64_t i = 0; i < iterations; i++) {
    bool first = i % 2 == 0;
    if (first)
      by_pool[i] = iterate(&pooled);
    by_plain[i] = iterate(&plain);
    if (!first)
      by_pool[i] = iterate(&pooled);
  }
  faults = bench_faults(RUSAGE_SELF) - faults;

  weir_pool_stats_t stats;
  weir_pool_stats(pool, &stats);
  weir_pool_destroy(pool);
  weir_arena_destroy(arena);
  bench_sort(by_pool, (size_t)iterations);
  bench_sort(by_plain, (size_t)iterations);
  double pool_ns = (double)bench_percentile(by_pool, (size_t)iterations, 50) / 1000;
  double plain_ns = (double)bench_percentile(by_plain, (size_t)iterations, 50) / 1000;
  printf("{\"bench\":\"pool\",\"size\":%" PRIu64 ",\"live\":%" PRIu64 ",\"iterations\":%" PRIu64
         ",\"rounds\":%" PRIu64 ",\"fill\":\"%s\",\"arena\":\"%s\",\"pool_ns\":%.2f"
         ",\"plain_ns\":%.2f,\"pool_by_plain\":%.3f,\"faults\":%" PRIu64 ",\"reused\":%" PRIu64
         ",\"peak_kept_kib\":%" PRIu64 "}\n",
         size, live, iterations, rounds,
         fill == FILL_PAGE   ? "page"
         : fill == FILL_BYTE ? "byte"
                             : "none",
         in_arena == ARENA_OWN ? "own" : "default", pool_ns, plain_ns, pool_ns / plain_ns, faults,
         stats.reused, stats.peak >> 10);
  return 0;
}
