/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payload reuse, the loop of a ROS node: every iteration takes a few large buffers, writes them and
 * frees them. After warm-up the memory is there already, so each page fault and each memory system
 * call of the steady part is the allocator's doing. Two live buffers are what shows the effect: one
 * alone lets glibc's threshold adapt and looks clean.
 *
 * Only taking, writing and freeing is timed. Pauses, and the hand-over to the thread that frees
 * when it is another one, fall outside.
 */
#include "bench.h"

enum { MOST_LIVE = 4096, SMALL = 48, HISTORY_SLOTS = 128 };
enum { FREE_SAME, FREE_OTHER };
enum { FILL_PAGE, FILL_BYTE };
enum { PATTERN_PLAIN, PATTERN_TAKE_COPY };

static uint64_t size = 1u << 20, live = 2, iterations = 200, warmup = 2, rounds = 1, pause_ms;
static uint64_t free_by = FREE_SAME, fill = FILL_PAGE, pattern = PATTERN_PLAIN, history, seed = 1;

static const struct bench_option options[] = {
    {"size", BENCH_BYTES, &size, 1, (uint64_t)1 << 40, NULL, "size S of each buffer"},
    {"live", BENCH_COUNT, &live, 1, MOST_LIVE, NULL, "buffers held at once"},
    {"iterations", BENCH_COUNT, &iterations, 1, 100000000, NULL, "measured iterations"},
    {"warmup", BENCH_COUNT, &warmup, 0, 1000000, NULL, "iterations before measuring starts"},
    {"rounds", BENCH_COUNT, &rounds, 1, 1000000, NULL,
     "messages an iteration; over 1 it keeps the clock out of small sizes"},
    {"pause-ms", BENCH_COUNT, &pause_ms, 0, 3600000, NULL, "pause after each iteration"},
    {"free-by", BENCH_WORD, &free_by, 0, 0, "same|other", "which thread frees (default same)"},
    {"fill", BENCH_WORD, &fill, 0, 0, "page|byte", "write one byte a page, or all (default page)"},
    {"pattern", BENCH_WORD, &pattern, 0, 0, "plain|take-copy",
     "take-copy puts a 48-byte block between buffers, as a ROS subscriber does (default plain)"},
    {"history", BENCH_COUNT, &history, 0, 100000000, NULL,
     "random allocations and frees beforehand, which spoil the heap"},
    {"seed", BENCH_COUNT, &seed, 0, UINT64_MAX, NULL, "seed of the history"},
};

/* The blocks of one message, and where the two threads meet. */
static void **blocks;
static size_t *sizes;
static size_t block_count;
static _Atomic uint32_t turn; /* 0: the taker's, 1: the freer's, 2: no more work */
static uint64_t freeing_ns;

static void lay_out_message(void) {
  blocks = bench_array(2 * MOST_LIVE * sizeof *blocks);
  sizes = bench_array(2 * MOST_LIVE * sizeof *sizes);
  for (uint64_t i = 0; i < live; i++) {
    if (i > 0 && pattern == PATTERN_TAKE_COPY)
      sizes[block_count++] = SMALL;
    sizes[block_count++] = (size_t)size;
  }
}

static void take_message(void) {
  for (size_t i = 0; i < block_count; i++) {
    blocks[i] = bench_take(sizes[i]);
    if (fill == FILL_BYTE)
      memset(blocks[i], (int)i + 1, sizes[i]);
    else
      bench_touch(blocks[i], sizes[i]);
    bench_keep(blocks[i]);
  }
}

static void free_message(void) {
  for (size_t i = 0; i < block_count; i++)
    free(blocks[i]);
}

static void *freer(void *unused) {
  for (;;) {
    for (uint32_t now; (now = atomic_load(&turn)) != 1;) {
      if (now == 2)
        return unused;
      /* Not bench_wait: the word may become 1 or 2, and either ends the wait. */
      for (int spin = 0; spin < 2000 && atomic_load(&turn) == 0; spin++)
        bench_relax();
      if (atomic_load(&turn) == 0)
        bench_futex(&turn, FUTEX_WAIT_PRIVATE, 0);
    }
    uint64_t start = bench_now();
    free_message();
    freeing_ns = bench_now() - start;
    bench_post(&turn, 0);
  }
}

/* One iteration; returns the picoseconds of work a message, because a small message takes only tens
   of nanoseconds and a whole number of those would be too coarse to compare. */
static uint64_t iterate(void) {
  uint64_t start = bench_now();
  if (free_by == FREE_SAME) {
    for (uint64_t round = 0; round < rounds; round++) {
      take_message();
      free_message();
    }
    return (bench_now() - start) * 1000 / rounds;
  }
  take_message();
  uint64_t taking_ns = bench_now() - start;
  bench_post(&turn, 1);
  bench_wait(&turn, 0);
  return (taking_ns + freeing_ns) * 1000;
}

/*
 * Random allocations and frees of 16 bytes to 4 MiB. At the end the large blocks go, and so does
 * every other small one: what stays are survivors scattered over the heap, as in a node that has
 * been running for a while.
 */
static void spoil_heap(void) {
  static void *slots[HISTORY_SLOTS];
  static size_t slot_sizes[HISTORY_SLOTS];
  uint64_t state = bench_seed(seed);
  for (uint64_t i = 0; i < history; i++) {
    size_t slot = (size_t)(bench_random(&state) % HISTORY_SLOTS);
    free(slots[slot]);
    slot_sizes[slot] = bench_size(&state, 16, 4u << 20, true);
    slots[slot] = bench_take(slot_sizes[slot]);
    bench_touch(slots[slot], slot_sizes[slot]);
  }
  for (size_t slot = 0; slot < HISTORY_SLOTS; slot++)
    if (slot % 2 == 0 || slot_sizes[slot] > 32768)
      free(slots[slot]);
}

/* Call once whatever the loop calls, so that lazy binding and first use are not measured. */
static void touch_machinery(void) {
  bench_sleep_ms(0);
  (void)bench_now();
  (void)bench_faults(RUSAGE_SELF);
  bench_mark(0);
  bench_futex(&turn, FUTEX_WAKE_PRIVATE, 0);
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "reuse",
              "Take, write and free buffers of one size over and over; count what it costs.",
              options, sizeof options / sizeof *options, NULL);
  if (free_by == FREE_OTHER && rounds != 1)
    bench_stop(2, "--rounds over 1 works only with --free-by same");
  lay_out_message();
  uint64_t *times = bench_array((size_t)iterations * sizeof *times);
  uint64_t first_faults[2] = {0, 0};
  touch_machinery();
  spoil_heap();
  pthread_t thread;
  if (free_by == FREE_OTHER)
    bench_thread(&thread, freer, NULL);

  for (uint64_t i = 0; i < warmup; i++) {
    uint64_t before = bench_faults(RUSAGE_SELF);
    iterate();
    if (i < 2)
      first_faults[i] = bench_faults(RUSAGE_SELF) - before;
    if (pause_ms > 0)
      bench_sleep_ms(pause_ms);
  }
  bench_mark(BENCH_MARK_BEGIN);
  uint64_t faults = bench_faults(RUSAGE_SELF);
  for (uint64_t i = 0; i < iterations; i++) {
    times[i] = iterate();
    if (pause_ms > 0)
      bench_sleep_ms(pause_ms);
  }
  faults = bench_faults(RUSAGE_SELF) - faults;
  bench_mark(BENCH_MARK_END);

  uint64_t peak = bench_proc_kib(BENCH_STATUS, "VmHWM:");
  uint64_t final = bench_proc_kib(BENCH_STATUS, "VmRSS:");
  if (free_by == FREE_OTHER) {
    bench_post(&turn, 2);
    pthread_join(thread, NULL);
  }
  bench_sort(times, (size_t)iterations);
  printf("{\"bench\":\"reuse\",\"size\":%" PRIu64 ",\"live\":%" PRIu64 ",\"iterations\":%" PRIu64
         ",\"warmup\":%" PRIu64 ",\"rounds\":%" PRIu64 ",\"pause_ms\":%" PRIu64
         ",\"free_by\":\"%s\",\"fill\":\"%s\",\"pattern\":\"%s\",\"history\":%" PRIu64
         ",\"seed\":%" PRIu64,
         size, live, iterations, warmup, rounds, pause_ms, free_by == FREE_SAME ? "same" : "other",
         fill == FILL_PAGE ? "page" : "byte", pattern == PATTERN_PLAIN ? "plain" : "take-copy",
         history, seed);
  printf(",\"first_faults\":[%" PRIu64 ",%" PRIu64 "],\"faults\":%" PRIu64
         ",\"faults_per_iteration\":%.4f,\"ns_median\":%.2f,\"ns_p99\":%.2f,\"ns_max\":%.2f"
         ",\"rss_peak_kib\":%" PRIu64 ",\"rss_final_kib\":%" PRIu64 "}\n",
         first_faults[0], first_faults[1], faults,
         (double)faults / (double)iterations / (double)rounds,
         (double)bench_percentile(times, (size_t)iterations, 50) / 1000,
         (double)bench_percentile(times, (size_t)iterations, 99) / 1000,
         (double)times[iterations - 1] / 1000, peak, final);
  return 0;
}
