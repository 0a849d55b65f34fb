/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Producer and consumer: one thread takes blocks and writes them, another checks and frees them;
 * between the two lies a bounded ring. So every free is of a block that another thread took, which
 * is what a queue between an executor and a middleware thread does. --one-thread runs both ends in
 * one thread, first in first out, as the measure of the ring itself.
 */
#include "bench.h"

#include <sched.h>

enum { MOST_PAIRS = 64, LINE = 64 };

static uint64_t pairs = 1, count = 1000000, depth = 256, least = 16, most = 16384, one_thread;
static uint64_t seed = 1;

static const struct bench_option options[] = {
    {"pairs", BENCH_COUNT, &pairs, 1, MOST_PAIRS, NULL, "pairs of a producer and a consumer"},
    {"blocks", BENCH_COUNT, &count, 1, (uint64_t)1 << 40, NULL, "blocks each pair passes"},
    {"depth", BENCH_COUNT, &depth, 1, 1u << 24, NULL, "slots of a ring"},
    {"min", BENCH_BYTES, &least, 8, 1u << 30, NULL, "smallest size"},
    {"max", BENCH_BYTES, &most, 8, 1u << 30, NULL, "largest size, each doubling equally likely"},
    {"one-thread", BENCH_SWITCH, &one_thread, 0, 0, NULL, "both ends of a pair in one thread"},
    {"seed", BENCH_COUNT, &seed, 0, UINT64_MAX, NULL, "seed of the sizes"},
};

/* Each index has a cache line of its own, and each side keeps a copy of the other's index, so that
   the ring costs next to nothing beside the allocator. */
struct ring {
  _Alignas(LINE) _Atomic uint64_t written;
  uint64_t read_seen;
  _Alignas(LINE) _Atomic uint64_t read;
  uint64_t written_seen;
  _Alignas(LINE) uint64_t **slots;
};

struct pair {
  struct ring ring;
  pthread_t producer, consumer;
  uint64_t state;
  uint64_t start_ns, end_ns;
};

static pthread_barrier_t start_line;
static struct pair all[MOST_PAIRS];

/* A full or empty ring: spin a little, then leave the core to the other side. */
static void stand_by(unsigned *turns) {
  if (++*turns % 64 == 0)
    sched_yield();
  else
    bench_relax();
}

static uint64_t *produce(struct pair *pair) {
  uint64_t *block = bench_take(bench_size(&pair->state, (size_t)least, (size_t)most, true));
  *block = bench_key(block);
  return block;
}

static void consume(uint64_t *block) {
  if (*block != bench_key(block))
    bench_stop(1, "the block at %p was overwritten while it was live", (void *)block);
  *block = 0;
  bench_keep(block);
  free(block);
}

static void *producer(void *argument) {
  struct pair *pair = argument;
  struct ring *ring = &pair->ring;
  pthread_barrier_wait(&start_line);
  pair->start_ns = bench_now();
  for (uint64_t at = 0; at < count; at++) {
    uint64_t *block = produce(pair);
    for (unsigned turns = 0; at - ring->read_seen >= depth; stand_by(&turns))
      ring->read_seen = atomic_load_explicit(&ring->read, memory_order_acquire);
    ring->slots[at % depth] = block;
    atomic_store_explicit(&ring->written, at + 1, memory_order_release);
  }
  return NULL;
}

static void *consumer(void *argument) {
  struct pair *pair = argument;
  struct ring *ring = &pair->ring;
  pthread_barrier_wait(&start_line);
  for (uint64_t at = 0; at < count; at++) {
    for (unsigned turns = 0; at == ring->written_seen; stand_by(&turns))
      ring->written_seen = atomic_load_explicit(&ring->written, memory_order_acquire);
    uint64_t *block = ring->slots[at % depth];
    atomic_store_explicit(&ring->read, at + 1, memory_order_release);
    consume(block);
  }
  pair->end_ns = bench_now();
  return NULL;
}

static void *both(void *argument) {
  struct pair *pair = argument;
  uint64_t **slots = pair->ring.slots;
  pthread_barrier_wait(&start_line);
  pair->start_ns = bench_now();
  for (uint64_t at = 0; at < count; at++) {
    if (at >= depth)
      consume(slots[at % depth]);
    slots[at % depth] = produce(pair);
  }
  for (uint64_t at = count > depth ? count - depth : 0; at < count; at++)
    consume(slots[at % depth]);
  pair->end_ns = bench_now();
  return NULL;
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "prodcons", "Take blocks in one thread and free them in another.",
              options, sizeof options / sizeof *options, NULL);
  if (least > most)
    bench_stop(2, "--min must not exceed --max");
  pthread_barrier_init(&start_line, NULL, (unsigned)(pairs * (one_thread ? 1 : 2)) + 1);
  for (size_t i = 0; i < pairs; i++) {
    all[i].state = bench_seed(seed + i);
    all[i].ring.slots = bench_array((size_t)depth * sizeof *all[i].ring.slots);
    bench_thread(&all[i].producer, one_thread ? both : producer, &all[i]);
    if (!one_thread)
      bench_thread(&all[i].consumer, consumer, &all[i]);
  }
  uint64_t faults = bench_faults(RUSAGE_SELF);
  pthread_barrier_wait(&start_line);
  uint64_t total_ns = 0;
  for (size_t i = 0; i < pairs; i++) {
    pthread_join(all[i].producer, NULL);
    if (!one_thread)
      pthread_join(all[i].consumer, NULL);
    total_ns += all[i].end_ns - all[i].start_ns;
  }
  faults = bench_faults(RUSAGE_SELF) - faults;
  printf("{\"bench\":\"prodcons\",\"pairs\":%" PRIu64 ",\"blocks\":%" PRIu64 ",\"depth\":%" PRIu64
         ",\"min\":%" PRIu64 ",\"max\":%" PRIu64 ",\"one_thread\":%s,\"seed\":%" PRIu64
         ",\"ns_per_op\":%.3f,\"faults\":%" PRIu64 ",\"rss_peak_kib\":%" PRIu64
         ",\"rss_final_kib\":%" PRIu64 "}\n",
         pairs, count, depth, least, most, one_thread ? "true" : "false", seed,
         (double)total_ns / (double)count / (double)pairs, faults,
         bench_proc_kib(BENCH_STATUS, "VmHWM:"), bench_proc_kib(BENCH_STATUS, "VmRSS:"));
  return 0;
}
