/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payload reuse: from the third iteration on a loop that takes, writes and frees the same buffers
 * makes no page fault at all, for each size, number of live buffers and pattern, on a fresh
 * process and after a random history. Counts ru_minflt. Skipped without weir.
 */
#include "expect.h"

#include <pthread.h>
#include <semaphore.h>

enum { WARM_UP = 2, ROUNDS = 12, LIVE_MAX = 10 };
static void *buffers[LIVE_MAX];

struct loop {
  size_t size;
  size_t live;
  size_t asked; /* bytes asked for; only size of them are touched */
};

static const size_t sizes[] = {64,      4096,    65536,   65537,   262144,  1048576, 4194304,
                               7340032, 7450000, 7864320, 8388608, 8388672, 16777216};

static void take_all(const struct loop *loop) {
  size_t i;

  for (i = 0; i < loop->live; i++) {
    buffers[i] = expect_hide(malloc(loop->asked));
    REQUIRE(buffers[i] != NULL, "malloc(%zu)", loop->asked);
    expect_touch(buffers[i], loop->size);
  }
}

static void free_all(const struct loop *loop) {
  size_t i;

  for (i = 0; i < loop->live; i++)
    free(buffers[i]);
}

static void plain(const struct loop *loop) {
  take_all(loop);
  free_all(loop);
}

/* Freed last to first: the other order in which messages die. */
static void backwards(const struct loop *loop) {
  size_t i;

  take_all(loop);
  for (i = loop->live; i-- > 0;)
    free(buffers[i]);
}

/* What a subscriber does: the serialized message, something small, the copy. */
static void take_and_copy(const struct loop *loop) {
  void *raw = expect_hide(malloc(loop->asked));
  void *header = expect_hide(malloc(48));
  void *copy = expect_hide(malloc(loop->asked));

  expect_touch(raw, loop->size);
  memset(header, 1, 48);
  memcpy(copy, raw, loop->size < 4096 ? loop->size : 4096);
  expect_touch(copy, loop->size);
  free(raw);
  free(header);
  free(copy);
}

/* calloc, aligned takes and a growing realloc, as serializers use them. */
static void mixed(const struct loop *loop) {
  void *one = expect_hide(calloc(1, loop->asked));
  void *two = expect_hide(memalign(4096, loop->asked));
  void *three = expect_hide(malloc(loop->asked / 4));

  expect_touch(one, loop->size);
  expect_touch(two, loop->size);
  expect_touch(three, loop->size / 4);
  three = expect_hide(realloc(three, loop->asked / 2));
  expect_touch(three, loop->size / 2);
  free(two);
  free(three);
  free(one);
}

/* A second thread that frees what the first took. */
static sem_t filled, emptied;
static const struct loop *shared_loop;

static void *consumer(void *unused) {
  for (;;) {
    sem_wait(&filled);
    if (shared_loop == NULL)
      return unused;
    free_all(shared_loop);
    sem_post(&emptied);
  }
}

static void other_thread(const struct loop *loop) {
  shared_loop = loop;
  take_all(loop);
  sem_post(&filled);
  sem_wait(&emptied);
}

static void count_faults(const char *what, void (*iteration)(const struct loop *),
                         const struct loop *loop) {
  long before, after;
  size_t i;

  for (i = 0; i < WARM_UP; i++)
    iteration(loop);
  before = expect_faults(RUSAGE_SELF);
  for (i = 0; i < ROUNDS; i++)
    iteration(loop);
  after = expect_faults(RUSAGE_SELF);
  EXPECT(after == before, "%s: %zu live x %zu bytes (asked %zu): %ld faults in %d iterations", what,
         loop->live, loop->size, loop->asked, after - before, ROUNDS);
}

/* The getrusage path, the stack and the semaphores are resident after one quiet loop. */
static void settle(void) {
  struct loop loop = {64, 1, 64};
  size_t i;

  for (i = 0; i < 3; i++)
    plain(&loop);
  expect_faults(RUSAGE_SELF);
  expect_faults(RUSAGE_SELF);
}

static void grid(const char *what, void (*iteration)(const struct loop *)) {
  static const size_t lives[] = {1, 2, 4, 10};
  size_t i, j;

  settle();
  for (i = 0; i < EXPECT_COUNT(sizes); i++) {
    for (j = 0; j < EXPECT_COUNT(lives); j++) {
      struct loop loop = {sizes[i], lives[j], sizes[i]};
      if (loop.live * loop.size <= 64 * EXPECT_MIB)
        count_faults(what, iteration, &loop);
    }
  }
}

/* What a node did before it settled: sizes of all kinds, many live at once, freed in any order. */
static void history(void) {
  enum { SLOTS = 400, STEPS = 6000 };
  static void *slots[SLOTS];
  uint64_t state = 99;
  size_t i;

  for (i = 0; i < STEPS; i++) {
    size_t slot = (size_t)(next_random(&state) % SLOTS);
    size_t size = next_random_size(&state, i % 50 == 0 ? 6 * EXPECT_MIB : 100000);
    free(slots[slot]);
    slots[slot] = expect_hide(malloc(size));
    expect_touch(slots[slot], size);
  }
  /* A part of it stays for good and lies between what is freed. */
  for (i = 0; i < SLOTS; i += 1 + (i % 3 != 0)) {
    free(slots[i]);
    slots[i] = NULL;
  }
}

static void fresh_plain(void) {
  grid("plain", plain);
}
static void fresh_copy(void) {
  grid("take and copy", take_and_copy);
}
static void fresh_mixed(void) {
  size_t i;

  settle();
  for (i = 0; i < EXPECT_COUNT(sizes); i++) {
    struct loop loop = {sizes[i], 3, sizes[i]};
    count_faults("mixed", mixed, &loop);
  }
}
static void after_history(void) {
  history();
  grid("after a history", plain);
  history();
  grid("after a history, backwards", backwards);
}
static void copy_after_history(void) {
  history();
  grid("take and copy after a history", take_and_copy);
}

static void across_threads(void) {
  pthread_t thread;

  history();
  sem_init(&filled, 0, 0);
  sem_init(&emptied, 0, 0);
  REQUIRE(pthread_create(&thread, NULL, consumer, NULL) == 0, "pthread_create");
  grid("freed by another thread", other_thread);
  shared_loop = NULL;
  sem_post(&filled);
  pthread_join(thread, NULL);
}

/* The whole mark, to the last page. */
static void up_to_the_mark(void) {
  struct loop two = {32 * EXPECT_MIB, 2, 32 * EXPECT_MIB};
  struct loop one = {64 * EXPECT_MIB, 1, 64 * EXPECT_MIB};

  settle();
  history();
  count_faults("up to the mark", plain, &two);
  count_faults("up to the mark", plain, &one);
}

/* No step anywhere between 7 and 9 MiB. */
static void sweep(void) {
  size_t size;

  settle();
  for (size = 7 * EXPECT_MIB; size <= 9 * EXPECT_MIB; size += 64 * EXPECT_KIB) {
    struct loop loop = {size, 2, size};
    count_faults("sweep", plain, &loop);
  }
}

/* Asking for four times the message and touching one: pages never touched count for nothing. */
static void over_allocated(void) {
  struct loop exact = {EXPECT_MIB, 2, EXPECT_MIB};
  struct loop wide = {EXPECT_MIB, 4, 4 * EXPECT_MIB + 65536};
  long before;
  size_t i;

  settle();
  count_faults("exact", plain, &exact);
  count_faults("over-allocated", plain, &wide);
  /* Both in turn under a mark that holds what they touch, 6 MiB, and not what they ask for. */
  for (i = 0; i < WARM_UP; i++) {
    plain(&exact);
    plain(&wide);
  }
  before = expect_faults(RUSAGE_SELF);
  for (i = 0; i < ROUNDS; i++) {
    plain(&exact);
    plain(&wide);
  }
  EXPECT(expect_faults(RUSAGE_SELF) == before, "over-allocated buffers pushed out hot ones: %ld",
         expect_faults(RUSAGE_SELF) - before);
}

/* A queue of ten messages of varying size, the oldest freed when a new one comes. */
static void queue(void) {
  enum { DEPTH = 10, CYCLE = 30 };
  static void *slots[DEPTH];
  uint64_t state;
  long before = 0;
  size_t round, i;

  settle();
  for (round = 0; round < 8; round++) {
    state = 5;
    /* The first rounds settle which spans serve which sizes. */
    if (round == 4)
      before = expect_faults(RUSAGE_SELF);
    for (i = 0; i < CYCLE * DEPTH; i++) {
      size_t size = EXPECT_MIB + (size_t)(next_random(&state) % (EXPECT_MIB / 10));
      free(slots[i % DEPTH]);
      slots[i % DEPTH] = expect_hide(malloc(size));
      expect_touch(slots[i % DEPTH], size);
    }
  }
  EXPECT(expect_faults(RUSAGE_SELF) == before, "a queue of ten: %ld faults",
         expect_faults(RUSAGE_SELF) - before);
}

int main(int argc, char **argv) {
  static const struct expect_case cases[] = {
      {"plain", fresh_plain, NULL},
      {"take_and_copy", fresh_copy, NULL},
      {"mixed", fresh_mixed, NULL},
      {"after_history", after_history, NULL},
      {"copy_after_history", copy_after_history, NULL},
      {"across_threads", across_threads, NULL},
      {"up_to_the_mark", up_to_the_mark, NULL},
      {"sweep", sweep, NULL},
      {"over_allocated", over_allocated, "WEIR_RETAIN=12M"},
      {"queue", queue, NULL},
      /* The mark that an operator gave glibc is weir's too. */
      {"plain", fresh_plain, "MALLOC_TRIM_THRESHOLD_=67108864"},
  };

  if (!expect_strict())
    return EXPECT_SKIP;
  return expect_cases(cases, EXPECT_COUNT(cases), argc, argv);
}
