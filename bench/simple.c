/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glibc's own two benchmarks of malloc, by the descriptions in its history. With one thread,
 * bench-malloc-simple (Dijkstra, 2017): take n blocks of one size, then free them in the order they
 * were taken, for several n and sizes; a node does so with each array of objects that it reads from
 * a message and drops. With more threads, or --random, bench-malloc-thread (Newton, 2014): each
 * thread keeps a working set of blocks of random sizes and replaces one at random, again and again;
 * sizes follow an inverse square law, because programs take many more small blocks than large ones.
 *
 * An operation is one block, taken and freed; with threads, its time is the mean of the threads'.
 * Without --size and --count, the time of the median pairing and of the worst are reported, too.
 */
#include "bench.h"

enum { SIZES_SQUARE, SIZES_LOG };
enum { MOST_THREADS = 256, LEAST_SIZE = 4, MOST_SIZE = 32768, DRAWS = 4096, WORKING_SET = 1024 };

static uint64_t threads = 1, size, count, ops = 3000000, random_set, sizes = SIZES_SQUARE;
static uint64_t seed = 1;

static const struct bench_option options[] = {
    {"threads", BENCH_COUNT, &threads, 1, MOST_THREADS, NULL, "threads"},
    {"random", BENCH_SWITCH, &random_set, 0, 0, NULL, "replace at random with one thread, too"},
    {"size", BENCH_BYTES, &size, 0, 1u << 30, NULL,
     "size of the blocks; 0: 16 B to 1 KiB by doublings, or random"},
    {"count", BENCH_COUNT, &count, 0, 1u << 24, NULL,
     "blocks held at once; 0: 25, 100, 400 and 1600, or 1024"},
    {"sizes", BENCH_WORD, &sizes, 0, 0, "square|log",
     "random sizes of 4 B to 32 KiB by the inverse square, or all doublings alike (default "
     "square)"},
    {"ops", BENCH_COUNT, &ops, 1, (uint64_t)1 << 40, NULL, "blocks in all"},
    {"seed", BENCH_COUNT, &seed, 0, UINT64_MAX, NULL, "seed of the sizes and choices"},
};

static const uint64_t simple_sizes[] = {16, 32, 64, 128, 256, 512, 1024};
static const uint64_t simple_counts[] = {25, 100, 400, 1600};
#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* What a block took in each of their pairings, in picoseconds: the mean of all hides that one
   pairing may cost a hundred times what another does. */
static uint64_t cells[LENGTH(simple_sizes) * LENGTH(simple_counts)];
static size_t cell_count;

struct worker {
  pthread_t thread;
  uint32_t **blocks;
  uint32_t *draws; /* sizes, drawn beforehand */
  uint64_t state;
  uint64_t done, elapsed_ns;
};

static struct worker workers[MOST_THREADS];
static pthread_barrier_t filled;

static uint32_t cookie_of(const uint32_t *block) {
  return (uint32_t)(bench_key(block) >> 32);
}

/* The first word only: the smallest block has no room for more. */
static uint32_t *take(uint64_t bytes) {
  uint32_t *block = bench_take((size_t)bytes);
  *block = cookie_of(block);
  return block;
}

static void give_back(uint32_t *block) {
  if (*block != cookie_of(block))
    bench_stop(1, "the block at %p was overwritten while it was live", (void *)block);
  *block = 0;
  bench_keep(block);
  free(block);
}

/* ---- one thread: batches ---- */

static void run_batch(uint32_t **blocks, uint64_t bytes, uint64_t blocks_held) {
  for (uint64_t i = 0; i < blocks_held; i++)
    blocks[i] = take(bytes);
  bench_keep(blocks);
  for (uint64_t i = 0; i < blocks_held; i++)
    give_back(blocks[i]);
}

/* At least `share` blocks of one size, in whole batches of n; returns the picoseconds of each. */
static uint64_t run_cell(struct worker *worker, uint64_t bytes, uint64_t n, uint64_t share) {
  uint64_t done = 0;
  uint64_t start = bench_now();
  for (; done < share; done += n)
    run_batch(worker->blocks, bytes, n);
  uint64_t elapsed_ns = bench_now() - start;
  worker->done += done;
  worker->elapsed_ns += elapsed_ns;
  return (uint64_t)((double)elapsed_ns * 1000 / (double)done);
}

/* Each size and each n get an equal share of the blocks. */
static void run_simple(struct worker *worker) {
  const uint64_t *all_sizes = size != 0 ? &size : simple_sizes;
  const uint64_t *all_counts = count != 0 ? &count : simple_counts;
  size_t size_count = size != 0 ? 1 : LENGTH(simple_sizes);
  size_t count_count = count != 0 ? 1 : LENGTH(simple_counts);
  uint64_t share = (ops + size_count * count_count - 1) / (size_count * count_count);
  for (size_t i = 0; i < size_count; i++)
    for (size_t j = 0; j < count_count; j++)
      cells[cell_count++] = run_cell(worker, all_sizes[i], all_counts[j], share);
  bench_sort(cells, cell_count);
}

/* ---- threads: a working set of random sizes ---- */

/* The inverse of the law's distribution function: a size is at least s with probability about
   4/s. Drawn beforehand, because a division costs as much as a fast malloc. */
static uint64_t draw_size(uint64_t *state) {
  if (size != 0)
    return size;
  if (sizes == SIZES_LOG)
    return bench_size(state, LEAST_SIZE, MOST_SIZE, true);
  double u = (double)(bench_random(state) >> 11) * 0x1p-53;
  return (uint64_t)(LEAST_SIZE / (1 - u * (1 - (double)LEAST_SIZE / MOST_SIZE)));
}

static void fill(struct worker *worker) {
  for (size_t i = 0; i < DRAWS; i++)
    worker->draws[i] = (uint32_t)draw_size(&worker->state);
  for (uint64_t i = 0; i < count; i++)
    worker->blocks[i] = take(worker->draws[i % DRAWS]);
}

static void replace(struct worker *worker) {
  uint64_t draw = bench_random(&worker->state);
  uint32_t **slot = &worker->blocks[(draw >> 32) * count >> 32];
  give_back(*slot);
  *slot = take(worker->draws[draw % DRAWS]);
}

static void *work(void *argument) {
  struct worker *worker = argument;
  fill(worker);
  pthread_barrier_wait(&filled);
  uint64_t start = bench_now();
  for (uint64_t i = 0; i < worker->done; i++)
    replace(worker);
  worker->elapsed_ns = bench_now() - start;
  for (uint64_t i = 0; i < count; i++)
    give_back(worker->blocks[i]);
  return NULL;
}

static void prepare_random(void) {
  if (count == 0)
    count = WORKING_SET;
  pthread_barrier_init(&filled, NULL, (unsigned)threads + 1);
  for (size_t i = 0; i < threads; i++) {
    workers[i].blocks = bench_array((size_t)count * sizeof *workers[i].blocks);
    workers[i].draws = bench_array(DRAWS * sizeof *workers[i].draws);
    workers[i].state = bench_seed(seed + i);
    workers[i].done = (ops + threads - 1) / threads;
    bench_thread(&workers[i].thread, work, &workers[i]);
  }
  pthread_barrier_wait(&filled);
}

static void prepare_simple(void) {
  uint64_t most = count != 0 ? count : simple_counts[LENGTH(simple_counts) - 1];
  workers[0].blocks = bench_array((size_t)most * sizeof *workers[0].blocks);
}

/* ---- both ---- */

static void report(uint64_t faults) {
  uint64_t done = 0, total_ns = 0;
  for (size_t i = 0; i < threads; i++) {
    done += workers[i].done;
    total_ns += workers[i].elapsed_ns;
  }
  printf("{\"bench\":\"simple\",\"threads\":%" PRIu64 ",\"random\":%s,\"size\":%" PRIu64
         ",\"count\":%" PRIu64 ",\"sizes\":\"%s\",\"ops\":%" PRIu64 ",\"seed\":%" PRIu64
         ",\"ns_per_op\":%.3f",
         threads, random_set ? "true" : "false", size, count,
         sizes == SIZES_SQUARE ? "square" : "log", done, seed, (double)total_ns / (double)done);
  if (!random_set)
    printf(",\"ns_median\":%.3f,\"ns_worst\":%.3f",
           (double)bench_percentile(cells, cell_count, 50) / 1000,
           (double)cells[cell_count - 1] / 1000);
  printf(",\"faults\":%" PRIu64 ",\"rss_peak_kib\":%" PRIu64 ",\"rss_final_kib\":%" PRIu64 "}\n",
         faults, bench_proc_kib(BENCH_STATUS, "VmHWM:"), bench_proc_kib(BENCH_STATUS, "VmRSS:"));
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "simple",
              "Take and free batches of one size; with threads, replace blocks of random sizes.",
              options, sizeof options / sizeof *options, NULL);
  if (size != 0 && size < LEAST_SIZE)
    bench_stop(2, "--size must be 0 or at least %d", LEAST_SIZE);
  if (threads > 1)
    random_set = 1;
  if (random_set)
    prepare_random();
  else
    prepare_simple();
  uint64_t faults = bench_faults(RUSAGE_SELF);
  if (!random_set)
    run_simple(&workers[0]);
  for (size_t i = 0; random_set && i < threads; i++)
    pthread_join(workers[i].thread, NULL);
  report(bench_faults(RUSAGE_SELF) - faults);
  return 0;
}
