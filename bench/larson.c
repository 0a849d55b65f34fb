/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server of Larson and Krishnan (Memory Allocation for Long-Running Server Applications, ISMM
 * 1998): a thread keeps a working set of blocks and replaces random ones with blocks of random
 * size; after some rounds it hands the whole set to a thread that it creates, ends, and the new
 * thread goes on. So memory bleeds from thread to thread, and the one that took a block is often
 * gone when it is freed. A node that serves each goal or request in a thread of its own, beside
 * maps and subscriptions that outlive that thread, does the same.
 */
#include "bench.h"

/* Chains lie two cache lines apart, because processors fetch lines in pairs. */
enum { MOST_THREADS = 256, APART = 128 };

static uint64_t threads = 1, blocks = 1000, least = 8, most = 1000;
static uint64_t rounds = 10000, generations = 400, seed = 1;

static const struct bench_option options[] = {
    {"threads", BENCH_COUNT, &threads, 1, MOST_THREADS, NULL, "threads at a time"},
    {"blocks", BENCH_COUNT, &blocks, 1, 1u << 24, NULL, "blocks of each thread's working set"},
    {"min", BENCH_BYTES, &least, 8, 1u << 30, NULL, "smallest size"},
    {"max", BENCH_BYTES, &most, 8, 1u << 30, NULL, "largest size, each size equally likely"},
    {"rounds", BENCH_COUNT, &rounds, 1, (uint64_t)1 << 32, NULL, "replacements of a generation"},
    {"generations", BENCH_COUNT, &generations, 1, 1000000, NULL,
     "threads that have a working set one after the other"},
    {"seed", BENCH_COUNT, &seed, 0, UINT64_MAX, NULL, "seed of the sizes and choices"},
};

/* A working set and the threads that own it in turn; only the present owner touches it. */
struct chain {
  _Alignas(APART) pthread_t previous; /* the owner before, from the second generation on */
  pthread_t last;
  uint64_t **slots;
  uint64_t generation;
  uint64_t state;
  uint64_t start_ns, end_ns;
};

static struct bench_course course;

/* A product instead of a remainder, because a division costs as much as a fast malloc. */
static uint64_t below(uint64_t draw, uint64_t limit) {
  return ((draw & UINT32_MAX) * limit) >> 32;
}

static size_t some_size(uint64_t draw) {
  return (size_t)(least + below(draw, most - least + 1));
}

static void replace(struct chain *chain) {
  uint64_t draw = bench_random(&chain->state);
  uint64_t **slot = &chain->slots[below(draw >> 32, blocks)];
  bench_free_sealed(*slot, least, most);
  *slot = bench_take_sealed(some_size(draw));
}

static void fill(struct chain *chain) {
  for (uint64_t i = 0; i < blocks; i++)
    chain->slots[i] = bench_take_sealed(some_size(bench_random(&chain->state)));
}

static void *own(void *argument);

/* The new thread starts while this one still ends, and joins it later, so that the two overlap as
   they do in a server, but no more than two threads of a chain exist. */
static void hand_over(struct chain *chain) {
  pthread_t next;
  chain->previous = pthread_self();
  bench_thread(&next, own, chain);
}

static void finish(struct chain *chain) {
  chain->end_ns = bench_now();
  chain->last = pthread_self();
  bench_course_leave(&course);
}

static void *own(void *argument) {
  struct chain *chain = argument;
  for (uint64_t i = 0; i < rounds; i++)
    replace(chain);
  if (chain->generation > 0)
    pthread_join(chain->previous, NULL);
  if (++chain->generation < generations)
    hand_over(chain);
  else
    finish(chain);
  return NULL;
}

static void *own_first(void *argument) {
  struct chain *chain = argument;
  fill(chain);
  bench_course_enter(&course);
  chain->start_ns = bench_now();
  return own(argument);
}

/* Start the first owners and wait for the last ones. Returns the faults in between. */
static uint64_t run(struct chain *chains) {
  bench_course_init(&course, threads);
  for (uint64_t i = 0; i < threads; i++) {
    pthread_t first;
    chains[i].slots = bench_array((size_t)blocks * sizeof *chains[i].slots);
    chains[i].state = bench_seed(seed + i);
    bench_thread(&first, own_first, &chains[i]);
  }
  uint64_t faults = bench_course_run(&course).faults;
  for (uint64_t i = 0; i < threads; i++)
    pthread_join(chains[i].last, NULL);
  return faults;
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "larson", "Replace random blocks of a set that threads inherit.", options,
              sizeof options / sizeof *options, NULL);
  if (least > most)
    bench_stop(2, "--min must not exceed --max");
  static struct chain chains[MOST_THREADS];
  uint64_t faults = run(chains);
  uint64_t total_ns = 0;
  for (uint64_t i = 0; i < threads; i++) {
    total_ns += chains[i].end_ns - chains[i].start_ns;
    for (uint64_t at = 0; at < blocks; at++)
      bench_free_sealed(chains[i].slots[at], least, most);
  }
  printf("{\"bench\":\"larson\",\"threads\":%" PRIu64 ",\"blocks\":%" PRIu64 ",\"min\":%" PRIu64
         ",\"max\":%" PRIu64 ",\"rounds\":%" PRIu64 ",\"generations\":%" PRIu64 ",\"seed\":%" PRIu64
         ",\"ns_per_op\":%.3f,\"faults\":%" PRIu64 ",\"rss_peak_kib\":%" PRIu64
         ",\"rss_final_kib\":%" PRIu64 "}\n",
         threads, blocks, least, most, rounds, generations, seed,
         (double)total_ns / (double)rounds / (double)generations / (double)threads, faults,
         bench_proc_kib(BENCH_STATUS, "VmHWM:"), bench_proc_kib(BENCH_STATUS, "VmRSS:"));
  return 0;
}
