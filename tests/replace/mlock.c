/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real-time programs call mlockall(MCL_CURRENT | MCL_FUTURE), and then every page that is mapped
 * and accessible is resident for good: it must be no more than what is used. What is over the
 * mark goes back although it is locked; and under a small limit of locked memory, as a user who
 * is not root, mlockall succeeds where it does with the libc's malloc, and running into the limit
 * is NULL with ENOMEM. Skipped where mlockall is refused.
 */
#include "expect.h"

#include <pthread.h>
#include <sys/mman.h>

static bool lock_all(void) {
  if (mlockall(MCL_CURRENT | MCL_FUTURE) == 0)
    return true;
  fprintf(stderr, "mlockall: %s\n", strerror(errno));
  return false;
}

static void check_locked(size_t limit, const char *when) {
  size_t now = expect_rss();

  EXPECT(now <= limit, "%s: %zu KiB locked in memory (VmLck %zu KiB), limit %zu", when, now >> 10,
         expect_proc("/proc/self/status", "VmLck:") >> 10, limit >> 10);
}

static void idle(void) {
  free(expect_hide(malloc(100)));
  REQUIRE(lock_all(), "mlockall");
  check_locked(4 * EXPECT_MIB, "idle");
  free(expect_hide(malloc(100)));
  free(expect_hide(malloc(10000)));
  check_locked(4 * EXPECT_MIB + 512 * EXPECT_KIB, "after two more blocks");
}

static void *blocks[4096];

static void live_before(void) {
  size_t i;

  for (i = 0; i < 64; i++) {
    blocks[i] = expect_hide(malloc(EXPECT_MIB));
    expect_touch(blocks[i], EXPECT_MIB);
  }
  REQUIRE(lock_all(), "mlockall");
  check_locked(72 * EXPECT_MIB, "64 MiB live");
}

static void live_after(void) {
  size_t i;

  REQUIRE(lock_all(), "mlockall");
  for (i = 0; i < 64; i++) {
    blocks[i] = expect_hide(malloc(EXPECT_MIB));
    REQUIRE(blocks[i] != NULL, "malloc");
  }
  check_locked(72 * EXPECT_MIB, "64 MiB live");
}

static void small_live(void) {
  size_t i;

  REQUIRE(lock_all(), "mlockall");
  for (i = 0; i < 4096; i++)
    expect_touch(blocks[i] = expect_hide(malloc(4000)), 4000);
  check_locked(16 * EXPECT_MIB + 6 * EXPECT_MIB, "16 MiB live in small blocks");
}

/* Memory over the mark leaves the resident set although it is locked, and can be used again. */
static void purge(size_t mark) {
  enum { COUNT = 64, SIZE = 4 << 20 };
  size_t before, round, i;

  REQUIRE(lock_all(), "mlockall");
  before = expect_rss();
  for (round = 0; round < 2; round++) {
    for (i = 0; i < COUNT; i++) {
      blocks[i] = expect_hide(calloc(1, SIZE));
      REQUIRE(blocks[i] != NULL, "calloc");
      EXPECT(expect_zero(blocks[i], SIZE), "calloc of purged memory is not zero");
      expect_touch(blocks[i], SIZE);
    }
    for (i = 0; i < COUNT; i++)
      free(blocks[i]);
    if (!expect_strict())
      continue;
    check_locked(before + mark + 4 * EXPECT_MIB, "after a burst");
  }
  if (!expect_strict())
    return;
  malloc_trim(0);
  check_locked(before + 4 * EXPECT_MIB, "after malloc_trim");
}

static void purge_default(void) {
  purge(64 * EXPECT_MIB);
}
static void purge_none(void) {
  purge(0);
}

static void no_faults(void) {
  size_t i, round;
  long faults = 0;

  if (!expect_strict())
    return;
  REQUIRE(lock_all(), "mlockall");
  for (round = 0; round < 10; round++) {
    if (round == 2)
      faults = expect_faults(RUSAGE_SELF);
    for (i = 0; i < 2; i++)
      expect_touch(blocks[i] = expect_hide(malloc(EXPECT_MIB)), EXPECT_MIB);
    for (i = 0; i < 2; i++)
      free(blocks[i]);
  }
  faults = expect_faults(RUSAGE_SELF) - faults;
  EXPECT(faults == 0, "locked, and yet %ld faults", faults);
}

/* What real-time guides advise, in a process that is locked: one large block is taken, written to
 * and freed, and the program's buffers come out of it, from the first, without one fault. */
static void preheated(void) {
  size_t i, round;
  long faults;

  if (!expect_strict())
    return;
  REQUIRE(lock_all(), "mlockall");
  expect_touch(blocks[0] = expect_hide(malloc(32 * EXPECT_MIB)), 32 * EXPECT_MIB);
  free(blocks[0]);
  expect_faults(RUSAGE_SELF);
  faults = expect_faults(RUSAGE_SELF);
  for (round = 0; round < 2; round++) {
    for (i = 0; i < 31; i++)
      expect_touch(blocks[i] = expect_hide(malloc(EXPECT_MIB)), EXPECT_MIB);
    for (i = 0; i < 31; i++)
      free(blocks[i]);
  }
  faults = expect_faults(RUSAGE_SELF) - faults;
  EXPECT(faults == 0, "preheated and locked, and yet %ld faults", faults);
}

static void *messages(void *unused) {
  size_t i;

  for (i = 0; i < 50; i++) {
    void *block = expect_hide(malloc(EXPECT_MIB));
    if (block == NULL) {
      EXPECT(errno == ENOMEM || !expect_strict(), "errno is %d", errno);
    } else {
      expect_touch(block, EXPECT_MIB);
    }
    free(block);
  }
  return unused;
}

/*
 * As a user: 64 MiB may be locked, as the real-time guides let it be set. Where the hard limit is
 * lower (containers), mlockall may fail, for it counts address space; the rest holds anyway.
 */
static void limited(void) {
  struct rlimit limit;
  pthread_attr_t attributes;
  pthread_t threads[20];
  struct rlimit wanted = {64 * EXPECT_MIB, 64 * EXPECT_MIB};
  size_t count = 0, i;
  bool full;

  free(expect_hide(malloc(100)));
  getrlimit(RLIMIT_MEMLOCK, &limit);
  full = setrlimit(RLIMIT_MEMLOCK, &wanted) == 0;
  if (geteuid() == 0)
    REQUIRE(setresuid(65534, 65534, 65534) == 0, "setresuid");
  if (!lock_all()) {
    EXPECT(!full, "mlockall with 64 MiB allowed");
    return;
  }
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 128 * EXPECT_KIB);
  for (i = 0; i < (full ? 20 : 2); i++) {
    if (pthread_create(&threads[i], &attributes, messages, NULL) != 0)
      break;
  }
  EXPECT(i == 20 || !full, "only %zu threads could start", i);
  while (i > 0)
    pthread_join(threads[--i], NULL);
  errno = 0;
  while (count < 200 && (blocks[count] = expect_hide(malloc(EXPECT_MIB))) != NULL) {
    expect_touch(blocks[count++], EXPECT_MIB);
  }
  EXPECT(count < 200, "the limit was not met");
  EXPECT(count >= 24 || !full, "only %zu MiB could be taken", count);
  /* The kernel says EAGAIN here, and glibc passes it on. */
  EXPECT(errno == ENOMEM || !expect_strict(), "at the limit errno is %d", errno);
  errno = 0;
  EXPECT(malloc(65 * EXPECT_MIB) == NULL, "malloc over the limit");
  EXPECT(errno == ENOMEM || !expect_strict(), "over the limit errno is %d", errno);
  while (count > 0)
    free(blocks[--count]);
  messages(NULL);
}

int main(int argc, char **argv) {
  static const struct expect_case cases[] = {
      {"idle", idle, NULL},
      {"live_before", live_before, NULL},
      {"live_after", live_after, NULL},
      {"small_live", small_live, NULL},
      {"purge_default", purge_default, NULL},
      {"purge_none", purge_none, "WEIR_RETAIN=0"},
      {"no_faults", no_faults, NULL},
      {"preheated", preheated, NULL},
      {"limited", limited, NULL},
  };

  if (argc == 1 && !lock_all())
    return EXPECT_SKIP;
  munlockall();
  return expect_cases(cases, EXPECT_COUNT(cases), argc, argv);
}
