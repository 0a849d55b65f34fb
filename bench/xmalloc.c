/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The asymmetric test of Lever and Boreham (malloc() Performance in a Multithreaded Linux
 * Environment, USENIX 2000; later known as xmalloc-test): some threads only allocate, others only
 * free. Blocks travel in batches through one queue that all threads share, so that any consumer may
 * get what any producer took, and memory flows in one direction only. That is how a node looks
 * whose driver threads deserialise messages and whose executor drops them. The size of a block is
 * one of a small set: two in each doubling.
 */
#include "bench.h"

/* What threads write lies two cache lines apart, because processors fetch lines in pairs. */
enum { MOST_THREADS = 128, MOST_SIZES = 64, APART = 128 };

static uint64_t producers = 1, consumers = 1, blocks = 1000000, batch_size = 120, depth = 64;
static uint64_t least = 16, most = 2048, seed = 1;

static const struct bench_option options[] = {
    {"producers", BENCH_COUNT, &producers, 1, MOST_THREADS, NULL, "threads that only allocate"},
    {"consumers", BENCH_COUNT, &consumers, 1, MOST_THREADS, NULL, "threads that only free"},
    {"blocks", BENCH_COUNT, &blocks, 1, (uint64_t)1 << 40, NULL, "blocks each producer takes"},
    {"batch", BENCH_COUNT, &batch_size, 1, 1u << 20, NULL, "blocks passed at a time"},
    {"depth", BENCH_COUNT, &depth, 1, 1u << 16, NULL, "batches that may lie in the queue"},
    {"min", BENCH_BYTES, &least, 8, 1u << 30, NULL, "smallest size"},
    {"max", BENCH_BYTES, &most, 8, 1u << 30, NULL, "largest size"},
    {"seed", BENCH_COUNT, &seed, 0, UINT64_MAX, NULL, "seed of the sizes"},
};

struct batch {
  struct batch *next;
  size_t count;
  uint64_t **blocks;
};

/* First in, first out. Whoever finds a list empty sleeps until half of the queue is there, because
   waking a thread for every batch would cost more than the batch. */
struct list {
  struct batch *first, **end;
  uint64_t length;
  uint64_t to_come; /* batches still to be put; with none left nobody need wait */
  pthread_cond_t enough;
};

struct queue {
  _Alignas(APART) pthread_mutex_t lock;
  struct list full, spare;
};

struct worker {
  _Alignas(APART) pthread_t thread;
  bool produces;
  uint64_t state;
};

static struct queue queue = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct bench_course course;
static size_t sizes[MOST_SIZES];
static size_t size_count;

/* ---- the queue ---- */

static void list_init(struct list *list, uint64_t to_come) {
  list->end = &list->first;
  list->to_come = to_come;
  pthread_cond_init(&list->enough, NULL);
}

static void append(struct list *list, struct batch *batch) {
  batch->next = NULL;
  *list->end = batch;
  list->end = &batch->next;
  list->length++;
}

/* At the half, and at the end, everyone who waits must look. */
static void put(struct list *list, struct batch *batch) {
  append(list, batch);
  list->to_come--;
  if (list->length == (depth + 1) / 2 || list->to_come == 0)
    pthread_cond_broadcast(&list->enough);
}

static struct batch *get(struct list *list) {
  if (list->length == 0)
    while (list->length < (depth + 1) / 2 && list->to_come > 0)
      pthread_cond_wait(&list->enough, &queue.lock);
  struct batch *batch = list->first;
  if (batch == NULL)
    return NULL;
  list->first = batch->next;
  if (list->first == NULL)
    list->end = &list->first;
  list->length--;
  return batch;
}

/* Give a batch, if there is one, and get the next, which is NULL when all are done. */
static struct batch *swap(struct list *give, struct batch *mine, struct list *from) {
  pthread_mutex_lock(&queue.lock);
  if (mine != NULL)
    put(give, mine);
  struct batch *next = from != NULL ? get(from) : NULL;
  pthread_mutex_unlock(&queue.lock);
  return next;
}

/* One batch for every place in the queue and one for every thread's hands. */
static void make_queue(void) {
  uint64_t total = producers * ((blocks + batch_size - 1) / batch_size);
  uint64_t count = depth + producers + consumers;
  struct batch *batches = bench_array((size_t)count * sizeof *batches);
  uint64_t **slots = bench_array((size_t)(count * batch_size) * sizeof *slots);
  list_init(&queue.full, total);
  list_init(&queue.spare, total);
  for (uint64_t i = 0; i < count; i++) {
    batches[i].blocks = slots + i * batch_size;
    append(&queue.spare, &batches[i]);
  }
}

/* ---- the blocks ---- */

/* The least, then alternately half as much again and a third more, which is twice the one before.
 */
static void make_sizes(void) {
  uint64_t size = least;
  for (bool odd = true; size <= most; odd = !odd) {
    sizes[size_count++] = (size_t)size;
    size = odd ? size + size / 2 : size + size / 3;
  }
}

static void fill(struct batch *batch, size_t count, uint64_t *state) {
  batch->count = count;
  for (size_t i = 0; i < count; i++)
    batch->blocks[i] = bench_take_sealed(sizes[((bench_random(state) >> 32) * size_count) >> 32]);
}

static void empty(struct batch *batch) {
  for (size_t i = 0; i < batch->count; i++)
    bench_free_sealed(batch->blocks[i], least, most);
}

/* ---- the threads ---- */

static void produce(struct worker *worker) {
  struct batch *batch = NULL;
  for (uint64_t left = blocks; left > 0; left -= batch->count) {
    batch = swap(&queue.full, batch, &queue.spare);
    fill(batch, (size_t)(left < batch_size ? left : batch_size), &worker->state);
  }
  swap(&queue.full, batch, NULL);
}

static void consume(void) {
  struct batch *batch = NULL;
  while ((batch = swap(&queue.spare, batch, &queue.full)) != NULL)
    empty(batch);
}

static void *work(void *argument) {
  struct worker *worker = argument;
  bench_course_enter(&course);
  if (worker->produces)
    produce(worker);
  else
    consume();
  bench_course_leave(&course);
  return NULL;
}

static void start(struct worker *workers, uint64_t count) {
  bench_course_init(&course, count);
  for (uint64_t i = 0; i < count; i++) {
    workers[i].produces = i < producers;
    workers[i].state = bench_seed(seed + i);
    bench_thread(&workers[i].thread, work, &workers[i]);
  }
}

/* The wall time is until the last block is freed. */
static struct bench_measured run(void) {
  static struct worker workers[2 * MOST_THREADS];
  uint64_t count = producers + consumers;
  start(workers, count);
  struct bench_measured measured = bench_course_run(&course);
  for (uint64_t i = 0; i < count; i++)
    pthread_join(workers[i].thread, NULL);
  return measured;
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "xmalloc", "Take batches of blocks in some threads, free them in others.",
              options, sizeof options / sizeof *options, NULL);
  if (least > most)
    bench_stop(2, "--min must not exceed --max");
  make_sizes();
  make_queue();
  struct bench_measured measured = run();
  /* Producers work side by side, so the time for one block of one producer is the figure. */
  printf("{\"bench\":\"xmalloc\",\"producers\":%" PRIu64 ",\"consumers\":%" PRIu64
         ",\"blocks\":%" PRIu64 ",\"batch\":%" PRIu64 ",\"depth\":%" PRIu64 ",\"min\":%" PRIu64
         ",\"max\":%" PRIu64 ",\"seed\":%" PRIu64 ",\"ns_per_op\":%.3f,\"faults\":%" PRIu64
         ",\"rss_peak_kib\":%" PRIu64 ",\"rss_final_kib\":%" PRIu64 "}\n",
         producers, consumers, blocks, batch_size, depth, least, most, seed,
         (double)measured.ns / (double)blocks, measured.faults,
         bench_proc_kib(BENCH_STATUS, "VmHWM:"), bench_proc_kib(BENCH_STATUS, "VmRSS:"));
  return 0;
}
