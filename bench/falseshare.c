/* SPDX-License-Identifier: Apache-2.0 */
/*
 * False sharing, after cache-thrash and cache-scratch of Berger, McKinley, Blumofe and Wilson
 * (Hoard, ASPLOS 2000). In the active mode each thread takes a small block, writes it many times
 * and frees it, over and over: an allocator that deals one cache line out to several threads makes
 * them fight for it. In the passive mode the main thread first takes one block for each worker,
 * side by side, and each worker frees its own and then does the same: an allocator that gives a
 * thread back what it freed, whoever took it, keeps the line shared for ever. Timers, counters and
 * shared pointers that one thread of a node makes and others update get into this. The writes are
 * the point here and not overhead: with --writes 0 little more than malloc and free is left.
 */
#include "bench.h"

/* Two lines, because processors fetch lines in pairs. */
enum { MOST_THREADS = 256, LINE = 64, APART = 128 };
enum { PASSIVE, ACTIVE };

static uint64_t threads = 2, size = 8, writes = 30, rounds = 1000000, mode = PASSIVE;

static const struct bench_option options[] = {
    {"threads", BENCH_COUNT, &threads, 1, MOST_THREADS, NULL, "threads"},
    {"size", BENCH_BYTES, &size, 1, LINE, NULL, "size of a block"},
    {"writes", BENCH_COUNT, &writes, 0, 1u << 30, NULL, "times each byte of a block is written"},
    {"rounds", BENCH_COUNT, &rounds, 1, (uint64_t)1 << 40, NULL, "blocks each thread takes"},
    {"mode", BENCH_WORD, &mode, 0, 0, "passive|active",
     "passive hands each thread a block first (default passive)"},
};

struct worker {
  _Alignas(APART) pthread_t thread;
  unsigned char *handed;
  uint64_t shared_rounds;
  uint64_t elapsed_ns;
  /* Where this worker's block is, for the others to see. Written only when that changes. */
  _Alignas(APART) _Atomic uintptr_t block;
};

static struct worker workers[MOST_THREADS];
static struct bench_course course;

static void fill(volatile unsigned char *block, unsigned char value) {
  for (uint64_t i = 0; i < size; i++)
    block[i] = value;
}

static void check(const volatile unsigned char *block, unsigned char value) {
  for (uint64_t i = 0; i < size; i++)
    if (block[i] != value)
      bench_stop(1, "the block at %p was overwritten while it was live", (const void *)block);
}

/* Volatile, so that every write is made, and read again by the next. */
static void write_over(volatile unsigned char *block) {
  for (uint64_t pass = 0, bytes = size; pass < writes; pass++)
    for (uint64_t i = 0; i < bytes; i++)
      block[i] = (unsigned char)(block[i] + 1);
}

static bool share_a_line(uintptr_t one, uintptr_t other) {
  return one / LINE <= (other + size - 1) / LINE && other / LINE <= (one + size - 1) / LINE;
}

/* Counts the rounds whose block has a line in common with another worker's block. A plain look at
   what the others published last: a fence would cost more than it could tell. */
static void look_around(struct worker *worker, const void *block) {
  uintptr_t mine = (uintptr_t)block;
  if (atomic_load_explicit(&worker->block, memory_order_relaxed) != mine)
    atomic_store_explicit(&worker->block, mine, memory_order_relaxed);
  for (uint64_t i = 0; i < threads; i++) {
    uintptr_t other = atomic_load_explicit(&workers[i].block, memory_order_relaxed);
    if (&workers[i] != worker && other != 0 && share_a_line(mine, other)) {
      worker->shared_rounds++;
      return;
    }
  }
}

static void one_round(struct worker *worker, unsigned char value) {
  unsigned char *block = bench_take((size_t)size);
  look_around(worker, block);
  fill(block, value);
  write_over(block);
  check(block, (unsigned char)(value + writes));
  free(block);
}

static void *work(void *argument) {
  struct worker *worker = argument;
  bench_course_enter(&course);
  uint64_t start = bench_now();
  if (worker->handed != NULL) {
    check(worker->handed, 1);
    free(worker->handed);
  }
  for (uint64_t i = 0; i < rounds; i++)
    one_round(worker, (unsigned char)i);
  worker->elapsed_ns = bench_now() - start;
  bench_course_leave(&course);
  return NULL;
}

/* Side by side in time and so, with most allocators, side by side in memory. */
static void take_for_workers(void) {
  for (uint64_t i = 0; i < threads; i++) {
    workers[i].handed = bench_take((size_t)size);
    fill(workers[i].handed, 1);
  }
}

static uint64_t run(void) {
  bench_course_init(&course, threads);
  for (uint64_t i = 0; i < threads; i++)
    bench_thread(&workers[i].thread, work, &workers[i]);
  uint64_t faults = bench_course_run(&course).faults;
  for (uint64_t i = 0; i < threads; i++)
    pthread_join(workers[i].thread, NULL);
  return faults;
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "falseshare", "Write small blocks that may share a cache line.", options,
              sizeof options / sizeof *options, NULL);
  if (mode == PASSIVE)
    take_for_workers();
  uint64_t faults = run();
  uint64_t total_ns = 0, shared_rounds = 0;
  for (uint64_t i = 0; i < threads; i++) {
    total_ns += workers[i].elapsed_ns;
    shared_rounds += workers[i].shared_rounds;
  }
  printf("{\"bench\":\"falseshare\",\"mode\":\"%s\",\"threads\":%" PRIu64 ",\"size\":%" PRIu64
         ",\"writes\":%" PRIu64 ",\"rounds\":%" PRIu64 ",\"ns_per_op\":%.3f,\"shared\":%.4f"
         ",\"faults\":%" PRIu64 ",\"rss_peak_kib\":%" PRIu64 ",\"rss_final_kib\":%" PRIu64 "}\n",
         mode == PASSIVE ? "passive" : "active", threads, size, writes, rounds,
         (double)total_ns / (double)rounds / (double)threads,
         (double)shared_rounds / (double)rounds / (double)threads, faults,
         bench_proc_kib(BENCH_STATUS, "VmHWM:"), bench_proc_kib(BENCH_STATUS, "VmRSS:"));
  return 0;
}
