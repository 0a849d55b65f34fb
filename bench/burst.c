/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A burst: many blocks taken, written and all freed at once, as when a node falls behind and
 * catches up. What counts is how much memory stays resident when the last free returns and a second
 * later, and whether a hot loop of another thread notices: with --hot that thread takes, writes and
 * frees its own buffers all the while, and its own faults during the burst are counted.
 */
#include "bench.h"

static uint64_t total = (uint64_t)1 << 30, block = 4u << 20, settle_ms = 1000;
static uint64_t hot, hot_size = 1u << 20, hot_live = 1;

static const struct bench_option options[] = {
    {"total", BENCH_BYTES, &total, 1, (uint64_t)1 << 44, NULL, "bytes of the burst"},
    {"block", BENCH_BYTES, &block, 1, (uint64_t)1 << 44, NULL, "size of its blocks"},
    {"settle-ms", BENCH_COUNT, &settle_ms, 0, 3600000, NULL, "time to the last look at RSS"},
    {"hot", BENCH_SWITCH, &hot, 0, 0, NULL, "run a hot loop in another thread"},
    {"hot-size", BENCH_BYTES, &hot_size, 1, (uint64_t)1 << 40, NULL, "size of its buffers"},
    {"hot-live", BENCH_COUNT, &hot_live, 1, 64, NULL, "buffers it holds at once"},
};

enum { HOT_WARMUP = 100 };
enum phase { WARMING, READY, BURSTING, BURST_OVER, STOP };

static _Atomic uint32_t phase = WARMING;
static uint64_t hot_faults, hot_messages;

static void hot_message(void) {
  void *buffers[64];
  for (uint64_t i = 0; i < hot_live; i++) {
    buffers[i] = bench_take((size_t)hot_size);
    bench_touch(buffers[i], (size_t)hot_size);
  }
  for (uint64_t i = 0; i < hot_live; i++)
    free(buffers[i]);
}

/* The loop runs from before the burst to after it and counts only what falls between. */
static void *hot_loop(void *unused) {
  for (int i = 0; i < HOT_WARMUP; i++)
    hot_message();
  (void)bench_faults(RUSAGE_THREAD);
  bench_post(&phase, READY);
  while (atomic_load(&phase) == READY)
    hot_message();
  uint64_t before = bench_faults(RUSAGE_THREAD);
  for (; atomic_load(&phase) == BURSTING; hot_messages++)
    hot_message();
  hot_faults = bench_faults(RUSAGE_THREAD) - before;
  while (atomic_load(&phase) != STOP)
    hot_message();
  return unused;
}

/* smaps_rollup counts page tables, so it is exact; the counters behind VmRSS may lag. */
static uint64_t resident_kib(void) {
  uint64_t rss = bench_proc_kib(BENCH_ROLLUP, "Rss:");
  return rss != 0 ? rss : bench_proc_kib(BENCH_STATUS, "VmRSS:");
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "burst", "Take many blocks, free them all, and see what stays resident.",
              options, sizeof options / sizeof *options, NULL);
  size_t count = (size_t)((total + block - 1) / block);
  void **blocks = bench_array(count * sizeof *blocks);
  pthread_t thread;
  if (hot) {
    bench_thread(&thread, hot_loop, NULL);
    bench_wait(&phase, READY);
  }
  uint64_t before = resident_kib();
  bench_post(&phase, BURSTING);
  uint64_t start = bench_now();
  for (size_t i = 0; i < count; i++) {
    blocks[i] = bench_take((size_t)block);
    bench_touch(blocks[i], (size_t)block);
  }
  uint64_t full = bench_now();
  for (size_t i = 0; i < count; i++)
    free(blocks[i]);
  uint64_t end = bench_now();
  bench_post(&phase, BURST_OVER);
  uint64_t after = resident_kib();
  bench_sleep_ms(settle_ms);
  uint64_t settled = resident_kib();
  bench_post(&phase, STOP);
  if (hot)
    pthread_join(thread, NULL);
  printf("{\"bench\":\"burst\",\"total\":%" PRIu64 ",\"block\":%" PRIu64
         ",\"hot\":%s,\"hot_size\":%" PRIu64 ",\"hot_live\":%" PRIu64 ",\"settle_ms\":%" PRIu64
         ",\"rss_before_kib\":%" PRIu64 ",\"rss_peak_kib\":%" PRIu64 ",\"rss_after_kib\":%" PRIu64
         ",\"rss_settled_kib\":%" PRIu64 ",\"take_ns\":%" PRIu64 ",\"free_ns\":%" PRIu64
         ",\"hot_messages\":%" PRIu64 ",\"hot_faults\":%" PRIu64 "}\n",
         total, block, hot ? "true" : "false", hot_size, hot_live, settle_ms, before,
         bench_proc_kib(BENCH_STATUS, "VmHWM:"), after, settled, full - start, end - full,
         hot_messages, hot_faults);
  return 0;
}
