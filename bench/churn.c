/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random churn: every thread replaces random blocks of a live set with blocks of random size. With
 * --shared the threads churn one set together, so that most blocks are freed by a thread other than
 * the one that took them. Each block carries its size and a cookie made from its address: a block
 * handed out twice, or written by its neighbour, ends the run with a line that says so.
 */
#include "bench.h"

enum { SIZES_LOG, SIZES_UNIFORM, MOST_THREADS = 256 };

static uint64_t threads = 1, live = 10000, ops = 1000000, least = 16, most = 16384;
static uint64_t sizes = SIZES_LOG, shared, seed = 1;

static const struct bench_option options[] = {
    {"threads", BENCH_COUNT, &threads, 1, MOST_THREADS, NULL, "threads"},
    {"live", BENCH_COUNT, &live, 1, 1u << 28, NULL, "blocks a thread keeps live"},
    {"ops", BENCH_COUNT, &ops, 1, (uint64_t)1 << 40, NULL, "replacements a thread makes"},
    {"min", BENCH_BYTES, &least, 16, 1u << 30, NULL, "smallest size"},
    {"max", BENCH_BYTES, &most, 16, 1u << 30, NULL, "largest size"},
    {"sizes", BENCH_WORD, &sizes, 0, 0, "log|uniform",
     "each doubling, or each size, equally likely (default log)"},
    {"shared", BENCH_SWITCH, &shared, 0, 0, NULL, "one live set for all threads"},
    {"seed", BENCH_COUNT, &seed, 0, UINT64_MAX, NULL, "seed of the sizes and choices"},
};

typedef _Atomic(struct bench_header *) slot;

/* Lines of its own: the state of the random numbers is written at every step. */
struct worker {
  _Alignas(128) pthread_t thread;
  slot *slots;
  size_t slot_count;
  uint64_t state;
  uint64_t elapsed_ns;
};

static pthread_barrier_t filled, measured;

static struct bench_header *take(struct worker *worker) {
  return bench_take_marked(
      bench_size(&worker->state, (size_t)least, (size_t)most, sizes == SIZES_LOG));
}

/* Only a shared set needs the exchange: a locked instruction would hide a fast allocator. */
static void replace(struct worker *worker) {
  slot *at = &worker->slots[bench_random(&worker->state) % worker->slot_count];
  if (shared) {
    struct bench_header *fresh = take(worker);
    bench_free_marked(atomic_exchange_explicit(at, fresh, memory_order_acq_rel));
    return;
  }
  bench_free_marked(atomic_load_explicit(at, memory_order_relaxed));
  atomic_store_explicit(at, take(worker), memory_order_relaxed);
}

static void *work(void *argument) {
  struct worker *worker = argument;
  for (uint64_t i = 0; i < 2 * live; i++)
    replace(worker);
  pthread_barrier_wait(&filled);
  uint64_t start = bench_now();
  for (uint64_t i = 0; i < ops; i++)
    replace(worker);
  worker->elapsed_ns = bench_now() - start;
  pthread_barrier_wait(&measured);
  return NULL;
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "churn", "Replace random blocks of a live set, in one or more threads.",
              options, sizeof options / sizeof *options, NULL);
  if (least > most)
    bench_stop(2, "--min must not exceed --max");
  static struct worker workers[MOST_THREADS];
  size_t total = (size_t)(live * threads);
  slot *slots = bench_array(total * sizeof *slots);
  pthread_barrier_init(&filled, NULL, (unsigned)threads + 1);
  pthread_barrier_init(&measured, NULL, (unsigned)threads + 1);
  for (size_t i = 0; i < threads; i++) {
    workers[i].slots = shared ? slots : slots + i * live;
    workers[i].slot_count = shared ? total : (size_t)live;
    workers[i].state = bench_seed(seed + i);
    bench_thread(&workers[i].thread, work, &workers[i]);
  }
  pthread_barrier_wait(&filled);
  uint64_t faults = bench_faults(RUSAGE_SELF);
  pthread_barrier_wait(&measured);
  faults = bench_faults(RUSAGE_SELF) - faults;
  uint64_t final = bench_proc_kib(BENCH_STATUS, "VmRSS:");
  uint64_t total_ns = 0;
  for (size_t i = 0; i < threads; i++) {
    pthread_join(workers[i].thread, NULL);
    total_ns += workers[i].elapsed_ns;
  }
  for (size_t i = 0; i < total; i++)
    bench_free_marked(atomic_load(&slots[i]));
  printf("{\"bench\":\"churn\",\"threads\":%" PRIu64 ",\"live\":%" PRIu64 ",\"ops\":%" PRIu64
         ",\"min\":%" PRIu64 ",\"max\":%" PRIu64 ",\"sizes\":\"%s\",\"shared\":%s,\"seed\":%" PRIu64
         ",\"ns_per_op\":%.3f,\"faults\":%" PRIu64 ",\"rss_peak_kib\":%" PRIu64
         ",\"rss_final_kib\":%" PRIu64 "}\n",
         threads, live, ops, least, most, sizes == SIZES_LOG ? "log" : "uniform",
         shared ? "true" : "false", seed, (double)total_ns / (double)ops / (double)threads, faults,
         bench_proc_kib(BENCH_STATUS, "VmHWM:"), final);
  return 0;
}
