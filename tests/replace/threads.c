/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that hand blocks to each other: contents that each block carries and whoever frees it
 * checks, blocks that outlive the thread that took them, a ring of threads, realloc in another
 * thread, and a consumer that only frees beside producers that only take, whose resident set
 * must stay near what is live.
 */
#include "expect.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { THREADS = 4 };

/* Every block begins with its size and is filled with a pattern that this size and a cookie give.
 */
struct object {
  size_t size;
  uint64_t cookie;
};

static struct object *make(size_t size, uint64_t cookie) {
  struct object *object;

  if (size < sizeof *object)
    size = sizeof *object;
  object = expect_hide(malloc(size));
  REQUIRE(object != NULL, "malloc(%zu)", size);
  object->size = size;
  object->cookie = cookie;
  expect_fill(object + 1, size - sizeof *object, cookie);
  return object;
}

static void check(const struct object *object) {
  REQUIRE(object->size <= malloc_usable_size((void *)(uintptr_t)object), "a block lost its size");
  REQUIRE(expect_holds(object + 1, object->size - sizeof *object, object->cookie),
          "a block of %zu lost its contents", object->size);
}

static void destroy(struct object *object) {
  if (object == NULL)
    return;
  check(object);
  free(object);
}

/* Slots that all threads swap blocks in and out of. */
enum { SLOTS = 1000 };
static _Atomic(struct object *) slots[SLOTS];

static void *swapper(void *argument) {
  uint64_t state = (uint64_t)(uintptr_t)argument;
  struct object *own[100] = {0};
  size_t i;

  for (i = 0; i < 8000; i++) {
    uint64_t dice = next_random(&state);
    size_t limit = dice % 100 == 0 ? EXPECT_MIB : dice % 10 == 0 ? 50000 : 2000;
    struct object *fresh = make(next_random_size(&state, limit), state);
    size_t mine = (size_t)(next_random(&state) % EXPECT_COUNT(own));

    if (dice & 0x1000) {
      destroy(own[mine]);
      own[mine] = fresh;
    } else {
      destroy(atomic_exchange(&slots[next_random(&state) % SLOTS], fresh));
    }
    if (i % 64 == 0 && own[mine] != NULL) {
      size_t size = own[mine]->size + 1000;
      struct object *grown;
      check(own[mine]);
      grown = expect_hide(realloc(own[mine], size));
      REQUIRE(grown != NULL, "realloc");
      grown->size = size;
      expect_fill(grown + 1, size - sizeof *grown, grown->cookie);
      own[mine] = grown;
    }
  }
  for (i = 0; i < EXPECT_COUNT(own); i++)
    destroy(own[i]);
  return NULL;
}

/* The blocks in the slots outlive six generations of threads. */
static void generations(void) {
  size_t round, i;

  for (round = 0; round < 6; round++) {
    pthread_t threads[THREADS];
    for (i = 0; i < THREADS; i++) {
      REQUIRE(pthread_create(&threads[i], NULL, swapper, (void *)(round * 10 + i + 1)) == 0,
              "pthread_create");
    }
    for (i = 0; i < THREADS; i++)
      pthread_join(threads[i], NULL);
  }
  for (i = 0; i < SLOTS; i++)
    destroy(atomic_exchange(&slots[i], NULL));
}

/* A ring: each thread grows or replaces what it gets and passes it on. */
enum { LAPS = 3000 };
static _Atomic(struct object *) ring[THREADS];

static void *runner(void *argument) {
  size_t self = (size_t)(uintptr_t)argument;
  uint64_t state = self + 100;
  size_t lap;

  for (lap = 0; lap < LAPS; lap++) {
    struct object *object, *next, *nobody;

    while ((object = atomic_exchange(&ring[self], NULL)) == NULL)
      sched_yield();
    check(object);
    if (lap % 3 == 0) {
      /* The block of one thread, resized by another. */
      size_t size = sizeof *object + next_random_size(&state, lap % 90 == 0 ? EXPECT_MIB : 9000);
      next = expect_hide(realloc(object, size));
      REQUIRE(next != NULL, "realloc");
      next->size = size;
      expect_fill(next + 1, size - sizeof *next, next->cookie);
    } else {
      next = make(next_random_size(&state, 5000), state);
      destroy(object);
    }
    do {
      nobody = NULL;
      if (atomic_compare_exchange_weak(&ring[(self + 1) % THREADS], &nobody, next))
        break;
      sched_yield();
    } while (true);
  }
  return NULL;
}

static void rings(void) {
  pthread_t threads[THREADS];
  size_t i;

  /* Half as many blocks as places, so that there is always one to pass and a place to put it. */
  for (i = 0; i < THREADS; i += 2)
    atomic_store(&ring[i], make(100, i));
  for (i = 0; i < THREADS; i++) {
    REQUIRE(pthread_create(&threads[i], NULL, runner, (void *)i) == 0, "pthread_create");
  }
  for (i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  for (i = 0; i < THREADS; i++)
    destroy(atomic_exchange(&ring[i], NULL));
}

/* Producers only take, one consumer only frees; each producer's lane limits what it has live. */
enum { PRODUCERS = 8, LANE_MAX = 8192, BATCH = 16 };
struct lane {
  pthread_mutex_t lock;
  pthread_cond_t room;
  size_t head, tail;
  void *blocks[LANE_MAX];
};
static struct lane lanes[PRODUCERS];
static size_t lane_bound, block_size, blocks_each;

static void *producer(void *argument) {
  struct lane *lane = (struct lane *)argument;
  size_t done, i;

  for (done = 0; done < blocks_each; done += BATCH) {
    pthread_mutex_lock(&lane->lock);
    /* Room first: the live set never exceeds the bound, not even by what is being filled. */
    while (lane->head - lane->tail + BATCH > lane_bound) {
      pthread_cond_wait(&lane->room, &lane->lock);
    }
    for (i = 0; i < BATCH; i++) {
      void *block = expect_hide(malloc(block_size));
      REQUIRE(block != NULL, "malloc");
      expect_touch(block, block_size);
      lane->blocks[lane->head++ % LANE_MAX] = block;
    }
    pthread_mutex_unlock(&lane->lock);
  }
  return NULL;
}

/* Free up to a batch of the oldest blocks of a lane; returns how many. */
static size_t consume(struct lane *lane) {
  void *batch[BATCH];
  size_t count = 0, i;

  pthread_mutex_lock(&lane->lock);
  while (count < BATCH && lane->tail < lane->head) {
    batch[count++] = lane->blocks[lane->tail++ % LANE_MAX];
  }
  pthread_mutex_unlock(&lane->lock);
  for (i = 0; i < count; i++)
    free(batch[i]);
  pthread_cond_signal(&lane->room);
  return count;
}

static void *consumer(void *argument) {
  size_t *peak = (size_t *)argument;
  size_t left = PRODUCERS * blocks_each;
  size_t looked = left;

  while (left > 0) {
    size_t count = 0, i;

    for (i = 0; i < PRODUCERS; i++)
      count += consume(&lanes[i]);
    if (count == 0)
      sched_yield();
    left -= count;
    if (looked - left >= PRODUCERS * blocks_each / 40) {
      size_t rss = expect_rss();
      if (rss > *peak)
        *peak = rss;
      looked = left;
    }
  }
  return NULL;
}

static void only_frees(size_t size, size_t bound, size_t each) {
  pthread_t threads[PRODUCERS + 1];
  size_t before, peak = 0, live, i;

  malloc_trim(0);
  memset(lanes, 0, sizeof lanes);
  lane_bound = bound / PRODUCERS;
  block_size = size;
  blocks_each = each;
  for (i = 0; i < PRODUCERS; i++) {
    pthread_mutex_init(&lanes[i].lock, NULL);
    pthread_cond_init(&lanes[i].room, NULL);
  }
  before = expect_rss();
  REQUIRE(pthread_create(&threads[PRODUCERS], NULL, consumer, &peak) == 0, "pthread_create");
  for (i = 0; i < PRODUCERS; i++) {
    REQUIRE(pthread_create(&threads[i], NULL, producer, &lanes[i]) == 0, "pthread_create");
  }
  for (i = 0; i <= PRODUCERS; i++)
    pthread_join(threads[i], NULL);
  live = bound * size;
  /* A little for the stacks and heaps of nine threads. */
  EXPECT(peak <= before + live + live * 3 / 10 + 4 * EXPECT_MIB,
         "blocks of %zu: %zu KiB live at most, %zu KiB resident", size, live >> 10,
         (peak - before) >> 10);
}

static void consumer_small(void) {
  only_frees(592, 65536, 60000);
}
static void consumer_payload(void) {
  only_frees(EXPECT_MIB / 4, 256, 640);
}

int main(int argc, char **argv) {
  static const struct expect_case cases[] = {
      {"generations", generations, NULL},
      {"ring", rings, NULL},
      {"consumer_small", consumer_small, NULL},
      {"consumer_payload", consumer_payload, NULL},
  };

  return expect_cases(cases, EXPECT_COUNT(cases), argc, argv);
}
