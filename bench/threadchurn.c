/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread churn: threads that live for a fraction of a millisecond, a few at a time. Each takes and
 * frees some hundred small blocks and one payload, and leaves a few blocks behind, which the main
 * thread frees when the next threads are already at work. Larson and Krishnan ("Memory allocation
 * for long-running server applications", ISMM 1998) saw such bleeding from thread to thread in
 * servers. A robot's node does the same wherever an action's goal, a service call or a timer gets a
 * thread of its own (std::async, detached workers): what an allocator sets up for a thread, keeps
 * for it, and does with it once the thread is gone decides both time and memory.
 *
 * An operation is one thread, from pthread_create to the free of what it left.
 */
#include "bench.h"

enum { MOST_AT_ONCE = 256, MOST_LEFT = 256, LIVE = 32 };

static uint64_t threads = 2000, at_once = 4, blocks = 300, least = 16, most = 1024;
static uint64_t payload = 256u << 10, left = 8, seed = 1;

static const struct bench_option options[] = {
    {"threads", BENCH_COUNT, &threads, 1, (uint64_t)1 << 40, NULL, "threads in all"},
    {"at-once", BENCH_COUNT, &at_once, 1, MOST_AT_ONCE, NULL, "threads that run side by side"},
    {"blocks", BENCH_COUNT, &blocks, 0, 1u << 30, NULL, "small blocks each takes"},
    {"min", BENCH_BYTES, &least, 16, 1u << 30, NULL, "smallest of them"},
    {"max", BENCH_BYTES, &most, 16, 1u << 30, NULL, "largest, each doubling equally likely"},
    {"payload", BENCH_BYTES, &payload, 0, (uint64_t)1 << 40, NULL,
     "size of the payload, of which every page is written; 0: none"},
    {"left", BENCH_COUNT, &left, 0, MOST_LEFT, NULL, "blocks each leaves behind"},
    {"seed", BENCH_COUNT, &seed, 0, UINT64_MAX, NULL, "seed of the sizes and choices"},
};

struct visitor {
  pthread_t thread;
  uint64_t state;
  struct bench_header *left[MOST_LEFT];
};

static struct visitor visitors[2][MOST_AT_ONCE];

static struct bench_header *take(uint64_t *state) {
  return bench_take_marked(bench_size(state, (size_t)least, (size_t)most, true));
}

static unsigned char *take_payload(void) {
  if (payload == 0)
    return NULL;
  unsigned char *block = bench_take((size_t)payload);
  bench_touch(block, (size_t)payload);
  bench_keep(block);
  return block;
}

/* bench_touch left a one in the last byte. */
static void free_payload(unsigned char *block) {
  if (block != NULL && block[payload - 1] != 1)
    bench_stop(1, "the payload at %p was overwritten while it was live", (void *)block);
  free(block);
}

static void *visit(void *argument) {
  struct visitor *visitor = argument;
  struct bench_header *slots[LIVE] = {NULL};
  unsigned char *block = take_payload();
  for (uint64_t i = 0; i < blocks; i++) {
    size_t slot = (size_t)(bench_random(&visitor->state) % LIVE);
    bench_free_marked(slots[slot]);
    slots[slot] = take(&visitor->state);
  }
  for (uint64_t i = 0; i < left; i++)
    visitor->left[i] = take(&visitor->state);
  free_payload(block);
  for (size_t i = 0; i < LIVE; i++)
    bench_free_marked(slots[i]);
  return NULL;
}

static void start_visitors(struct visitor *group, uint64_t first, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    group[i].state = bench_seed(seed + first + i);
    bench_thread(&group[i].thread, visit, &group[i]);
  }
}

static void join_visitors(struct visitor *group, uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    pthread_join(group[i].thread, NULL);
}

static void free_left(struct visitor *group) {
  for (uint64_t i = 0; i < at_once; i++) {
    for (uint64_t j = 0; j < left; j++) {
      bench_free_marked(group[i].left[j]);
      group[i].left[j] = NULL;
    }
  }
}

/* Two groups take turns: while one runs, what the other left is freed. */
static void run(void) {
  unsigned turn = 0;
  for (uint64_t first = 0; first < threads; first += at_once, turn ^= 1) {
    uint64_t count = threads - first < at_once ? threads - first : at_once;
    start_visitors(visitors[turn], first, count);
    free_left(visitors[turn ^ 1]);
    join_visitors(visitors[turn], count);
  }
  free_left(visitors[turn ^ 1]);
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "threadchurn",
              "Start short-lived threads that allocate and leave blocks behind.", options,
              sizeof options / sizeof *options, NULL);
  if (least > most)
    bench_stop(2, "--min must not exceed --max");
  uint64_t faults = bench_faults(RUSAGE_SELF);
  uint64_t start = bench_now();
  run();
  uint64_t elapsed_ns = bench_now() - start;
  faults = bench_faults(RUSAGE_SELF) - faults;
  printf("{\"bench\":\"threadchurn\",\"threads\":%" PRIu64 ",\"at_once\":%" PRIu64
         ",\"blocks\":%" PRIu64 ",\"min\":%" PRIu64 ",\"max\":%" PRIu64 ",\"payload\":%" PRIu64
         ",\"left\":%" PRIu64 ",\"seed\":%" PRIu64 ",\"ns_per_op\":%.1f,\"faults\":%" PRIu64
         ",\"faults_per_op\":%.2f,\"rss_peak_kib\":%" PRIu64 ",\"rss_final_kib\":%" PRIu64 "}\n",
         threads, at_once, blocks, least, most, payload, left, seed,
         (double)elapsed_ns / (double)threads, faults, (double)faults / (double)threads,
         bench_proc_kib(BENCH_STATUS, "VmHWM:"), bench_proc_kib(BENCH_STATUS, "VmRSS:"));
  return 0;
}
