/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a real-time node is promised: an arena of 32 MiB, resident and locked when it is made,
 * serves 31 MiB of 1 MiB blocks from the first on without a page fault or a system call, counted
 * here and, between two marks (a descriptor closed that does not exist), by arenas_steady.sh from
 * outside; the same of whole lives of arenas in buffers. And locking under a limit of locked
 * memory, as a user who is not root. Cases by name, or all of them.
 */
#include "arenas.h"

#include <pthread.h>

enum { MARK = -4242 };
static void *blocks[1 << 16];
static unsigned char buffer[1 << 20];

static long begin(void) {
  close(MARK);
  return expect_faults(RUSAGE_SELF);
}

static void end(long faults, const char *what) {
  faults = expect_faults(RUSAGE_SELF) - faults;
  close(MARK);
  EXPECT(faults == 0, "%s: %ld faults", what, faults);
}

static weir_arena_t *make_locked(size_t prefault, size_t retain, bool lock) {
  weir_arena_options_t options = WEIR_ARENA_OPTIONS_INIT;
  weir_arena_t *arena;

  options.name = "frames";
  options.prefault = prefault;
  options.retain = retain;
  options.lock = lock;
  arena = arenas.create(&options);
  REQUIRE(arena != NULL, "weir_arena_create: %s", strerror(errno));
  return arena;
}

static void take(weir_arena_t *arena, size_t size, size_t count) {
  size_t i;

  for (i = 0; i < count; i++) {
    blocks[i] = arenas.alloc(arena, size);
    REQUIRE(blocks[i] != NULL, "block %zu of %zu", i, size);
    memset(blocks[i], (int)i, size);
  }
}

static void give(size_t count) {
  size_t i;

  for (i = 0; i < count; i++)
    free(blocks[i]);
}

/* What is not of the arena under test is there before faults are counted: the table, the stack, and
 * the code, which another arena runs through. */
static void prepare(void) {
  volatile char stack[16384];
  weir_arena_t *other = make_locked(EXPECT_MIB, 0, false);
  size_t i;

  for (i = 0; i < sizeof stack; i += 512)
    stack[i] = 1;
  memset(blocks, 1, sizeof blocks);
  memset(buffer, 1, sizeof buffer);
  take(other, 1000, 100);
  give(100);
  take(other, 70000, 5);
  give(5);
  arenas.reset(other);
  arenas.destroy(other);
  close(MARK - 1);
  expect_faults(RUSAGE_SELF);
}

static void messages(size_t retain, bool lock) {
  weir_arena_t *arena = make_locked(32 * EXPECT_MIB, retain, lock);
  long faults;
  size_t round;

  if (lock)
    EXPECT(expect_proc("/proc/self/status", "VmLck:") >= 32 * EXPECT_MIB, "%zu KiB are locked",
           expect_proc("/proc/self/status", "VmLck:") >> 10);
  prepare();
  faults = begin();
  for (round = 0; round < 3; round++) {
    take(arena, EXPECT_MIB, 31);
    give(31);
  }
  end(faults, "31 blocks of 1 MiB");
  arenas.destroy(arena);
  EXPECT(expect_proc("/proc/self/status", "VmLck:") == 0, "memory stays locked");
}

static void locked(void) {
  messages(WEIR_RETAIN_DEFAULT, true);
}
static void locked_without_mark(void) {
  messages(0, true);
}
static void prefaulted(void) {
  messages(0, false);
}

/* Blocks of any size from the same bytes. */
static void other_blocks(void) {
  static const size_t sizes[] = {64, 1000, 30000, 131072, 300000, 5 << 20};
  size_t i;

  for (i = 0; i < EXPECT_COUNT(sizes); i++) {
    weir_arena_t *arena = make_locked(32 * EXPECT_MIB, 0, true);
    size_t count = 25 * EXPECT_MIB / sizes[i];
    long faults;

    if (count > EXPECT_COUNT(blocks))
      count = EXPECT_COUNT(blocks);
    prepare();
    faults = begin();
    take(arena, sizes[i], count);
    give(count);
    take(arena, sizes[i], count);
    give(count);
    end(faults, "other blocks");
    arenas.destroy(arena);
  }
}

/* Taking, resetting and taking again. */
static void resets(void) {
  weir_arena_t *arena = make_locked(32 * EXPECT_MIB, 0, true);
  long faults;
  size_t round;

  prepare();
  faults = begin();
  for (round = 0; round < 4; round++) {
    take(arena, round % 2 == 0 ? EXPECT_MIB : 5000, 25);
    arenas.reset(arena);
  }
  end(faults, "resets");
  arenas.destroy(arena);
}

static void live_in_a_buffer(void *where, size_t size) {
  weir_arena_t *arena = arena_make_in(where, size);

  take(arena, 1000, 300);
  give(300);
  take(arena, 100000, 3);
  give(3);
  arenas.trim(arena, 0);
  take(arena, 100, 100);
  arenas.reset(arena);
  arenas.destroy(arena);
}

/* Whole lives of arenas in a buffer, without a call to the kernel for memory. */
static void in_a_buffer(void) {
  long faults;
  size_t round;

  /* The first one brings the process's own tables with it, and the code into memory. */
  live_in_a_buffer(buffer, sizeof buffer);
  prepare();
  faults = begin();
  for (round = 0; round < 4; round++)
    live_in_a_buffer(buffer + round * 100, sizeof buffer / 2);
  end(faults, "arenas in a buffer");
}

static void *consumer(void *unused) {
  give(300);
  return unused;
}

static void in_a_buffer_with_a_thread(void) {
  weir_arena_t *arena = arena_make_in(buffer, sizeof buffer);
  pthread_t thread;
  size_t round;

  for (round = 0; round < 3; round++) {
    take(arena, 1000, 300);
    REQUIRE(pthread_create(&thread, NULL, consumer, NULL) == 0, "pthread_create");
    pthread_join(thread, NULL);
  }
  EXPECT(arena_now(arena).sys_map == 0, "a buffer's arena mapped memory");
  arenas.destroy(arena);
}

/* As somebody who may lock so many bytes; false where that cannot be had here. */
static bool become_user(size_t bytes) {
  struct rlimit limit = {bytes, bytes};

  if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0)
    return false;
  if (geteuid() == 0)
    REQUIRE(setresuid(65534, 65534, 65534) == 0, "setresuid");
  return true;
}

static void expect_refused(size_t prefault, bool inside) {
  weir_arena_options_t options = WEIR_ARENA_OPTIONS_INIT;
  weir_arena_t *arena;
  size_t mapped = expect_proc("/proc/self/status", "VmSize:");

  options.lock = true;
  options.prefault = prefault;
  errno = 0;
  arena = inside ? arenas.create_in(buffer, sizeof buffer, &options) : arenas.create(&options);
  EXPECT(arena == NULL, "locked %zu bytes over the limit", prefault);
  EXPECT(errno == EPERM, "errno is %d, not EPERM", errno);
  EXPECT(expect_proc("/proc/self/status", "VmLck:") <= 64 * EXPECT_KIB, "something stays locked");
  /* Before the first arena the default one maps its first step. */
  EXPECT(expect_proc("/proc/self/status", "VmSize:") <= mapped + 512 * EXPECT_KIB,
         "something stays mapped");
}

static void over_the_limit(void) {
  size_t i;

  if (!become_user(64 * EXPECT_KIB))
    return;
  for (i = 0; i < 3; i++) {
    expect_refused(EXPECT_MIB, false);
    expect_refused(32 * EXPECT_MIB, false);
    expect_refused(EXPECT_MIB / 2, true);
  }
  /* The process goes on: nothing is left of it, and arenas that are not locked can be had. */
  messages(WEIR_RETAIN_DEFAULT, false);
}

static void no_lock_at_all(void) {
  if (!become_user(0))
    return;
  expect_refused(EXPECT_MIB, false);
  expect_refused(0, false);
  expect_refused(0, true);
}

static void limit_is_enough(void) {
  if (!become_user(40 * EXPECT_MIB))
    return;
  messages(WEIR_RETAIN_DEFAULT, true);
}

/* The limit is met later, when the arena grows: that is memory that is out. */
static void limit_is_met_later(void) {
  weir_arena_t *arena;
  size_t round, count;

  if (!become_user(8 * EXPECT_MIB))
    return;
  arena = make_locked(0, WEIR_RETAIN_DEFAULT, true);
  for (round = 0; round < 3; round++) {
    errno = 0;
    for (count = 0; count < 20; count++) {
      blocks[count] = arenas.alloc(arena, EXPECT_MIB);
      if (blocks[count] == NULL)
        break;
      memset(blocks[count], 1, EXPECT_MIB);
    }
    EXPECT(count >= 5 && count <= 8, "%zu MiB under a limit of 8", count);
    EXPECT(errno == ENOMEM, "errno is %d", errno);
    EXPECT(expect_proc("/proc/self/status", "VmLck:") >= count * EXPECT_MIB, "not locked");
    give(count);
  }
  free(expect_hide(malloc(16 * EXPECT_MIB)));
  arenas.destroy(arena);
}

int main(int argc, char **argv) {
  static const struct expect_case cases[] = {
      {"locked", locked, NULL},
      {"locked_without_mark", locked_without_mark, NULL},
      {"prefaulted", prefaulted, NULL},
      {"other_blocks", other_blocks, NULL},
      {"resets", resets, NULL},
      {"in_a_buffer", in_a_buffer, NULL},
      {"in_a_buffer_with_a_thread", in_a_buffer_with_a_thread, NULL},
      {"over_the_limit", over_the_limit, NULL},
      {"no_lock_at_all", no_lock_at_all, NULL},
      {"limit_is_enough", limit_is_enough, NULL},
      {"limit_is_met_later", limit_is_met_later, NULL},
  };
  weir_arena_options_t options = WEIR_ARENA_OPTIONS_INIT;
  weir_arena_t *arena;

  arenas_start();
  options.lock = true;
  options.prefault = 32 * EXPECT_MIB;
  if (argc == 1 && (arena = arenas.create(&options)) == NULL) {
    fprintf(stderr, "32 MiB cannot be locked here: %s\n", strerror(errno));
    return EXPECT_SKIP;
  }
  if (argc == 1)
    arenas.destroy(arena);
  return expect_cases(cases, EXPECT_COUNT(cases), argc, argv);
}
