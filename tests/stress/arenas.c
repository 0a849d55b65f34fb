/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads over several arenas, to be linked with the core under the sanitizers: some arenas last,
 * and each thread makes and destroys others of its own, over the kernel and in buffers, while the
 * rest run. Blocks of all of them go from thread to thread and are checked and given back there; an
 * arena is destroyed once all of its blocks that went out are back, with the others still in it.
 * With C11 atomics and pthreads only, so that a thread sanitizer can follow.
 * Usage: arenas [EVENTS [SEED]]
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/arena.h>

#include "stress.h"

enum { THREADS = 4, LASTING = 4, SHARED = 64, BUFFER = 1 << 20, LIFE = 800 };

/* An arena and how many of its blocks are in other hands than its owner's. */
struct source {
  weir_arena_t *arena;
  atomic_size_t out;
};

/* Stands at the start of each block that goes out; the rest is a pattern. */
struct parcel {
  struct source *source;
  size_t size;
  uint64_t seed;
};

static struct source lasting[LASTING];
static _Atomic(struct parcel *) shared[SHARED];
static unsigned char buffers[THREADS + 1][BUFFER];

static size_t random_size(uint64_t *state) {
  uint64_t dice = next_random(state);

  if (dice % 64 == 0)
    return (size_t)(next_random(state) % 300000);
  return (size_t)(next_random(state) % ((size_t)16 << (dice >> 8) % 10));
}

static struct parcel *pack(struct source *source, uint64_t *state) {
  size_t size = sizeof(struct parcel) + random_size(state), i;
  uint64_t dice = next_random(state);
  struct parcel *parcel = dice % 8 == 0   ? weir_arena_zalloc(source->arena, 1, size)
                          : dice % 8 == 1 ? weir_arena_aligned_alloc(source->arena, 256, size)
                                          : weir_arena_alloc(source->arena, size);

  if (parcel == NULL)
    return NULL;
  parcel->source = source;
  parcel->size = size;
  parcel->seed = dice;
  for (i = sizeof *parcel; i < size; i += 61)
    ((unsigned char *)parcel)[i] = (unsigned char)(dice + i);
  return parcel;
}

static void look(const struct parcel *parcel) {
  size_t i;

  REQUIRE(weir_usable_size(parcel) >= parcel->size, "usable size of %zu", parcel->size);
  for (i = sizeof *parcel; i < parcel->size; i += 61) {
    REQUIRE(((const unsigned char *)parcel)[i] == (unsigned char)(parcel->seed + i),
            "byte %zu of %zu changed", i, parcel->size);
  }
}

/* Give back what another thread, or this one, has sent. */
static void unpack(struct parcel *parcel, uint64_t *state) {
  struct source *source;

  if (parcel == NULL)
    return;
  source = parcel->source;
  look(parcel);
  REQUIRE(weir_arena_of(parcel) == source->arena, "a block changed its arena");
  switch (next_random(state) % 4) {
  case 0:
    weir_free(parcel);
    break;
  case 1:
    weir_arena_free(lasting[0].arena, parcel);
    break;
  case 2: {
    void *grown = weir_realloc(parcel, parcel->size + 1000);
    weir_free(grown != NULL ? grown : parcel);
    break;
  }
  default:
    weir_arena_free(source->arena, parcel);
  }
  atomic_fetch_sub(&source->out, 1);
}

static void send(struct parcel *parcel, uint64_t *state) {
  if (parcel == NULL)
    return;
  atomic_fetch_add(&parcel->source->out, 1);
  unpack(atomic_exchange(&shared[next_random(state) % SHARED], parcel), state);
}

static void begin(struct source *source, unsigned char *buffer, uint64_t *state) {
  weir_arena_options_t options = WEIR_ARENA_OPTIONS_INIT;

  options.name = "stress";
  options.retain = next_random(state) % 2 == 0 ? 0 : WEIR_RETAIN_DEFAULT;
  options.limit = next_random(state) % 2 == 0 ? WEIR_LIMIT_NONE : (size_t)3 << 20;
  if (next_random(state) % 3 == 0)
    source->arena = weir_arena_create_in(buffer, BUFFER, &options);
  else
    source->arena = weir_arena_create(&options);
  REQUIRE(source->arena != NULL, "no arena");
  atomic_store(&source->out, 0);
}

/* What went out comes back: the places are emptied, and the others finish what they hold. */
static void end(struct source *source, uint64_t *state) {
  size_t i;

  while (atomic_load(&source->out) != 0) {
    for (i = 0; i < SHARED; i++)
      unpack(atomic_exchange(&shared[i], NULL), state);
    sched_yield();
  }
  weir_arena_destroy(source->arena);
}

struct job {
  size_t events, number;
  uint64_t seed;
};

static void *run(void *argument) {
  const struct job *job = argument;
  struct source own;
  uint64_t state = job->seed;
  size_t i;

  begin(&own, buffers[job->number], &state);
  for (i = 0; i < job->events; i++) {
    uint64_t dice = next_random(&state);
    struct source *source = dice % 3 == 0 ? &own : &lasting[(dice >> 8) % LASTING];

    send(pack(source, &state), &state);
    if (dice % 16 == 1)
      weir_free(weir_malloc((size_t)(dice >> 32) % 2000));
    /* Some stay, and go with the arena. */
    if (dice % 64 == 2 && pack(&own, &state) == NULL)
      weir_arena_trim(own.arena, 0);
    if (dice % 2048 == 3) {
      weir_stats_t stats;
      weir_arena_stats(lasting[(dice >> 16) % LASTING].arena, &stats, sizeof stats);
      REQUIRE(stats.limit == 0 || stats.peak_committed <= stats.limit, "over the limit");
    }
    if (dice % 2048 == 5)
      weir_arena_trim(lasting[(dice >> 16) % LASTING].arena, 0);
    if (dice % 2048 == 7)
      weir_arena_set_retain(lasting[(dice >> 16) % LASTING].arena, (size_t)(dice >> 44));
    if (i % LIFE == LIFE - 1) {
      end(&own, &state);
      begin(&own, buffers[job->number], &state);
    }
  }
  end(&own, &state);
  return NULL;
}

int main(int argc, char **argv) {
  size_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 60000;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  size_t round, i;

  for (i = 0; i < LASTING; i++) {
    lasting[i].arena = i == 0   ? NULL
                       : i == 1 ? weir_arena_create_in(buffers[THREADS], BUFFER, NULL)
                                : weir_arena_create(NULL);
    REQUIRE(i == 0 || lasting[i].arena != NULL, "no arena");
  }
  for (round = 0; round < 3; round++) {
    pthread_t threads[THREADS];
    struct job jobs[THREADS];
    for (i = 0; i < THREADS; i++) {
      jobs[i] = (struct job){events / 3, i, next_random(&state)};
      REQUIRE(pthread_create(&threads[i], NULL, run, &jobs[i]) == 0, "pthread_create");
    }
    for (i = 0; i < THREADS; i++)
      pthread_join(threads[i], NULL);
  }
  for (i = 0; i < SHARED; i++)
    unpack(atomic_exchange(&shared[i], NULL), &state);
  for (i = 0; i < LASTING; i++) {
    weir_stats_t stats;
    weir_arena_stats(lasting[i].arena, &stats, sizeof stats);
    REQUIRE(stats.live == 0, "%llu bytes are live", (unsigned long long)stats.live);
    weir_arena_destroy(lasting[i].arena);
  }
  return 0;
}
