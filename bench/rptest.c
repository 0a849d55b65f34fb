/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cross-thread queues, of the kind of the benchmark that comes with the rpmalloc project: every
 * thread takes batches of blocks of very different sizes, frees half of each batch itself, keeps a
 * quarter in a live set, whose older blocks it frees, and puts a quarter on the list of another
 * thread, which frees it. So each thread allocates, frees its own and frees what others took, all
 * at once, as the threads of an executor do whose callbacks publish to each other in one process.
 */
#include "bench.h"

#include <sched.h>

enum { MODE_RANDOM, MODE_FIXED, MOST_THREADS = 256, TABLE = 2048, APART = 128 };

static uint64_t threads = 2, loops = 10000, batch_size = 64, live = 2000, backlog = 512;
static uint64_t mode = MODE_RANDOM, least = 16, most = 16000, fixed_size = 128, seed = 1;

static const struct bench_option options[] = {
    {"threads", BENCH_COUNT, &threads, 1, MOST_THREADS, NULL, "threads"},
    {"loops", BENCH_COUNT, &loops, 1, (uint64_t)1 << 40, NULL, "batches each thread takes"},
    {"batch", BENCH_COUNT, &batch_size, 4, 1u << 20, NULL, "blocks of a batch"},
    {"live", BENCH_COUNT, &live, 1, 1u << 24, NULL, "blocks each thread keeps live"},
    {"backlog", BENCH_COUNT, &backlog, 1, 1u << 30, NULL,
     "blocks on a thread's list at which others wait"},
    {"mode", BENCH_WORD, &mode, 0, 0, "random|fixed", "sizes (default random)"},
    {"min", BENCH_BYTES, &least, 16, 1u << 30, NULL, "random: smallest size"},
    {"max", BENCH_BYTES, &most, 16, 1u << 30, NULL,
     "random: largest size, each doubling equally likely"},
    {"size", BENCH_BYTES, &fixed_size, 16, 1u << 30, NULL, "fixed: the one size"},
    {"seed", BENCH_COUNT, &seed, 0, UINT64_MAX, NULL, "seed of the sizes and choices"},
};

/* A block is its own list node, so that lists need no memory; off a list it points to itself. */
struct block {
  struct block *next;
  uint64_t sealed_size;
};

struct worker {
  _Alignas(APART) pthread_t thread;
  struct block **batch;
  struct block **kept;
  const uint32_t *sizes; /* drawn beforehand, because a draw costs as much as a fast malloc */
  uint64_t taken;
  uint64_t state;
  uint64_t elapsed_ns;
  /* What others put here: pushed with a compare and exchange, taken all at once, so that no node
     can come back while somebody looks at it. */
  _Alignas(APART) _Atomic(struct block *) inbox;
  _Atomic uint64_t waiting;
};

static struct worker workers[MOST_THREADS];
static struct bench_course course;
static _Atomic uint64_t running;

/* ---- blocks ---- */

/* The second word holds the size under a key made from the address; the last byte belongs to it. */
static struct block *take(struct worker *worker) {
  size_t size = worker->sizes[worker->taken++ % TABLE];
  struct block *block = bench_take(size);
  block->next = block;
  block->sealed_size = bench_key(block) ^ size;
  if (size > sizeof *block)
    ((unsigned char *)block)[size - 1] = (unsigned char)~size;
  return block;
}

static void give_back(struct block *block) {
  if (block == NULL)
    return;
  uint64_t size = block->sealed_size ^ bench_key(block);
  if (block->next != block || size < sizeof *block || size > (uint64_t)1 << 30 ||
      (size > sizeof *block && ((unsigned char *)block)[size - 1] != (unsigned char)~size))
    bench_stop(1, "the block at %p was overwritten while it was live", (void *)block);
  block->sealed_size = 0;
  bench_keep(block);
  free(block);
}

/* ---- lists between threads ---- */

static void drain(struct worker *worker) {
  struct block *block = atomic_exchange_explicit(&worker->inbox, NULL, memory_order_acquire);
  uint64_t count = 0;
  for (struct block *next; block != NULL; block = next, count++) {
    next = block->next;
    block->next = block;
    give_back(block);
  }
  if (count > 0)
    atomic_fetch_sub_explicit(&worker->waiting, count, memory_order_relaxed);
}

/* One that is far ahead waits, so that the memory in use does not depend on luck. It goes on
   freeing meanwhile, so that two threads cannot wait for each other. */
static void wait_for_room(struct worker *worker, struct worker *other) {
  while (atomic_load_explicit(&other->waiting, memory_order_relaxed) >= backlog) {
    drain(worker);
    sched_yield();
  }
}

/* Link the blocks before, so that one exchange passes them all. */
static void pass_on(struct worker *other, struct block **blocks, size_t count) {
  for (size_t i = 0; i + 1 < count; i++)
    blocks[i]->next = blocks[i + 1];
  struct block *last = blocks[count - 1];
  atomic_fetch_add_explicit(&other->waiting, count, memory_order_relaxed);
  struct block *first = atomic_load_explicit(&other->inbox, memory_order_relaxed);
  do
    last->next = first;
  while (!atomic_compare_exchange_weak_explicit(&other->inbox, &first, blocks[0],
                                                memory_order_release, memory_order_relaxed));
}

/* Each of the others in turn; a thread that is alone passes to itself. */
static struct worker *other_than(const struct worker *worker, uint64_t turn) {
  uint64_t self = (uint64_t)(worker - workers);
  uint64_t step = threads > 1 ? 1 + turn % (threads - 1) : 0;
  return &workers[(self + step) % threads];
}

/* ---- the loop ---- */

static void put_into_live_set(struct worker *worker, struct block *block) {
  struct block **slot = &worker->kept[((bench_random(&worker->state) >> 32) * live) >> 32];
  give_back(*slot);
  *slot = block;
}

static void one_loop(struct worker *worker, uint64_t turn) {
  size_t quarter = (size_t)batch_size / 4, at = 0;
  for (size_t i = 0; i < batch_size; i++)
    worker->batch[i] = take(worker);
  for (; at < quarter; at++)
    put_into_live_set(worker, worker->batch[at]);
  struct worker *other = other_than(worker, turn);
  wait_for_room(worker, other);
  pass_on(other, worker->batch + at, quarter);
  for (at += quarter; at < batch_size; at++)
    give_back(worker->batch[at]);
  drain(worker);
}

/* Another thread may still pass blocks on, or wait for room, until all are through. */
static void drain_until_all_are_done(struct worker *worker) {
  atomic_fetch_sub(&running, 1);
  while (atomic_load(&running) > 0) {
    drain(worker);
    sched_yield();
  }
  drain(worker);
}

static void *work(void *argument) {
  struct worker *worker = argument;
  bench_course_enter(&course);
  uint64_t start = bench_now();
  for (uint64_t turn = 0; turn < loops; turn++)
    one_loop(worker, turn);
  drain_until_all_are_done(worker);
  worker->elapsed_ns = bench_now() - start;
  bench_course_leave(&course);
  return NULL;
}

/* ---- setting up ---- */

static const uint32_t *make_sizes(uint64_t *state) {
  uint32_t *sizes = bench_array(TABLE * sizeof *sizes);
  for (size_t i = 0; i < TABLE; i++)
    sizes[i] =
        (uint32_t)(mode == MODE_FIXED ? fixed_size
                                      : bench_size(state, (size_t)least, (size_t)most, true));
  return sizes;
}

static void make_worker(struct worker *worker, uint64_t number) {
  worker->state = bench_seed(seed + number);
  worker->sizes = make_sizes(&worker->state);
  worker->batch = bench_array((size_t)batch_size * sizeof *worker->batch);
  worker->kept = bench_array((size_t)live * sizeof *worker->kept);
}

static uint64_t run(void) {
  bench_course_init(&course, threads);
  atomic_store(&running, threads);
  for (uint64_t i = 0; i < threads; i++) {
    make_worker(&workers[i], i);
    bench_thread(&workers[i].thread, work, &workers[i]);
  }
  uint64_t faults = bench_course_run(&course).faults;
  for (uint64_t i = 0; i < threads; i++)
    pthread_join(workers[i].thread, NULL);
  return faults;
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "rptest", "Take batches of blocks and pass a part to other threads.",
              options, sizeof options / sizeof *options, NULL);
  if (least > most)
    bench_stop(2, "--min must not exceed --max");
  uint64_t faults = run();
  uint64_t total_ns = 0;
  for (uint64_t i = 0; i < threads; i++) {
    total_ns += workers[i].elapsed_ns;
    for (uint64_t at = 0; at < live; at++)
      give_back(workers[i].kept[at]);
  }
  printf("{\"bench\":\"rptest\",\"mode\":\"%s\",\"threads\":%" PRIu64 ",\"loops\":%" PRIu64
         ",\"batch\":%" PRIu64 ",\"live\":%" PRIu64 ",\"backlog\":%" PRIu64 ",\"min\":%" PRIu64
         ",\"max\":%" PRIu64 ",\"size\":%" PRIu64 ",\"seed\":%" PRIu64
         ",\"ns_per_op\":%.3f,\"faults\":%" PRIu64 ",\"rss_peak_kib\":%" PRIu64
         ",\"rss_final_kib\":%" PRIu64 "}\n",
         mode == MODE_RANDOM ? "random" : "fixed", threads, loops, batch_size, live, backlog, least,
         most, fixed_size, seed,
         (double)total_ns / (double)loops / (double)batch_size / (double)threads, faults,
         bench_proc_kib(BENCH_STATUS, "VmHWM:"), bench_proc_kib(BENCH_STATUS, "VmRSS:"));
  return 0;
}
