/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A burst: many blocks taken, written and all freed at once, as when a node falls behind and
 * catches up. What counts is how much memory stays resident when the last free returns and a second
 * later, and whether a hot loop of another thread notices: with --hot that thread takes, writes and
 * frees its own buffers all the while, and its own faults during the burst are counted. With
 * --sample-ms one more thread looks at RSS all along and the line has what it saw as "timeline": a
 * picture of how memory comes and goes takes more than the looks before and after.
 */
#include "bench.h"

static uint64_t total = (uint64_t)1 << 30, block = 4u << 20, settle_ms = 1000;
static uint64_t lead_ms, hold_ms, sample_ms;
static uint64_t hot, hot_size = 1u << 20, hot_live = 1;

static const struct bench_option options[] = {
    {"total", BENCH_BYTES, &total, 1, (uint64_t)1 << 44, NULL, "bytes of the burst"},
    {"block", BENCH_BYTES, &block, 1, (uint64_t)1 << 44, NULL, "size of its blocks"},
    {"lead-ms", BENCH_COUNT, &lead_ms, 0, 3600000, NULL, "time before the burst"},
    {"hold-ms", BENCH_COUNT, &hold_ms, 0, 3600000, NULL,
     "time between the last take and first free"},
    {"settle-ms", BENCH_COUNT, &settle_ms, 0, 3600000, NULL, "time to the last look at RSS"},
    {"sample-ms", BENCH_COUNT, &sample_ms, 0, 10000, NULL,
     "look at RSS that often, from before the burst to the end; 0: do not"},
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

/* ---- the timeline ---- */

enum { SLOWEST_BURST_MS = 60000 };

struct sample {
  uint64_t ns, kib;
};

static struct sample *samples;
static size_t sample_count, sample_room;
static _Atomic bool sampling;

/* RSS by the counters of the process, which cost a microsecond to read where counting page tables
   would hold the burst up. They are behind by at most some dozen pages a processor. */
static uint64_t counted_kib(int statm) {
  char text[128];
  ssize_t length = pread(statm, text, sizeof text - 1, 0);
  if (length <= 0)
    bench_stop(1, "cannot read /proc/self/statm: %s", strerror(errno));
  text[length] = '\0';
  char *second = strchr(text, ' ');
  return second != NULL ? strtoull(second, NULL, 10) * ((uint64_t)sysconf(_SC_PAGESIZE) / 1024) : 0;
}

static void *sampler(void *unused) {
  int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  for (; atomic_load(&sampling); sample_count++) {
    if (sample_count == sample_room)
      bench_stop(1, "the burst took more than %d s, too long for a timeline",
                 SLOWEST_BURST_MS / 1000);
    samples[sample_count].kib = counted_kib(statm);
    samples[sample_count].ns = bench_now();
    next.tv_nsec += (long)sample_ms % 1000 * 1000000;
    next.tv_sec += (time_t)(sample_ms / 1000) + next.tv_nsec / 1000000000;
    next.tv_nsec %= 1000000000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL) == EINTR) {
    }
  }
  close(statm);
  return unused;
}

static void start_sampling(pthread_t *thread) {
  sample_room = (size_t)((lead_ms + hold_ms + settle_ms + SLOWEST_BURST_MS) / sample_ms);
  samples = bench_array(sample_room * sizeof *samples);
  atomic_store(&sampling, true);
  bench_thread(thread, sampler, NULL);
}

/* Times are relative to the first take of the burst; so those before are negative. */
static void print_timeline(uint64_t begin, uint64_t full, uint64_t freeing, uint64_t freed) {
  printf(",\"timeline\":{\"full_ms\":%.1f,\"freeing_ms\":%.1f,\"freed_ms\":%.1f,\"ms\":[",
         (double)(full - begin) / 1e6, (double)(freeing - begin) / 1e6,
         (double)(freed - begin) / 1e6);
  for (size_t i = 0; i < sample_count; i++)
    printf("%s%.1f", i > 0 ? "," : "", (double)(int64_t)(samples[i].ns - begin) / 1e6);
  printf("],\"rss_kib\":[");
  for (size_t i = 0; i < sample_count; i++)
    printf("%s%" PRIu64, i > 0 ? "," : "", samples[i].kib);
  printf("]}");
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "burst", "Take many blocks, free them all, and see what stays resident.",
              options, sizeof options / sizeof *options, NULL);
  size_t count = (size_t)((total + block - 1) / block);
  void **blocks = bench_array(count * sizeof *blocks);
  pthread_t hot_thread, sampling_thread;
  if (hot) {
    bench_thread(&hot_thread, hot_loop, NULL);
    bench_wait(&phase, READY);
  }
  if (sample_ms > 0)
    start_sampling(&sampling_thread);
  bench_sleep_ms(lead_ms);
  uint64_t before = resident_kib();
  bench_post(&phase, BURSTING);
  uint64_t start = bench_now();
  for (size_t i = 0; i < count; i++) {
    blocks[i] = bench_take((size_t)block);
    bench_touch(blocks[i], (size_t)block);
  }
  uint64_t full = bench_now();
  bench_sleep_ms(hold_ms);
  uint64_t freeing = bench_now();
  for (size_t i = 0; i < count; i++)
    free(blocks[i]);
  uint64_t end = bench_now();
  bench_post(&phase, BURST_OVER);
  uint64_t after = resident_kib();
  bench_sleep_ms(settle_ms);
  uint64_t settled = resident_kib();
  bench_post(&phase, STOP);
  if (hot)
    pthread_join(hot_thread, NULL);
  if (sample_ms > 0) {
    atomic_store(&sampling, false);
    pthread_join(sampling_thread, NULL);
  }
  printf("{\"bench\":\"burst\",\"total\":%" PRIu64 ",\"block\":%" PRIu64
         ",\"hot\":%s,\"hot_size\":%" PRIu64 ",\"hot_live\":%" PRIu64 ",\"lead_ms\":%" PRIu64
         ",\"hold_ms\":%" PRIu64 ",\"settle_ms\":%" PRIu64 ",\"sample_ms\":%" PRIu64
         ",\"rss_before_kib\":%" PRIu64 ",\"rss_peak_kib\":%" PRIu64 ",\"rss_after_kib\":%" PRIu64
         ",\"rss_settled_kib\":%" PRIu64 ",\"take_ns\":%" PRIu64 ",\"free_ns\":%" PRIu64
         ",\"hot_messages\":%" PRIu64 ",\"hot_faults\":%" PRIu64,
         total, block, hot ? "true" : "false", hot_size, hot_live, lead_ms, hold_ms, settle_ms,
         sample_ms, before, bench_proc_kib(BENCH_STATUS, "VmHWM:"), after, settled, full - start,
         end - freeing, hot_messages, hot_faults);
  if (sample_ms > 0)
    print_timeline(start, full, freeing, end);
  puts("}");
  return 0;
}
