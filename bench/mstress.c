/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stress: threads take objects of which most are gone soon, some are kept until their thread ends,
 * and some are handed to whoever comes by, through slots that all threads share. After each
 * iteration all threads end and new ones begin, while part of the objects lives on. After mstress
 * of mimalloc-bench (Leijen, 2019), by its description: allocations that migrate between threads,
 * some with long lives, threads of unequal work, phases. A robot's node looks like that whenever an
 * executor is rebuilt or a lifecycle node is cleaned up and configured again: messages and
 * parameters outlive the threads that took them.
 *
 * Every byte of every object is written and later checked, so this is a test as much as a
 * benchmark. An operation is one object, taken, written, checked and freed; its time is the whole
 * run's, threads' beginnings and ends included, for each thread.
 */
#include "bench.h"

enum { MOST_THREADS = 256, SHARED = 1024, PASSING = 256, UNIT = 500 };

static uint64_t threads = 2, iterations = 60, scale = 30, seed = 1;

static const struct bench_option options[] = {
    {"threads", BENCH_COUNT, &threads, 1, MOST_THREADS, NULL, "threads at a time"},
    {"iterations", BENCH_COUNT, &iterations, 1, 1u << 24, NULL, "times all threads are replaced"},
    {"scale", BENCH_COUNT, &scale, 1, 1u << 14, NULL,
     "500 to 1000 objects a thread and iteration for each"},
    {"seed", BENCH_COUNT, &seed, 0, UINT64_MAX, NULL, "seed of the sizes and choices"},
};

/* Behind the header an object is filled with one byte, which is made from the cookie. */
struct object {
  uint64_t size;
  uint64_t cookie;
  unsigned char bytes[];
};

struct worker {
  pthread_t thread;
  uint64_t state;
  uint64_t objects; /* how many to take */
  struct object *passing[PASSING];
  struct object **kept;
  size_t kept_count;
};

static _Atomic(struct object *) shared[SHARED];
static struct worker workers[MOST_THREADS];

/* Mostly small; one in 128 is up to 16 KiB, and one in 2048 up to 256 KiB. */
static size_t object_size(uint64_t *state) {
  uint64_t draw = bench_random(state) >> 53;
  if (draw == 0)
    return bench_size(state, 16384, 262144, true);
  if (draw < 16)
    return bench_size(state, 1024, 16384, true);
  return bench_size(state, 16, 256, true);
}

static struct object *take(uint64_t *state) {
  size_t size = object_size(state);
  struct object *object = bench_take(size);
  object->size = size;
  object->cookie = bench_cookie(object, size);
  memset(object->bytes, (int)(object->cookie >> 56), size - sizeof *object);
  bench_keep(object);
  return object;
}

/* All bytes are the same if the first is right and each equals the one before; libc compares many
   at once. */
static bool is_whole(const struct object *object) {
  size_t filled = (size_t)object->size - sizeof *object;
  return filled == 0 || (object->bytes[0] == (unsigned char)(object->cookie >> 56) &&
                         memcmp(object->bytes, object->bytes + 1, filled - 1) == 0);
}

static void give_back(struct object *object) {
  if (object == NULL)
    return;
  if (object->cookie != bench_cookie(object, object->size))
    bench_stop(1, "the object at %p was overwritten while it was live", (void *)object);
  if (!is_whole(object))
    bench_stop(1, "the contents of the object at %p changed while it was live", (void *)object);
  object->cookie = 0;
  bench_keep(object);
  free(object);
}

/* Leave an object for another thread, and free what another thread left in its place. */
static void hand_over(uint64_t *state, struct object *object) {
  size_t slot = (size_t)(bench_random(state) % SHARED);
  give_back(atomic_exchange_explicit(&shared[slot], object, memory_order_acq_rel));
}

/* Of eight objects, one is kept, two change hands, and five pass by. */
static void step(struct worker *worker) {
  struct object *object = take(&worker->state);
  uint64_t draw = bench_random(&worker->state) >> 48;
  if (draw % 8 == 0) {
    worker->kept[worker->kept_count++] = object;
  } else if (draw % 8 <= 2) {
    hand_over(&worker->state, object);
  } else {
    size_t slot = (size_t)(draw / 8 % PASSING);
    give_back(worker->passing[slot]);
    worker->passing[slot] = object;
  }
}

/* The end of a thread: most of what it holds goes, one in four of the kept objects lives on. */
static void clear_out(struct worker *worker) {
  for (size_t i = 0; i < PASSING; i++) {
    give_back(worker->passing[i]);
    worker->passing[i] = NULL;
  }
  for (size_t i = 0; i < worker->kept_count; i++) {
    if (i % 4 == 0)
      hand_over(&worker->state, worker->kept[i]);
    else
      give_back(worker->kept[i]);
  }
  worker->kept_count = 0;
}

static void *work(void *argument) {
  struct worker *worker = argument;
  for (uint64_t i = 0; i < worker->objects; i++)
    step(worker);
  clear_out(worker);
  return NULL;
}

/* What no thread is left to free. Between iterations that is every other slot. */
static void clear_shared(size_t stride) {
  for (size_t i = 0; i < SHARED; i += stride)
    give_back(atomic_exchange_explicit(&shared[i], NULL, memory_order_acq_rel));
}

/* Threads have one to two times `scale` units of work, others in each iteration. */
static uint64_t work_of(uint64_t thread, uint64_t iteration) {
  return scale * UNIT * (4 + (thread * 3 + iteration) % 5) / 4;
}

static uint64_t iterate(uint64_t iteration) {
  uint64_t objects = 0;
  for (size_t i = 0; i < threads; i++) {
    workers[i].objects = work_of(i, iteration);
    objects += workers[i].objects;
    bench_thread(&workers[i].thread, work, &workers[i]);
  }
  for (size_t i = 0; i < threads; i++)
    pthread_join(workers[i].thread, NULL);
  clear_shared(2);
  return objects;
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "mstress",
              "Take, keep and exchange objects in threads that come and go; check every byte.",
              options, sizeof options / sizeof *options, NULL);
  for (size_t i = 0; i < threads; i++) {
    workers[i].state = bench_seed(seed + i);
    workers[i].kept = bench_array((size_t)scale * UNIT * 2 * sizeof *workers[i].kept);
  }
  uint64_t faults = bench_faults(RUSAGE_SELF), objects = 0;
  uint64_t start = bench_now();
  for (uint64_t i = 0; i < iterations; i++)
    objects += iterate(i);
  clear_shared(1);
  uint64_t elapsed_ns = bench_now() - start;
  faults = bench_faults(RUSAGE_SELF) - faults;
  printf("{\"bench\":\"mstress\",\"threads\":%" PRIu64 ",\"iterations\":%" PRIu64
         ",\"scale\":%" PRIu64 ",\"seed\":%" PRIu64 ",\"ops\":%" PRIu64
         ",\"ns_per_op\":%.3f,\"faults\":%" PRIu64 ",\"rss_peak_kib\":%" PRIu64
         ",\"rss_final_kib\":%" PRIu64 "}\n",
         threads, iterations, scale, seed, objects,
         (double)elapsed_ns * (double)threads / (double)objects, faults,
         bench_proc_kib(BENCH_STATUS, "VmHWM:"), bench_proc_kib(BENCH_STATUS, "VmRSS:"));
  return 0;
}
