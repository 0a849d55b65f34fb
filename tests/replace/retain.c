/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The retention mark: after a burst is freed the resident set is at most what is live, the mark,
 * and 4 MiB, at the very moment the last free returns; what is hot stays; malloc_trim takes the
 * free memory of all threads, also of idle ones; and the real-time guides' preheat recipe works.
 * Each case runs in its own process. Skipped without weir.
 */
#include "expect.h"

#include <pthread.h>
#include <semaphore.h>

#define SLACK (4 * EXPECT_MIB)
#define UNLIMITED SIZE_MAX

static void *take(size_t size) {
  void *block = expect_hide(malloc(size));

  REQUIRE(block != NULL, "malloc(%zu)", size);
  expect_touch(block, size);
  return block;
}

static void check_rss(size_t live, size_t mark, const char *when) {
  size_t rss = expect_rss();

  EXPECT(rss <= live + mark + SLACK, "%s: %zu KiB resident, %zu live, mark %zu", when, rss >> 10,
         live >> 10, mark >> 10);
}

static void *blocks_of_burst[65536];

/* What is resident with nothing taken: measured once, before a case takes its first block. */
static size_t resident_at_start(void) {
  static size_t bytes;

  if (bytes == 0) {
    expect_touch(blocks_of_burst, sizeof blocks_of_burst);
    bytes = expect_rss();
  }
  return bytes;
}

/* Free `count` blocks of `size`, looking at the resident set on the way and at the end. */
static void burst(size_t size, size_t count, size_t mark) {
  void **blocks = blocks_of_burst;
  size_t start = resident_at_start();
  size_t peak, i;

  REQUIRE(count <= EXPECT_COUNT(blocks_of_burst), "too many blocks");
  for (i = 0; i < count; i++)
    blocks[i] = take(size);
  peak = expect_rss();
  EXPECT(peak + EXPECT_MIB >= start + count * size, "the burst is not resident");
  for (i = 0; i < count; i++) {
    free(blocks[i]);
    if (mark != UNLIMITED && size > 65536 && i % (count / 8 + 1) == 0) {
      check_rss(start + (count - i - 1) * size, mark, "in the burst");
    }
  }
  if (mark == UNLIMITED) {
    EXPECT(expect_rss() + SLACK >= peak, "memory was given back without a limit");
  } else {
    check_rss(start, mark, "after the burst");
  }
}

/* Over a small mark a quarter will do. */
static void bursts(size_t mark) {
  size_t less = mark <= EXPECT_MIB ? 4 : 1;
  burst(4 * EXPECT_MIB, 24 / less, mark);
  burst(100000, 1000 / less, mark);
  burst(8 * EXPECT_MIB + 64, 12 / less, mark);
  burst(48 * EXPECT_MIB, 2, mark);
  /* Small blocks: every slab is empty in the end, and but for a few all of them go. */
  burst(500, 65536 / less, mark);
  burst(5000, 16384 / less, mark);
  burst(40000, 2048 / less, mark);
  burst(4 * EXPECT_MIB, 24 / less, mark);
}

static void burst_default(void) {
  bursts(64 * EXPECT_MIB);
  /* A gibibyte, once. */
  burst(4 * EXPECT_MIB, 256, 64 * EXPECT_MIB);
}
static void burst_none(void) {
  bursts(0);
}
static void burst_page(void) {
  bursts(expect_page());
}
static void burst_one(void) {
  bursts(EXPECT_MIB);
}
static void burst_unlimited(void) {
  bursts(UNLIMITED);
}

static void short_bursts(size_t mark) {
  burst(4 * EXPECT_MIB, 24, mark);
  burst(5000, 8192, mark);
}

/* The mark moves at run time, and lowering it takes effect before the call returns. */
static void by_mallopt(void) {
  size_t before = resident_at_start();

  mallopt(M_TRIM_THRESHOLD, -1);
  short_bursts(UNLIMITED);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  check_rss(before, 64 * EXPECT_MIB, "mark lowered to 64 MiB");
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
  check_rss(before, EXPECT_MIB, "mark lowered to 1 MiB");
  short_bursts(EXPECT_MIB);
  mallopt(M_TRIM_THRESHOLD, (int)expect_page());
  short_bursts(expect_page());
  mallopt(M_TRIM_THRESHOLD, 0);
  check_rss(before, 0, "mark lowered to 0");
  short_bursts(0);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  short_bursts(64 * EXPECT_MIB);
}

static long hot_faults(size_t size) {
  long before = expect_faults(RUSAGE_THREAD);

  free(take(size));
  return expect_faults(RUSAGE_THREAD) - before;
}

/* What is used all the time is never the coldest: between the frees of a burst it has no fault. */
static void hot_beside_burst(void) {
  enum { COUNT = 64 };
  static void *blocks[COUNT];
  size_t round, i;
  long faults = 0;

  hot_faults(EXPECT_MIB);
  hot_faults(EXPECT_MIB);
  for (round = 0; round < 2; round++) {
    for (i = 0; i < COUNT; i++) {
      blocks[i] = take(4 * EXPECT_MIB);
      faults += hot_faults(EXPECT_MIB);
    }
    for (i = 0; i < COUNT; i++) {
      free(blocks[i]);
      faults += hot_faults(EXPECT_MIB);
    }
  }
  EXPECT(faults == 0, "a hot loop had %ld faults beside a burst", faults);
}

static sem_t go, done;
static long thread_faults;
static bool over;

static void *hot_thread(void *unused) {
  size_t i;

  for (i = 0;; i++) {
    long faults;
    sem_wait(&go);
    if (over)
      return unused;
    faults = hot_faults(EXPECT_MIB);
    if (i >= 2)
      thread_faults += faults;
    sem_post(&done);
  }
}

/* The same with the hot loop in a thread of its own, one iteration for each step of the burst. */
static void hot_thread_beside_burst(void) {
  enum { COUNT = 64 };
  static void *blocks[COUNT];
  pthread_t thread;
  size_t i;

  sem_init(&go, 0, 0);
  sem_init(&done, 0, 0);
  REQUIRE(pthread_create(&thread, NULL, hot_thread, NULL) == 0, "pthread_create");
  for (i = 0; i < 2 * COUNT; i++) {
    if (i < COUNT) {
      blocks[i] = take(4 * EXPECT_MIB);
    } else {
      free(blocks[i - COUNT]);
    }
    sem_post(&go);
    sem_wait(&done);
  }
  over = true;
  sem_post(&go);
  pthread_join(thread, NULL);
  EXPECT(thread_faults == 0, "a hot thread had %ld faults beside a burst", thread_faults);
}

enum { IDLE_BLOCKS = 60000 };
static void *idle_blocks[IDLE_BLOCKS];

/* Leaves 32 MiB of freed payload and 30 MB of freed small blocks behind, and stays. */
static void *idle_freer(void *unused) {
  void *payload[32];
  size_t i;

  for (i = 0; i < 32; i++)
    payload[i] = take(EXPECT_MIB);
  for (i = 0; i < 32; i++)
    free(payload[i]);
  for (i = 0; i < IDLE_BLOCKS; i++)
    idle_blocks[i] = take(100 + i % 800);
  for (i = 0; i < IDLE_BLOCKS; i++)
    free(idle_blocks[i]);
  sem_post(&done);
  sem_wait(&go);
  return unused;
}

/* Takes small blocks for another to free, and stays. */
static void *idle_producer(void *unused) {
  size_t i;

  for (i = 0; i < IDLE_BLOCKS; i++)
    idle_blocks[i] = take(100 + i % 800);
  sem_post(&done);
  sem_wait(&go);
  return unused;
}

static void trim_of(void *(*run)(void *), bool free_here) {
  pthread_t thread;
  size_t before, full, i;

  sem_init(&go, 0, 0);
  sem_init(&done, 0, 0);
  malloc_trim(0);
  before = expect_rss();
  REQUIRE(pthread_create(&thread, NULL, run, NULL) == 0, "pthread_create");
  sem_wait(&done);
  if (free_here) {
    for (i = 0; i < IDLE_BLOCKS; i++)
      free(idle_blocks[i]);
  }
  full = expect_rss();
  EXPECT(full >= before + 16 * EXPECT_MIB, "nothing is retained that could be trimmed");
  EXPECT(malloc_trim(0) == 1, "malloc_trim gave nothing back");
  EXPECT(expect_rss() <= before + 2 * EXPECT_MIB,
         "%zu KiB resident, %zu with the idle thread's, "
         "%zu after malloc_trim",
         before >> 10, full >> 10, expect_rss() >> 10);
  sem_post(&go);
  pthread_join(thread, NULL);
}

static void trim_idle_freer(void) {
  trim_of(idle_freer, false);
  trim_of(idle_freer, false);
}
static void trim_idle_producer(void) {
  mallopt(M_TRIM_THRESHOLD, -1);
  trim_of(idle_producer, true);
  trim_of(idle_producer, true);
}

/* A thread takes many blocks, frees a few of each slab itself, and sleeps; another frees the rest.
 * Then the slabs belong to nobody's list but the sleeper's, and the bound holds all the same. */
enum { PARTLY = 60000 };
static char *partly[PARTLY];
static pthread_barrier_t partly_freed;

static void *free_some_and_sleep(void *unused) {
  size_t i;

  for (i = 0; i < PARTLY; i++)
    memset(partly[i] = take(1000), 1, 1000);
  for (i = 0; i < PARTLY; i += 40) {
    free(partly[i]);
    partly[i] = NULL;
  }
  pthread_barrier_wait(&partly_freed);
  pthread_barrier_wait(&partly_freed);
  return unused;
}

static void others_free_the_rest(void) {
  pthread_t sleeper;
  size_t before = expect_rss();
  size_t i;

  mallopt(M_TRIM_THRESHOLD, EXPECT_MIB);
  pthread_barrier_init(&partly_freed, NULL, 2);
  REQUIRE(pthread_create(&sleeper, NULL, free_some_and_sleep, NULL) == 0, "pthread_create");
  pthread_barrier_wait(&partly_freed);
  for (i = 0; i < PARTLY; i++)
    free(partly[i]);
  EXPECT(expect_rss() <= before + 8 * EXPECT_MIB, "all was freed, and %zu KiB are resident",
         expect_rss() >> 10);
  malloc_trim(0);
  EXPECT(expect_rss() <= before + 3 * EXPECT_MIB, "all was trimmed, and %zu KiB are resident",
         expect_rss() >> 10);
  pthread_barrier_wait(&partly_freed);
  pthread_join(sleeper, NULL);
}

/* Pages of slabs that still hold a block here and there cannot go, but the live blocks stay. */
static void trim_keeps_live(void) {
  enum { COUNT = 40000 };
  static void *blocks[COUNT];
  size_t round, i;

  for (round = 0; round < 3; round++) {
    for (i = 0; i < COUNT; i++) {
      blocks[i] = take(16 + i % 1500);
      expect_fill(blocks[i], 16 + i % 1500, i);
    }
    for (i = 0; i < COUNT; i++) {
      if (i % 7 != round)
        free(blocks[i]);
    }
    malloc_trim(0);
    for (i = round; i < COUNT; i += 7) {
      EXPECT(expect_holds(blocks[i], 16 + i % 1500, i), "malloc_trim destroyed a live block");
      free(blocks[i]);
    }
    malloc_trim(0);
  }
}

/* A pad keeps so much, the hottest: what was freed last is still there. */
static void trim_pad(void) {
  void *blocks[32];
  long before;
  size_t i;

  for (i = 0; i < 32; i++)
    blocks[i] = take(EXPECT_MIB);
  for (i = 0; i < 32; i++)
    free(blocks[i]);
  EXPECT(malloc_trim(8 * EXPECT_MIB) == 1, "malloc_trim(8 MiB)");
  before = expect_faults(RUSAGE_SELF);
  for (i = 0; i < 7; i++)
    blocks[i] = take(EXPECT_MIB);
  EXPECT(expect_faults(RUSAGE_SELF) - before <= 2, "malloc_trim took the hottest: %ld faults",
         expect_faults(RUSAGE_SELF) - before);
  for (i = 0; i < 7; i++)
    free(blocks[i]);
}

/*
 * The recipe of the real-time guides: no trim, no mmap, take and touch one large block, free it;
 * then the node's buffers come out of it. A few faults are left for the allocator's own records
 * of the 31 blocks, which did not exist before: two pages of them, and one of the page map.
 */
static void preheat(void) {
  enum { RECORDS = 3 };
  void *blocks[31];
  long before;
  size_t i;

  EXPECT(mallopt(M_TRIM_THRESHOLD, -1) == 1, "mallopt(M_TRIM_THRESHOLD, -1)");
  EXPECT(mallopt(M_MMAP_MAX, 0) == 1, "mallopt(M_MMAP_MAX, 0)");
  free(take(32 * EXPECT_MIB));
  expect_faults(RUSAGE_SELF);
  before = expect_faults(RUSAGE_SELF);
  for (i = 0; i < 31; i++) {
    blocks[i] = expect_hide(malloc(EXPECT_MIB));
    expect_touch(blocks[i], EXPECT_MIB);
  }
  EXPECT(expect_faults(RUSAGE_SELF) - before <= RECORDS, "preheated, and yet %ld faults",
         expect_faults(RUSAGE_SELF) - before);
  for (i = 0; i < 31; i++)
    free(blocks[i]);
}

/* A sample cache filled and dropped again and again keeps no more than the mark. */
static void repeated(void) {
  size_t before = resident_at_start();
  size_t i;

  for (i = 0; i < 6; i++)
    burst((i + 1) * EXPECT_MIB, 32, 64 * EXPECT_MIB);
  check_rss(before, 64 * EXPECT_MIB, "after six bursts");
  if (expect_weir()) {
    weir_stats_t stats;
    EXPECT_FN(weir_stats)(&stats, sizeof stats);
    EXPECT(stats.retained <= stats.mark, "%zu retained", (size_t)stats.retained);
    EXPECT(stats.mark == 64 * EXPECT_MIB, "the mark is %zu", (size_t)stats.mark);
    EXPECT(stats.purges > 0 && stats.purged_bytes >= 64 * EXPECT_MIB, "purges are not counted");
  }
}

int main(int argc, char **argv) {
  static const struct expect_case cases[] = {
      {"burst_default", burst_default, NULL},
      {"burst_none", burst_none, "WEIR_RETAIN=0"},
      {"burst_page", burst_page, "WEIR_RETAIN=4096"},
      {"burst_one", burst_one, "WEIR_RETAIN=1M"},
      {"burst_unlimited", burst_unlimited, "WEIR_RETAIN=unlimited"},
      {"by_mallopt", by_mallopt, NULL},
      {"hot_beside_burst", hot_beside_burst, NULL},
      {"hot_thread_beside_burst", hot_thread_beside_burst, NULL},
      {"trim_idle_freer", trim_idle_freer, NULL},
      {"trim_idle_producer", trim_idle_producer, NULL},
      {"others_free_the_rest", others_free_the_rest, NULL},
      {"trim_keeps_live", trim_keeps_live, NULL},
      {"trim_pad", trim_pad, NULL},
      {"preheat", preheat, NULL},
      {"repeated", repeated, NULL},
  };

  if (!expect_strict())
    return EXPECT_SKIP;
  return expect_cases(cases, EXPECT_COUNT(cases), argc, argv);
}
