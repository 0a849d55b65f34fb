/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every entry point, with blocks of every size class, as the very first thing that a thread asks
 * of malloc, and as the very last: in the last round of its key destructors.
 */
#include "expect.h"

#include <pthread.h>

enum operation {
  DO_MALLOC,
  DO_CALLOC,
  DO_REALLOC_NULL,
  DO_REALLOCARRAY,
  DO_FREE,
  DO_FREE_NULL,
  DO_REALLOC,
  DO_REALLOC_ZERO,
  DO_POSIX_MEMALIGN,
  DO_ALIGNED_ALLOC,
  DO_MEMALIGN,
  DO_VALLOC,
  DO_PVALLOC,
  DO_USABLE,
  DO_FREE_SIZED,
  DO_TRIM,
  DO_MALLINFO,
  DO_MALLOPT,
  DO_REFUSED,
  OPERATIONS
};

struct act {
  enum operation operation;
  size_t size;
  void *given; /* a block of that size taken by the main thread, for what consumes one */
  void *taken; /* what the act took, for the main thread to free */
};

static pthread_key_t key;

static void *hidden_size(size_t size) {
  return expect_hide((void *)size);
}

static void *act_taking(const struct act *act) {
  void *block = NULL;
  size_t size = (size_t)hidden_size(act->size);

  switch (act->operation) {
  case DO_MALLOC:
    return malloc(size);
  case DO_CALLOC:
    return calloc(1, size);
  case DO_REALLOC_NULL:
    return realloc(NULL, size);
  case DO_REALLOCARRAY:
    return reallocarray(NULL, 1, size);
  case DO_REALLOC:
    return realloc(act->given, size * 2 + 1);
  case DO_POSIX_MEMALIGN:
    return posix_memalign(&block, 64, size) == 0 ? block : NULL;
  case DO_ALIGNED_ALLOC:
    return aligned_alloc(4096, size);
  case DO_MEMALIGN:
    return memalign(256, size);
  case DO_VALLOC:
    return valloc(size);
  default:
    return pvalloc(size);
  }
}

static void run_act(struct act *act) {
  void (*sized)(void *, size_t);

  switch (act->operation) {
  case DO_FREE:
    free(act->given);
    break;
  case DO_FREE_NULL:
    free(NULL);
    break;
  case DO_REALLOC_ZERO:
    EXPECT(realloc(act->given, (size_t)hidden_size(0)) == NULL, "realloc(p, 0)");
    break;
  case DO_USABLE:
    EXPECT(malloc_usable_size(act->given) >= act->size, "usable size");
    free(act->given);
    break;
  case DO_FREE_SIZED:
    sized = EXPECT_EXTRA(void (*)(void *, size_t), free_sized);
    if (sized != NULL) {
      sized(act->given, act->size);
    } else {
      free(act->given);
    }
    break;
  case DO_TRIM:
    malloc_trim(64 * EXPECT_MIB);
    break;
  case DO_MALLINFO:
    EXPECT(mallinfo2().arena < SIZE_MAX / 2, "mallinfo2");
    break;
  case DO_MALLOPT:
    EXPECT(mallopt(M_MMAP_THRESHOLD, 1 << 20) == 1, "mallopt");
    break;
  case DO_REFUSED:
    errno = 0;
    EXPECT(malloc(SIZE_MAX - (size_t)hidden_size(act->size)) == NULL && errno == ENOMEM,
           "malloc of too much");
    break;
  default:
    act->taken = expect_hide(act_taking(act));
    EXPECT(act->taken != NULL, "operation %d of %zu bytes", (int)act->operation, act->size);
    memset(act->taken, 0x77, act->size);
    EXPECT(malloc_usable_size(act->taken) >= act->size, "usable size");
  }
}

static bool consumes(enum operation operation) {
  return operation == DO_FREE || operation == DO_REALLOC || operation == DO_REALLOC_ZERO ||
         operation == DO_USABLE || operation == DO_FREE_SIZED;
}

static void *as_first(void *argument) {
  run_act((struct act *)argument);
  /* The thread goes on as any other after its odd start. */
  free(expect_hide(malloc(100)));
  return NULL;
}

/* Destructors may run in so many rounds; the last one is after whatever else the thread had. */
struct last {
  struct act act;
  size_t round;
};

static void destructor(void *value) {
  struct last *last = (struct last *)value;

  if (++last->round < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pthread_setspecific(key, value);
  } else {
    run_act(&last->act);
  }
}

static void *as_last(void *argument) {
  struct last *last = (struct last *)argument;

  if (last->act.size % 3 != 0)
    free(expect_hide(malloc(50)));
  pthread_setspecific(key, last);
  return NULL;
}

static void in_thread(void *(*body)(void *), void *argument, struct act *act) {
  pthread_t thread;

  if (consumes(act->operation)) {
    act->given = expect_hide(malloc(act->size));
    REQUIRE(act->given != NULL, "malloc");
  }
  REQUIRE(pthread_create(&thread, NULL, body, argument) == 0, "pthread_create");
  pthread_join(thread, NULL);
  free(act->taken);
}

static void one_size(size_t size) {
  int operation;

  for (operation = 0; operation < OPERATIONS; operation++) {
    struct act first = {(enum operation)operation, size, NULL, NULL};
    struct last last = {{(enum operation)operation, size, NULL, NULL}, 0};

    in_thread(as_first, &first, &first);
    in_thread(as_last, &last, &last.act);
  }
}

int main(void) {
  static const size_t payloads[] = {65537, 100000, 262144, 1048576, 3000000, 9437184};
  size_t size, step = 16, i, before, after;

  expect_start();
  pthread_key_create(&key, destructor);
  one_size(0);
  before = mallinfo2().uordblks + mallinfo2().hblkhd;
  /* The size classes: sixteen to a hundred and twenty-eight, then four a doubling. */
  for (size = 16; size <= 65536; size += size < 128 ? 16 : step) {
    step = 16;
    while (size >= 8 * step)
      step *= 2;
    one_size(size);
  }
  for (i = 0; i < EXPECT_COUNT(payloads); i++)
    one_size(payloads[i]);
  after = mallinfo2().uordblks + mallinfo2().hblkhd;
  EXPECT(!expect_strict() || after <= before + 65536, "threads left %zu bytes live",
         after - before);
  return expect_done();
}
