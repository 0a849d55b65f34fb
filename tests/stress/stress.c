/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of random events against weir's API, to be linked with the core under the sanitizers:
 * every block is kept in a shadow heap that knows its size and contents, so overlap, a wrong
 * alignment, a lost byte or an unstable usable size is found at the next look. One part runs in
 * one thread over all entry points; the other hands blocks between threads, with C11 atomics and
 * pthreads only, so that a thread sanitizer can follow.
 * Usage: stress [EVENTS [SEED]]
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

#include "stress.h"

enum { SLOTS = 512, THREADS = 4, SHARED = 64 };

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
/* What is known of one live block. */
struct shadow {
  unsigned char *block;
  size_t size;
  size_t usable;
  size_t alignment;
  uint64_t seed;
};

/* Sizes as programs ask for them: mostly small, at times around a class's edge, or a payload. */
static size_t random_size(uint64_t *state) {
  uint64_t dice = next_random(state);
  unsigned bits = (unsigned)(dice >> 8) % 12;

  if (dice % 128 == 0)
    return (size_t)(next_random(state) % (2 * MIB));
  if (dice % 16 == 0)
    return (size_t)(next_random(state) % (100 * KIB));
  if (dice % 8 == 1)
    return ((size_t)1 << (4 + bits)) + (size_t)(next_random(state) % 3) - 1;
  return (size_t)(next_random(state) % ((size_t)16 << (bits % 8)));
}

/* Payloads are checked at both ends only: their middles would take all the time. */
static size_t head_of(size_t usable) {
  return usable > 16 * KIB ? 4 * KIB : usable;
}

static unsigned char byte_of(const struct shadow *shadow, size_t i) {
  return (unsigned char)(shadow->seed + i * 7 + (i >> 8));
}

static void fill(struct shadow *shadow) {
  size_t head = head_of(shadow->usable);
  size_t i;

  for (i = 0; i < head; i++)
    shadow->block[i] = byte_of(shadow, i);
  if (head == shadow->usable)
    return;
  for (i = shadow->usable - 64; i < shadow->usable; i++)
    shadow->block[i] = byte_of(shadow, i);
}

/* The first `kept` bytes and, when all is kept, the last ones. */
static void look(const struct shadow *shadow, size_t kept) {
  size_t head = head_of(shadow->usable);
  size_t i;

  for (i = 0; i < head && i < kept; i++) {
    REQUIRE(shadow->block[i] == byte_of(shadow, i), "byte %zu of a block of %zu changed", i,
            shadow->size);
  }
  if (head == shadow->usable || kept < shadow->usable)
    return;
  for (i = shadow->usable - 64; i < shadow->usable; i++) {
    REQUIRE(shadow->block[i] == byte_of(shadow, i), "byte %zu of a block of %zu changed", i,
            shadow->size);
  }
}

static void check(const struct shadow *shadow) {
  REQUIRE(weir_usable_size(shadow->block) == shadow->usable, "usable size of %zu: %zu, was %zu",
          shadow->size, weir_usable_size(shadow->block), shadow->usable);
  look(shadow, shadow->usable);
}

static void adopt(struct shadow *shadow, void *block, size_t size, size_t alignment,
                  uint64_t seed) {
  REQUIRE(block != NULL, "no block of %zu at %zu", size, alignment);
  REQUIRE(((uintptr_t)block & (alignment - 1)) == 0, "%p is not aligned to %zu", block, alignment);
  shadow->block = block;
  shadow->size = size;
  shadow->usable = weir_usable_size(block);
  shadow->alignment = alignment;
  shadow->seed = seed;
  REQUIRE(shadow->usable >= size && shadow->usable > 0, "usable size of %zu: %zu", size,
          shadow->usable);
  fill(shadow);
}

static void release(struct shadow *shadow) {
  if (shadow->block == NULL)
    return;
  check(shadow);
  errno = 77;
  weir_free(shadow->block);
  REQUIRE(errno == 77, "weir_free changed errno");
  memset(shadow, 0, sizeof *shadow);
}

static void take(struct shadow *shadow, uint64_t *state) {
  size_t size = random_size(state);
  uint64_t dice = next_random(state);
  size_t alignment = 16, i;
  unsigned char *block;

  switch (dice % 8) {
  case 0:
    block = weir_calloc(size / 8 + 1, 8);
    REQUIRE(block != NULL, "weir_calloc");
    for (i = 0; i < size / 8 * 8 + 8; i++)
      REQUIRE(block[i] == 0, "weir_calloc: byte %zu", i);
    break;
  case 1:
    alignment = (size_t)1 << (dice >> 8) % 18;
    block = weir_aligned_alloc(alignment, size);
    break;
  case 2:
    block = weir_realloc(NULL, size);
    break;
  default:
    block = weir_malloc(size);
  }
  adopt(shadow, block, size, alignment < 16 ? 16 : alignment, dice);
}

static void resize(struct shadow *shadow, uint64_t *state) {
  size_t size = random_size(state) + 1;
  size_t kept = size < shadow->usable ? size : shadow->usable;
  unsigned char *block;

  check(shadow);
  block = next_random(state) % 2 == 0 ? weir_realloc(shadow->block, size)
                                      : weir_reallocarray(shadow->block, 1, size);
  REQUIRE(block != NULL, "weir_realloc to %zu", size);
  shadow->block = block;
  look(shadow, kept);
  adopt(shadow, block, size, 16, next_random(state));
}

static void refuse(struct shadow *shadow) {
  volatile size_t much = SIZE_MAX - 100;

  errno = 0;
  REQUIRE(weir_malloc(much) == NULL && errno == ENOMEM, "weir_malloc of too much");
  REQUIRE(weir_calloc(much / 2, 3) == NULL, "weir_calloc of too much");
  REQUIRE(weir_aligned_alloc(4096, much) == NULL, "weir_aligned_alloc of too much");
  if (shadow->block == NULL)
    return;
  REQUIRE(weir_realloc(shadow->block, much) == NULL, "weir_realloc of too much");
  REQUIRE(weir_reallocarray(shadow->block, much, 2) == NULL, "weir_reallocarray of too much");
  check(shadow);
}

static int by_address(const void *one, const void *other) {
  const struct shadow *a = one, *b = other;

  return a->block < b->block ? -1 : a->block > b->block;
}

/* No two live blocks share a byte. */
static void check_overlap(const struct shadow *slots, size_t count) {
  static struct shadow sorted[SLOTS];
  size_t i;

  memcpy(sorted, slots, count * sizeof *slots);
  qsort(sorted, count, sizeof *sorted, by_address);
  for (i = 1; i < count; i++) {
    if (sorted[i - 1].block == NULL)
      continue;
    REQUIRE(sorted[i - 1].block + sorted[i - 1].usable <= sorted[i].block, "two blocks overlap");
  }
}

/* Live bytes as weir counts them are the shadow's to the byte. */
static void check_count(const struct shadow *slots, size_t count, uint64_t before) {
  weir_stats_t stats;
  uint64_t live = 0;
  size_t i;

  for (i = 0; i < count; i++)
    live += slots[i].usable;
  weir_stats(&stats, sizeof stats);
  REQUIRE(stats.live == before + live, "%llu bytes live, counted %llu",
          (unsigned long long)(before + live), (unsigned long long)stats.live);
}

static void one_thread(size_t events, uint64_t seed) {
  static struct shadow slots[SLOTS];
  static const size_t marks[] = {(size_t)64 << 20, 0, 4096, (size_t)1 << 20, WEIR_RETAIN_UNLIMITED};
  uint64_t state = seed;
  weir_stats_t stats;
  size_t i;

  weir_stats(&stats, sizeof stats);
  for (i = 0; i < events; i++) {
    uint64_t dice = next_random(&state);
    struct shadow *shadow = &slots[(dice >> 16) % SLOTS];

    if (shadow->block != NULL && dice % 4 == 0) {
      resize(shadow, &state);
    } else if (shadow->block != NULL) {
      release(shadow);
    } else {
      take(shadow, &state);
    }
    if (dice % 1024 == 1)
      refuse(shadow);
    if (dice % 2048 == 2)
      weir_trim((size_t)(next_random(&state) % (4 * MIB)));
    if (dice % 2048 == 3)
      weir_set_retain(marks[(dice >> 32) % (sizeof marks / sizeof *marks)]);
    if (dice % 1024 == 4)
      check_overlap(slots, SLOTS);
    if (dice % 1024 == 5)
      check_count(slots, SLOTS, stats.live);
  }
  check_overlap(slots, SLOTS);
  for (i = 0; i < SLOTS; i++)
    release(&slots[i]);
  check_count(slots, SLOTS, stats.live);
  weir_set_retain((size_t)64 << 20);
}

/* Places through which threads hand blocks on; the block carries its own shadow. */
static _Atomic(struct shadow *) shared[SHARED];

static struct shadow *make(uint64_t *state) {
  size_t size = random_size(state) + sizeof(struct shadow);
  unsigned char *block = weir_malloc(size);
  struct shadow *shadow = (struct shadow *)(void *)block;

  REQUIRE(block != NULL && ((uintptr_t)block & 15) == 0, "weir_malloc(%zu): %p", size,
          (void *)block);
  shadow->block = block + sizeof *shadow;
  shadow->size = size;
  shadow->usable = weir_usable_size(block) - sizeof *shadow;
  shadow->seed = next_random(state);
  fill(shadow);
  return shadow;
}

static void unmake(struct shadow *shadow) {
  if (shadow == NULL)
    return;
  REQUIRE(weir_usable_size(shadow) == shadow->usable + sizeof *shadow, "usable size changed");
  look(shadow, shadow->usable);
  weir_free(shadow);
}

struct job {
  size_t events;
  uint64_t seed;
};

static void *hand_on(void *argument) {
  const struct job *job = argument;
  struct shadow *own[32] = {0};
  uint64_t state = job->seed;
  size_t i;

  for (i = 0; i < job->events; i++) {
    uint64_t dice = next_random(&state);
    struct shadow **place = &own[(dice >> 8) % 32];

    if (dice % 4 == 0) {
      unmake(*place);
      *place = make(&state);
    } else {
      *place = atomic_exchange(&shared[(dice >> 16) % SHARED], *place);
    }
    if (dice % 4096 == 5)
      weir_trim(0);
    if (dice % 4096 == 9)
      weir_set_retain(dice % 8192 == 9 ? 0 : (size_t)64 << 20);
    if (dice % 4096 == 13) {
      weir_stats_t stats;
      weir_stats(&stats, sizeof stats);
    }
  }
  for (i = 0; i < 32; i++)
    unmake(own[i]);
  return NULL;
}

static void many_threads(size_t events, uint64_t seed) {
  size_t round, i;

  for (round = 0; round < 4; round++) {
    pthread_t threads[THREADS];
    struct job jobs[THREADS];
    for (i = 0; i < THREADS; i++) {
      jobs[i] = (struct job){events / 4, seed + round * THREADS + i};
      REQUIRE(pthread_create(&threads[i], NULL, hand_on, &jobs[i]) == 0, "pthread_create");
    }
    for (i = 0; i < THREADS; i++)
      pthread_join(threads[i], NULL);
  }
  for (i = 0; i < SHARED; i++)
    unmake(atomic_exchange(&shared[i], NULL));
}

int main(int argc, char **argv) {
  size_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 200000;
  uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  weir_stats_t before, after;

  weir_stats(&before, sizeof before);
  one_thread(events, seed);
  one_thread(events / 2, seed + 1000);
  many_threads(events / 2, seed + 2000);
  weir_stats(&after, sizeof after);
  REQUIRE(after.live == before.live, "%llu bytes are still live",
          (unsigned long long)(after.live - before.live));
  weir_trim(0);
  weir_stats(&after, sizeof after);
  REQUIRE(after.retained <= (size_t)64 << 10, "%llu bytes stay after weir_trim(0)",
          (unsigned long long)after.retained);
  return 0;
}
