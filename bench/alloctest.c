/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alloc-test: every step picks a slot of a table; a slot that holds a block gives it back, an empty
 * one is given a new block. After Ignatchenko, "Testing Memory Allocators ... While Trying to
 * Simulate Real-World Loads" (ITHare, 2018), whose point is that real programs are not uniform:
 * small sizes are far more likely than large ones, some objects come and go all the time while
 * others stay, and what is taken is also written. A robot's node that keeps a map, a graph or a
 * transform tree looks like that: of a hundred thousand small objects each message replaces a few.
 *
 * An operation is one step, so about half of them take and half of them free. What is resident at
 * the end is measured after every block was given back.
 */
#include "bench.h"

enum { CHOOSE_PARETO, CHOOSE_UNIFORM };
enum { TOUCH_ALL, TOUCH_LINE };
enum { MOST_THREADS = 256, LINE = 64, AHEAD = 16 };

static uint64_t threads = 1, live = 100000, ops = 4000000, least = 16, most = 8192;
static uint64_t choose = CHOOSE_PARETO, touch = TOUCH_LINE, seed = 1;

static const struct bench_option options[] = {
    {"threads", BENCH_COUNT, &threads, 1, MOST_THREADS, NULL, "threads, each with its own slots"},
    {"live", BENCH_COUNT, &live, 1, 1u << 26, NULL, "blocks a thread keeps live, on average"},
    {"ops", BENCH_COUNT, &ops, 1, (uint64_t)1 << 40, NULL, "steps a thread makes"},
    {"min", BENCH_BYTES, &least, 16, 1u << 30, NULL, "smallest size"},
    {"max", BENCH_BYTES, &most, 16, 1u << 30, NULL, "largest size"},
    {"choose", BENCH_WORD, &choose, 0, 0, "pareto|uniform",
     "four of five steps at a fifth of the slots, or all alike (default pareto)"},
    {"touch", BENCH_WORD, &touch, 0, 0, "all|line",
     "write the whole block, or its first 64 bytes (default line)"},
    {"seed", BENCH_COUNT, &seed, 0, UINT64_MAX, NULL, "seed of the sizes and choices"},
};

struct worker {
  pthread_t thread;
  struct bench_header **slots;
  size_t slot_count;
  struct bench_header **ahead[AHEAD]; /* the slots of the steps to come, in a ring */
  unsigned at;
  uint64_t state;
  uint64_t elapsed_ns;
};

static struct worker workers[MOST_THREADS];
static pthread_barrier_t filled, measured;
static unsigned doublings; /* of the smallest size, up to the largest */

/* A power law: each doubling is three quarters as likely as the one before. Of each pair of random
   bits one in four is 11, so the number of pairs before the first 11 has just that distribution. */
static size_t power_law(uint64_t *state) {
  for (;;) {
    uint64_t draw = bench_random(state);
    uint64_t ends = draw & (draw >> 1) & 0x5555555555555555u;
    unsigned power = (unsigned)__builtin_ctzll(ends | (uint64_t)1 << 63) / 2;
    if (power > doublings)
      continue;
    uint64_t base = least << power;
    uint64_t size = base + (((draw >> 32) * base) >> 32);
    if (size <= most)
      return (size_t)size;
  }
}

/* The seventh power of a uniform number puts 79 % of the choices on the first fifth of the slots,
   Pareto's proportion, and costs four multiplications. */
static struct bench_header **pick(struct worker *worker) {
  uint64_t draw = bench_random(&worker->state);
  if (choose == CHOOSE_UNIFORM)
    return &worker->slots[draw % worker->slot_count];
  double u = (double)(draw >> 11) * 0x1p-53;
  double square = u * u;
  return &worker->slots[(size_t)(square * square * square * u * (double)worker->slot_count)];
}

/* Slots are chosen many steps ahead, and slot and block are called into the cache meanwhile: to
   wait for them would be the larger part of the time, and is not the allocator's doing. */
static struct bench_header **advance(struct worker *worker) {
  struct bench_header ***entry = &worker->ahead[worker->at % AHEAD];
  struct bench_header **slot = *entry;
  *entry = pick(worker);
  __builtin_prefetch(*entry, 1);
  __builtin_prefetch(*worker->ahead[(worker->at + AHEAD / 2) % AHEAD], 1);
  worker->at++;
  return slot;
}

/* How much of a block is written, from its beginning. */
static size_t written(uint64_t size) {
  return touch == TOUCH_LINE && size > LINE ? LINE : (size_t)size;
}

static struct bench_header *take(uint64_t *state) {
  size_t size = power_law(state);
  struct bench_header *block = bench_take(size);
  block->size = size;
  block->cookie = bench_cookie(block, size);
  memset(block + 1, (int)(size & 0xff), written(size) - sizeof *block);
  bench_keep(block);
  return block;
}

static void give_back(struct bench_header *block) {
  uint64_t size = block->size;
  if (block->cookie != bench_cookie(block, size))
    bench_stop(1, "the block at %p was overwritten while it was live", (void *)block);
  size_t last = written(size) - 1;
  if (last >= sizeof *block && ((unsigned char *)block)[last] != (unsigned char)size)
    bench_stop(1, "the end of the block at %p was overwritten", (void *)block);
  block->cookie = 0;
  bench_keep(block);
  free(block);
}

static void step(struct worker *worker) {
  struct bench_header **slot = advance(worker);
  if (*slot != NULL) {
    give_back(*slot);
    *slot = NULL;
  } else {
    *slot = take(&worker->state);
  }
}

/* Every slot is full with probability one half, which is what the steps keep it at. */
static void fill(struct worker *worker) {
  for (size_t i = 0; i < worker->slot_count; i++)
    if (bench_random(&worker->state) >> 63)
      worker->slots[i] = take(&worker->state);
  for (size_t i = 0; i < AHEAD; i++)
    worker->ahead[i] = pick(worker);
  for (size_t i = 0; i < worker->slot_count; i++)
    step(worker);
}

static void *work(void *argument) {
  struct worker *worker = argument;
  fill(worker);
  pthread_barrier_wait(&filled);
  uint64_t start = bench_now();
  for (uint64_t i = 0; i < ops; i++)
    step(worker);
  worker->elapsed_ns = bench_now() - start;
  pthread_barrier_wait(&measured);
  for (size_t i = 0; i < worker->slot_count; i++)
    if (worker->slots[i] != NULL)
      give_back(worker->slots[i]);
  return NULL;
}

static void start_workers(void) {
  pthread_barrier_init(&filled, NULL, (unsigned)threads + 1);
  pthread_barrier_init(&measured, NULL, (unsigned)threads + 1);
  for (size_t i = 0; i < threads; i++) {
    workers[i].slot_count = 2 * (size_t)live;
    workers[i].slots = bench_array(workers[i].slot_count * sizeof *workers[i].slots);
    workers[i].state = bench_seed(seed + i);
    bench_thread(&workers[i].thread, work, &workers[i]);
  }
}

static uint64_t join_workers(void) {
  uint64_t total_ns = 0;
  for (size_t i = 0; i < threads; i++) {
    pthread_join(workers[i].thread, NULL);
    total_ns += workers[i].elapsed_ns;
  }
  return total_ns;
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "alloctest",
              "Take or free at random slots; sizes and choices follow a power law.", options,
              sizeof options / sizeof *options, NULL);
  if (least > most)
    bench_stop(2, "--min must not exceed --max");
  while (least << (doublings + 1) <= most)
    doublings++;
  start_workers();
  pthread_barrier_wait(&filled);
  uint64_t faults = bench_faults(RUSAGE_SELF);
  pthread_barrier_wait(&measured);
  faults = bench_faults(RUSAGE_SELF) - faults;
  uint64_t total_ns = join_workers();
  printf("{\"bench\":\"alloctest\",\"threads\":%" PRIu64 ",\"live\":%" PRIu64 ",\"ops\":%" PRIu64
         ",\"min\":%" PRIu64 ",\"max\":%" PRIu64
         ",\"choose\":\"%s\",\"touch\":\"%s\",\"seed\":%" PRIu64
         ",\"ns_per_op\":%.3f,\"faults\":%" PRIu64 ",\"rss_peak_kib\":%" PRIu64
         ",\"rss_final_kib\":%" PRIu64 "}\n",
         threads, live, ops, least, most, choose == CHOOSE_PARETO ? "pareto" : "uniform",
         touch == TOUCH_ALL ? "all" : "line", seed,
         (double)total_ns / (double)ops / (double)threads, faults,
         bench_proc_kib(BENCH_STATUS, "VmHWM:"), bench_proc_kib(BENCH_STATUS, "VmRSS:"));
  return 0;
}
