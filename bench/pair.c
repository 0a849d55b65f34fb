/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shortest path: malloc and free of one size, in pairs or in batches of n allocations followed
 * by n frees. Timed in chunks of about a thousand pairs, so that the clock itself does not count;
 * the median chunk is the figure.
 */
#include "bench.h"

enum { ORDER_LIFO, ORDER_FIFO, PAIRS_A_CHUNK = 1000 };

static uint64_t size = 64, count = 2000000, batch = 1, order = ORDER_LIFO;

static const struct bench_option options[] = {
    {"size", BENCH_BYTES, &size, 1, (uint64_t)1 << 40, NULL, "size of each block"},
    {"count", BENCH_COUNT, &count, 1, (uint64_t)1 << 40, NULL, "pairs in all, at least"},
    {"batch", BENCH_COUNT, &batch, 1, 1u << 24, NULL, "blocks taken before any is freed"},
    {"order", BENCH_WORD, &order, 0, 0, "lifo|fifo", "order of a batch's frees (default lifo)"},
};

static void run_batch(void **blocks) {
  for (uint64_t i = 0; i < batch; i++) {
    unsigned char *block = bench_take((size_t)size);
    *block = (unsigned char)i;
    blocks[i] = block;
  }
  bench_keep(blocks);
  if (order == ORDER_LIFO) {
    for (uint64_t i = batch; i-- > 0;)
      free(blocks[i]);
  } else {
    for (uint64_t i = 0; i < batch; i++)
      free(blocks[i]);
  }
}

/* Every pair through a register, without the array of a batch. */
static void run_pairs(uint64_t pairs) {
  for (uint64_t i = 0; i < pairs; i++) {
    unsigned char *block = bench_take((size_t)size);
    *block = (unsigned char)i;
    bench_keep(block);
    free(block);
  }
}

static void run_chunk(void **blocks, uint64_t batches) {
  if (batch == 1) {
    run_pairs(batches);
    return;
  }
  for (uint64_t i = 0; i < batches; i++)
    run_batch(blocks);
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "pair", "Take and free blocks of one size, in pairs or in batches.",
              options, sizeof options / sizeof *options, NULL);
  uint64_t batches = batch >= PAIRS_A_CHUNK ? 1 : PAIRS_A_CHUNK / batch;
  uint64_t chunks = (count + batches * batch - 1) / (batches * batch);
  uint64_t *picoseconds = bench_array((size_t)chunks * sizeof *picoseconds);
  void **blocks = bench_array((size_t)batch * sizeof *blocks);

  for (int i = 0; i < 3; i++)
    run_chunk(blocks, batches);
  (void)bench_now();
  bench_mark(BENCH_MARK_BEGIN);
  uint64_t faults = bench_faults(RUSAGE_SELF);
  for (uint64_t i = 0; i < chunks; i++) {
    uint64_t start = bench_now();
    run_chunk(blocks, batches);
    picoseconds[i] = (bench_now() - start) * 1000 / (batches * batch);
  }
  faults = bench_faults(RUSAGE_SELF) - faults;
  bench_mark(BENCH_MARK_END);

  bench_sort(picoseconds, (size_t)chunks);
  printf("{\"bench\":\"pair\",\"size\":%" PRIu64 ",\"batch\":%" PRIu64
         ",\"order\":\"%s\",\"pairs\":%" PRIu64
         ",\"ns_per_op\":%.3f,\"ns_p99\":%.3f,\"ns_max\":%.3f,\"faults\":%" PRIu64
         ",\"rss_peak_kib\":%" PRIu64 "}\n",
         size, batch, order == ORDER_LIFO ? "lifo" : "fifo", chunks * batches * batch,
         (double)bench_percentile(picoseconds, (size_t)chunks, 50) / 1000,
         (double)bench_percentile(picoseconds, (size_t)chunks, 99) / 1000,
         (double)picoseconds[chunks - 1] / 1000, faults, bench_proc_kib(BENCH_STATUS, "VmHWM:"));
  return 0;
}
