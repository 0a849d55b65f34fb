/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk allocation of many mixed small sizes, of the kind of MicroQuill's SmartHeap benchmarks as
 * manuals and papers on allocators describe them. Each round takes a group of blocks, small ones
 * most often, and frees a quarter of it in order, a quarter in reverse, and every other block of
 * the rest; what is left survives, some groups for two rounds, some for many. In the kind sh6 a
 * thread frees all that it took. In the kind sh8 the survivors lie on a board that all threads
 * share, and a thread frees whatever group was there before its own, mostly one of another thread.
 * A node that builds and drops trees of messages, parameters and transforms does this, and with an
 * executor of several threads it is the second kind.
 */
#include "bench.h"

#include <sched.h>

enum { KIND_SH6, KIND_SH8, MOST_THREADS = 256, MOST_KEEP = 32, TABLE = 4096 };
enum { AHEAD = 4, APART = 128 };

static uint64_t kind = KIND_SH6, threads = 2, rounds = 400, group_size = 4000, keep = 6;
static uint64_t least = 1, most = 1000, seed = 1;

static const struct bench_option options[] = {
    {"kind", BENCH_WORD, &kind, 0, 0, "sh6|sh8",
     "threads free their own survivors, or their neighbour's (default sh6)"},
    {"threads", BENCH_COUNT, &threads, 1, MOST_THREADS, NULL, "threads"},
    {"rounds", BENCH_COUNT, &rounds, 1, (uint64_t)1 << 40, NULL, "groups each thread takes"},
    {"group", BENCH_COUNT, &group_size, 8, 1u << 24, NULL, "blocks of a group"},
    {"keep", BENCH_COUNT, &keep, 1, MOST_KEEP, NULL,
     "places for survivors; each keeps them twice as long as the last"},
    {"min", BENCH_BYTES, &least, 1, 1u << 24, NULL, "smallest size"},
    {"max", BENCH_BYTES, &most, 1, 1u << 24, NULL, "largest size, each doubling equally likely"},
    {"seed", BENCH_COUNT, &seed, 0, UINT64_MAX, NULL, "seed of the sizes"},
};

/* Blocks may be of one byte, so what to expect in them is kept here. */
struct item {
  unsigned char *block;
  uint32_t size;
  uint32_t mark;
};

struct group {
  struct item *items;
  bool survivors;
};

/* From one thread to the next. It begins with AHEAD groups that are empty, so that threads need not
   march in step, and has room for all groups that could ever be in it. */
struct passage {
  struct group **slots;
  uint64_t room;
  uint64_t received; /* the receiver's */
  _Alignas(APART) _Atomic uint64_t sent;
};

struct worker {
  _Alignas(APART) pthread_t thread;
  struct group *group;
  struct group *places[MOST_KEEP];
  struct passage *to, *from;
  const uint32_t *sizes; /* drawn beforehand, because a draw costs as much as a fast malloc */
  uint64_t taken;
  uint64_t elapsed_ns;
};

static struct worker workers[MOST_THREADS];
static struct passage passages[MOST_THREADS];
static struct bench_course course;

/* ---- blocks ---- */

/* The mark differs from one block to the next, so a block handed out twice shows. */
static void take(struct worker *worker, struct item *item) {
  uint64_t serial = worker->taken++;
  item->size = worker->sizes[serial % TABLE];
  item->mark = (uint32_t)(serial + (uint64_t)(worker - workers) * 85);
  item->block = bench_take(item->size);
  item->block[0] = (unsigned char)item->mark;
  item->block[item->size - 1] = (unsigned char)item->mark;
}

static void give_back(struct item *item) {
  unsigned char *block = item->block, mark = (unsigned char)item->mark;
  if (block[0] != mark || block[item->size - 1] != mark)
    bench_stop(1, "the block at %p was overwritten while it was live", (void *)block);
  free(block);
}

/* ---- groups ---- */

static void take_group(struct worker *worker) {
  struct group *group = worker->group;
  for (uint64_t i = 0; i < group_size; i++)
    take(worker, &group->items[i]);
  group->survivors = true;
}

/* A quarter in order, a quarter in reverse, and the even ones of the rest. */
static void thin_out(struct group *group) {
  uint64_t quarter = group_size / 4, half = 2 * quarter;
  for (uint64_t i = 0; i < quarter; i++)
    give_back(&group->items[i]);
  for (uint64_t i = half; i-- > quarter;)
    give_back(&group->items[i]);
  for (uint64_t i = half; i < group_size; i += 2)
    give_back(&group->items[i]);
}

static void drop_survivors(struct group *group) {
  if (!group->survivors)
    return;
  for (uint64_t i = group_size / 4 * 2 + 1; i < group_size; i += 2)
    give_back(&group->items[i]);
  group->survivors = false;
}

/* ---- between threads ---- */

static void send(struct passage *passage, struct group *group) {
  uint64_t sent = atomic_load_explicit(&passage->sent, memory_order_relaxed);
  passage->slots[sent % passage->room] = group;
  atomic_store_explicit(&passage->sent, sent + 1, memory_order_release);
}

/* One that is ahead of the thread before it waits. */
static struct group *receive(struct passage *passage) {
  while (atomic_load_explicit(&passage->sent, memory_order_acquire) == passage->received)
    sched_yield();
  return passage->slots[passage->received++ % passage->room];
}

/* Every second round uses the first place, every fourth the second, and so on: the later the place,
   the longer its group lives. */
static void one_round(struct worker *worker, uint64_t round) {
  struct group **place = &worker->places[(uint64_t)__builtin_ctzll(round + 1) % keep];
  take_group(worker);
  thin_out(worker->group);
  if (kind == KIND_SH8) {
    send(worker->to, worker->group);
    worker->group = receive(worker->from);
  }
  struct group *old = *place;
  *place = worker->group;
  drop_survivors(old);
  worker->group = old;
}

static void *work(void *argument) {
  struct worker *worker = argument;
  bench_course_enter(&course);
  uint64_t start = bench_now();
  for (uint64_t round = 0; round < rounds; round++)
    one_round(worker, round);
  worker->elapsed_ns = bench_now() - start;
  bench_course_leave(&course);
  return NULL;
}

/* ---- setting up and ending ---- */

static struct group *make_group(void) {
  struct group *group = bench_array(sizeof *group);
  group->items = bench_array((size_t)group_size * sizeof *group->items);
  return group;
}

/* Each thread sends once for each time it receives, so it can be ahead of the one before it by
   AHEAD and one rounds, and of the one behind it by that much for each of the others. */
static void make_passage(struct passage *passage) {
  passage->room = (AHEAD + 1) * (threads + 1);
  passage->slots = bench_array((size_t)passage->room * sizeof *passage->slots);
  for (int i = 0; i < AHEAD; i++)
    send(passage, make_group());
}

static const uint32_t *make_sizes(uint64_t state) {
  uint32_t *sizes = bench_array(TABLE * sizeof *sizes);
  for (size_t i = 0; i < TABLE; i++)
    sizes[i] = (uint32_t)bench_size(&state, (size_t)least, (size_t)most, true);
  return sizes;
}

static void make_worker(uint64_t number) {
  struct worker *worker = &workers[number];
  worker->group = make_group();
  worker->sizes = make_sizes(bench_seed(seed + number));
  for (uint64_t i = 0; i < keep; i++)
    worker->places[i] = make_group();
  worker->to = &passages[number];
  worker->from = &passages[(number + threads - 1) % threads];
  if (kind == KIND_SH8)
    make_passage(worker->to);
}

static void drop_all(struct worker *worker) {
  for (uint64_t i = 0; i < keep; i++)
    drop_survivors(worker->places[i]);
  for (struct passage *from = worker->from; from->received < atomic_load(&from->sent);)
    drop_survivors(receive(from));
}

static uint64_t run(void) {
  bench_course_init(&course, threads);
  for (uint64_t i = 0; i < threads; i++)
    make_worker(i);
  for (uint64_t i = 0; i < threads; i++)
    bench_thread(&workers[i].thread, work, &workers[i]);
  uint64_t faults = bench_course_run(&course).faults;
  for (uint64_t i = 0; i < threads; i++)
    pthread_join(workers[i].thread, NULL);
  return faults;
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "shbench", "Take and free groups of blocks of many small sizes.", options,
              sizeof options / sizeof *options, NULL);
  if (least > most)
    bench_stop(2, "--min must not exceed --max");
  uint64_t faults = run();
  uint64_t total_ns = 0;
  for (uint64_t i = 0; i < threads; i++) {
    total_ns += workers[i].elapsed_ns;
    drop_all(&workers[i]);
  }
  printf("{\"bench\":\"shbench\",\"kind\":\"%s\",\"threads\":%" PRIu64 ",\"rounds\":%" PRIu64
         ",\"group\":%" PRIu64 ",\"keep\":%" PRIu64 ",\"min\":%" PRIu64 ",\"max\":%" PRIu64
         ",\"seed\":%" PRIu64 ",\"ns_per_op\":%.3f,\"faults\":%" PRIu64 ",\"rss_peak_kib\":%" PRIu64
         ",\"rss_final_kib\":%" PRIu64 "}\n",
         kind == KIND_SH6 ? "sh6" : "sh8", threads, rounds, group_size, keep, least, most, seed,
         (double)total_ns / (double)rounds / (double)threads / (double)group_size, faults,
         bench_proc_kib(BENCH_STATUS, "VmHWM:"), bench_proc_kib(BENCH_STATUS, "VmRSS:"));
  return 0;
}
