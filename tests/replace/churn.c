/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Five thousand short threads, each using sixty-four sizes, some leaving blocks to later ones:
 * neither the resident set nor the address space may grow with their number.
 */
#include "expect.h"

#include <pthread.h>

enum { SIZES = 64, LEFT = 256 };
static void *left[LEFT];

static void *short_life(void *argument) {
  size_t number = (size_t)(uintptr_t)argument;
  void *blocks[SIZES];
  size_t i;

  for (i = 0; i < SIZES; i++) {
    size_t size = 1 + i * i * 16;
    blocks[i] = expect_hide(malloc(size));
    REQUIRE(blocks[i] != NULL, "malloc");
    memset(blocks[i], (int)i, size < 128 ? size : 128);
  }
  /* One in eight blocks stays behind and is freed by a thread that comes much later. */
  for (i = 0; i < SIZES; i++) {
    if (i % 8 == number % 8) {
      size_t place = (number * 8 + i / 8) % LEFT;
      free(__atomic_exchange_n(&left[place], blocks[i], __ATOMIC_ACQ_REL));
    } else {
      free(blocks[i]);
    }
  }
  return NULL;
}

static void some_threads(size_t count) {
  size_t i, j;

  for (i = 0; i < count; i += 4) {
    pthread_t threads[4];
    for (j = 0; j < 4; j++) {
      REQUIRE(pthread_create(&threads[j], NULL, short_life, (void *)(i + j)) == 0,
              "pthread_create");
    }
    for (j = 0; j < 4; j++)
      pthread_join(threads[j], NULL);
  }
}

/* The resident set with nothing live and nothing kept: what it is then was lost, or is records. */
static size_t rest(void) {
  size_t i;

  for (i = 0; i < LEFT; i++) {
    free(left[i]);
    left[i] = NULL;
  }
  malloc_trim(0);
  return expect_rss();
}

int main(void) {
  size_t before, after, space, space_slack;

  expect_start();
  some_threads(1000);
  before = rest();
  space = expect_proc("/proc/self/status", "VmSize:");
  some_threads(4000);
  after = expect_rss();
  /* What each of the five heaps keeps at hand, and the blocks left behind. */
  EXPECT(after <= before + 16 * EXPECT_MIB, "resident: %zu KiB became %zu", before >> 10,
         after >> 10);
  after = rest();
  EXPECT(after <= before + EXPECT_MIB, "resident at rest: %zu KiB became %zu", before >> 10,
         after >> 10);
  /* glibc maps 64 MiB for each of its arenas, and makes another when it finds them busy. */
  space_slack = expect_strict() ? 16 * EXPECT_MIB : 256 * EXPECT_MIB;
  EXPECT(expect_proc("/proc/self/status", "VmSize:") <= space + space_slack,
         "address space: %zu KiB became %zu", space >> 10,
         expect_proc("/proc/self/status", "VmSize:") >> 10);
  if (expect_weir()) {
    weir_stats_t stats;
    EXPECT_FN(weir_stats)(&stats, sizeof stats);
    EXPECT(stats.heaps <= 8, "%zu heaps for at most five threads at once", (size_t)stats.heaps);
  }
  return expect_done();
}
