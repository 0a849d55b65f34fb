/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an idle process costs: a program that only prints, alone or with threads that allocated once
 * and stay, reports the memory that is its alone (Private_Dirty). With --mlockall it locks all its
 * memory, present and future, as a real-time node does, and reports how much that pinned; --live
 * adds blocks of 1 MiB that stay in use.
 */
#include "bench.h"

enum { MOST_THREADS = 1024 };

static uint64_t threads, take = 64, lock, live;

static const struct bench_option options[] = {
    {"threads", BENCH_COUNT, &threads, 0, MOST_THREADS, NULL, "threads that each allocate once"},
    {"take", BENCH_BYTES, &take, 1, 1u << 30, NULL, "size of that one allocation"},
    {"mlockall", BENCH_SWITCH, &lock, 0, 0, NULL, "lock present and future memory first"},
    {"live", BENCH_COUNT, &live, 0, 1u << 20, NULL, "MiB to hold live, in blocks of 1 MiB"},
};

static pthread_barrier_t taken;
static _Atomic uint32_t done;

static void *stay(void *unused) {
  unsigned char *block = bench_take((size_t)take);
  *block = 1;
  bench_keep(block);
  pthread_barrier_wait(&taken);
  bench_wait(&done, 1);
  free(block);
  return unused;
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "footprint", "Report the memory of a process that does next to nothing.",
              options, sizeof options / sizeof *options, NULL);
  static pthread_t handles[MOST_THREADS];
  /* The first half of the line, before looking, so that the stream has its buffer from malloc. */
  printf("{\"bench\":\"footprint\",\"threads\":%" PRIu64 ",\"mlockall\":%s,\"live_mib\":%" PRIu64,
         threads, lock ? "true" : "false", live);
  if (lock && mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
    /* Not on stdout: half a line of JSON would be worse than none. */
    fprintf(stderr, "footprint: mlockall failed: %s\n", strerror(errno));
    _exit(1);
  }
  pthread_barrier_init(&taken, NULL, (unsigned)threads + 1);
  for (uint64_t i = 0; i < threads; i++)
    bench_thread(&handles[i], stay, NULL);
  pthread_barrier_wait(&taken);
  void **blocks = live > 0 ? bench_array((size_t)live * sizeof *blocks) : NULL;
  for (uint64_t i = 0; i < live; i++) {
    blocks[i] = bench_take(1u << 20);
    bench_touch(blocks[i], 1u << 20);
  }
  uint64_t dirty = bench_proc_kib(BENCH_ROLLUP, "Private_Dirty:");
  uint64_t rss = bench_proc_kib(BENCH_ROLLUP, "Rss:");
  uint64_t locked = bench_proc_kib(BENCH_STATUS, "VmLck:");
  uint64_t size = bench_proc_kib(BENCH_STATUS, "VmSize:");
  /* Beside VmLck, which counts locked address space even where no page stands behind it. */
  uint64_t resident = bench_proc_kib(BENCH_STATUS, "VmRSS:");
  for (uint64_t i = 0; i < live; i++)
    free(blocks[i]);
  bench_post(&done, 1);
  for (uint64_t i = 0; i < threads; i++)
    pthread_join(handles[i], NULL);
  printf(",\"private_dirty_kib\":%" PRIu64 ",\"rss_kib\":%" PRIu64 ",\"vm_rss_kib\":%" PRIu64
         ",\"vm_locked_kib\":%" PRIu64 ",\"vm_size_kib\":%" PRIu64 "}\n",
         dirty, rss, resident, locked, size);
  return 0;
}
