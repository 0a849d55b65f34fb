/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large blocks: twenty of 5 to 25 MiB are live, and one at random is replaced by another of random
 * size, again and again; every page of a new block is written once. After malloc-large of
 * mimalloc-bench (Stolyarov and Leijen), by its description. A robot's node that holds point
 * clouds, images and cost maps looks like that: few blocks, each many megabytes, no two of the same
 * size. What an allocator gives back to the kernel between two of them is faulted in again page by
 * page.
 *
 * An operation is one replacement. The first blocks are taken before the time starts; what is
 * resident at the end is measured after all were given back.
 */
#include "bench.h"

enum { TOUCH_PAGE, TOUCH_FIRST, TOUCH_NONE, MOST_LIVE = 65536 };

static uint64_t live = 20, least = 5u << 20, most = 25u << 20, ops = 60, touch = TOUCH_PAGE;
static uint64_t seed = 1;

static const struct bench_option options[] = {
    {"live", BENCH_COUNT, &live, 1, MOST_LIVE, NULL, "blocks held at once"},
    {"min", BENCH_BYTES, &least, 8, (uint64_t)1 << 40, NULL, "smallest size"},
    {"max", BENCH_BYTES, &most, 8, (uint64_t)1 << 40, NULL, "largest size, all alike likely"},
    {"ops", BENCH_COUNT, &ops, 1, (uint64_t)1 << 40, NULL, "replacements"},
    {"touch", BENCH_WORD, &touch, 0, 0, "page|first|none",
     "write one word a page, in the first page only, or nothing (default page)"},
    {"seed", BENCH_COUNT, &seed, 0, UINT64_MAX, NULL, "seed of the sizes and choices"},
};

static const char *const touch_names[] = {"page", "first", "none"};

/* The size stands here and not in the block, because a block may have to stay untouched. */
struct slot {
  unsigned char *block;
  size_t size;
};

static uint64_t word_of(const struct slot *slot, size_t at) {
  return bench_key(slot->block + at);
}

/* Where the written words end: after one a page, after the first, or before it. */
static size_t touched(const struct slot *slot) {
  if (touch == TOUCH_NONE)
    return 0;
  return touch == TOUCH_FIRST ? sizeof(uint64_t) : slot->size - sizeof(uint64_t) + 1;
}

static void take(struct slot *slot, uint64_t *state) {
  slot->size = bench_size(state, (size_t)least, (size_t)most, false);
  slot->block = bench_take(slot->size);
  size_t end = touched(slot);
  for (size_t at = 0; at < end; at += BENCH_PAGE) {
    uint64_t word = word_of(slot, at);
    memcpy(slot->block + at, &word, sizeof word);
  }
  bench_keep(slot->block);
}

static void check(const struct slot *slot, size_t at) {
  uint64_t word;
  memcpy(&word, slot->block + at, sizeof word);
  if (word != word_of(slot, at))
    bench_stop(1, "the block at %p was overwritten at %zu while it was live", (void *)slot->block,
               at);
}

/* The first page, the middle one and the last: reading all would double the work of the loop. */
static void give_back(const struct slot *slot) {
  size_t end = touched(slot);
  if (end > 0) {
    size_t last = (end - 1) / BENCH_PAGE;
    check(slot, 0);
    check(slot, last / 2 * BENCH_PAGE);
    check(slot, last * BENCH_PAGE);
  }
  free(slot->block);
}

static void replace(struct slot *slots, uint64_t *state) {
  struct slot *slot = &slots[bench_random(state) % live];
  give_back(slot);
  take(slot, state);
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "large", "Replace blocks of many megabytes at random.", options,
              sizeof options / sizeof *options, NULL);
  if (least > most)
    bench_stop(2, "--min must not exceed --max");
  struct slot *slots = bench_array((size_t)live * sizeof *slots);
  uint64_t state = bench_seed(seed);
  for (size_t i = 0; i < live; i++)
    take(&slots[i], &state);
  uint64_t faults = bench_faults(RUSAGE_SELF);
  uint64_t start = bench_now();
  for (uint64_t i = 0; i < ops; i++)
    replace(slots, &state);
  uint64_t elapsed_ns = bench_now() - start;
  faults = bench_faults(RUSAGE_SELF) - faults;
  for (size_t i = 0; i < live; i++)
    give_back(&slots[i]);
  printf("{\"bench\":\"large\",\"live\":%" PRIu64 ",\"min\":%" PRIu64 ",\"max\":%" PRIu64
         ",\"ops\":%" PRIu64 ",\"touch\":\"%s\",\"seed\":%" PRIu64
         ",\"ns_per_op\":%.3f,\"faults\":%" PRIu64 ",\"faults_per_op\":%.2f"
         ",\"rss_peak_kib\":%" PRIu64 ",\"rss_final_kib\":%" PRIu64 "}\n",
         live, least, most, ops, touch_names[touch], seed, (double)elapsed_ns / (double)ops, faults,
         (double)faults / (double)ops, bench_proc_kib(BENCH_STATUS, "VmHWM:"),
         bench_proc_kib(BENCH_STATUS, "VmRSS:"));
  return 0;
}
