/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas in a process whose malloc is weir: their blocks go to free, realloc and
 * malloc_usable_size; a thousand of them come and go without leaving memory, mappings or
 * structures behind; threads end before, after and while an arena they used is destroyed, and use
 * arenas in the destructors of their data; and a process forks while four threads work in arenas.
 */
#include "arenas.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { THREADS = 4, WATCHDOG = 10, PATIENCE = 120 };
static const size_t sizes[] = {1, 16, 100, 1000, 5000, 40000, 65536, 65537, 200000, 1 << 20};

/* ---- free and its like ---- */

static void *free_it(void *block) {
  free(block);
  return NULL;
}

static void elsewhere(void *(*body)(void *), void *argument) {
  pthread_t thread;

  REQUIRE(pthread_create(&thread, NULL, body, argument) == 0, "pthread_create");
  pthread_join(thread, NULL);
}

static void given_to_libc(void) {
  static char buffer[8 << 20];
  weir_arena_t *all[] = {arena_make(), arena_make(), arena_make_in(buffer, sizeof buffer)};
  size_t i, k, round;

  for (round = 0; round < 3; round++) {
    for (i = 0; i < EXPECT_COUNT(all); i++) {
      for (k = 0; k < EXPECT_COUNT(sizes); k++) {
        void *block = expect_hide(arenas.alloc(all[i], sizes[k]));
        size_t usable = malloc_usable_size(block);
        REQUIRE(block != NULL, "weir_arena_alloc");
        EXPECT(usable == arenas.usable_size(all[i], block), "usable size of %zu", sizes[k]);
        expect_fill(block, sizes[k], k);
        block = expect_hide(realloc(block, sizes[k] * 2));
        REQUIRE(block != NULL, "realloc");
        EXPECT(arenas.of(block) == all[i], "realloc of %zu left the arena", sizes[k]);
        EXPECT(expect_holds(block, sizes[k], k), "realloc of %zu lost bytes", sizes[k]);
        block = expect_hide(reallocarray(block, sizes[k], 1));
        EXPECT(arenas.of(block) == all[i], "reallocarray of %zu left the arena", sizes[k]);
        if (round == 0)
          free(block);
        else if (round == 1)
          elsewhere(free_it, block);
        else
          EXPECT(realloc(block, 0) == NULL, "realloc to 0");
      }
      EXPECT(arena_now(all[i]).live == 0, "%llu bytes live",
             (unsigned long long)arena_now(all[i]).live);
    }
  }
  for (i = 0; i < EXPECT_COUNT(all); i++)
    arenas.destroy(all[i]);
}

/* Blocks of malloc go to the functions of arenas. */
static void taken_from_libc(void) {
  weir_arena_t *arena = arena_make();
  size_t k;

  for (k = 0; k < EXPECT_COUNT(sizes); k++) {
    void *block = expect_hide(malloc(sizes[k]));
    EXPECT(arenas.of(block) == NULL, "malloc's block is in an arena");
    EXPECT(arenas.usable_size(arena, block) == malloc_usable_size(block), "usable size");
    block = expect_hide(arenas.realloc(arena, block, sizes[k] * 3));
    EXPECT(arenas.of(block) == NULL, "malloc's block moved to an arena");
    arenas.free(arena, block);
  }
  EXPECT(arena_now(arena).live == 0, "blocks of malloc counted in an arena");
  arenas.destroy(arena);
}

/* ---- nothing stays ---- */

enum { MANY = 1000 };
static weir_arena_t *many[MANY];
static pthread_barrier_t barrier;

static size_t mappings(void) {
  static char text[1 << 16];
  size_t lines = 0;
  ssize_t got, i;
  int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

  while ((got = read(fd, text, sizeof text)) > 0) {
    for (i = 0; i < got; i++)
      lines += text[i] == '\n';
  }
  close(fd);
  return lines;
}

static void *use_many(void *argument) {
  size_t number = (size_t)(uintptr_t)argument, i;

  for (i = 0; i < MANY; i++) {
    weir_arena_t *arena = many[(i + number * 250) % MANY];
    void *small = arenas.alloc(arena, 100),
         *large = i % 10 == 0 ? arenas.alloc(arena, 70000) : NULL;
    REQUIRE(small != NULL, "weir_arena_alloc");
    memset(small, 1, 100);
    if (i % 3 == 0)
      free(small);
    if (i % 20 == 0)
      free(large);
  }
  /* All of them have a heap of the default arena at once, in the first round as in the last. */
  free(expect_hide(malloc(1000)));
  pthread_barrier_wait(&barrier);
  /* The arenas go here. */
  pthread_barrier_wait(&barrier);
  free(expect_hide(malloc(1000)));
  return NULL;
}

static void a_thousand_come_and_go(void) {
  size_t rss = 0, mapped = 0, round, i;
  weir_stats_t first = {0}, stats;

  pthread_barrier_init(&barrier, NULL, THREADS + 1);
  for (round = 0; round < 8; round++) {
    pthread_t threads[THREADS];
    for (i = 0; i < MANY; i++)
      many[i] = arena_make();
    for (i = 0; i < THREADS; i++)
      REQUIRE(pthread_create(&threads[i], NULL, use_many, (void *)i) == 0, "pthread_create");
    pthread_barrier_wait(&barrier);
    for (i = 0; i < MANY; i++)
      arenas.destroy(many[round % 2 == 0 ? i : MANY - 1 - i]);
    pthread_barrier_wait(&barrier);
    for (i = 0; i < THREADS; i++)
      pthread_join(threads[i], NULL);
    stats = arena_now(NULL);
    if (round == 1) {
      rss = expect_rss();
      mapped = mappings();
      first = stats;
    }
    /* A page or 16 bytes left by each arena would be more than this, and so would be a table left
     * by each thread; how many tables there are at once is for the scheduler to say. */
    if (round > 1) {
      EXPECT(expect_rss() <= rss + 512 * EXPECT_KIB, "round %zu: RSS %zu KiB became %zu", round,
             rss >> 10, expect_rss() >> 10);
      EXPECT(mappings() <= mapped + 2, "round %zu: %zu mappings became %zu", round, mapped,
             mappings());
      EXPECT(stats.meta <= first.meta + 32 * EXPECT_KIB, "round %zu: meta %llu became %llu", round,
             (unsigned long long)first.meta, (unsigned long long)stats.meta);
      EXPECT(stats.reserved <= first.reserved, "round %zu: reserved grew", round);
      EXPECT(stats.live <= first.live + 1024, "round %zu: live grew", round);
    }
  }
}

/* ---- threads that end ---- */

static weir_arena_t *shared;
static atomic_int used;

static void *use_and_end(void *unused) {
  void *blocks[50];
  size_t i;

  for (i = 0; i < EXPECT_COUNT(blocks); i++) {
    blocks[i] = arenas.alloc(shared, sizes[i % 9]);
    REQUIRE(blocks[i] != NULL, "weir_arena_alloc");
    *(volatile char *)blocks[i] = 1;
  }
  for (i = 0; i < EXPECT_COUNT(blocks); i += 2)
    free(blocks[i]);
  atomic_fetch_add(&used, 1);
  return unused;
}

/* The moment at which the threads end and that of the end of the arena meet in every way. */
static void end_while_destroyed(void) {
  static char buffer[8 << 20];
  size_t round, i;
  size_t rss = 0;

  /* Its pages are there before memory is counted. */
  memset(buffer, 1, sizeof buffer);
  for (round = 0; round < 600; round++) {
    pthread_t threads[THREADS];
    shared = round % 3 == 2 ? arena_make_in(buffer, sizeof buffer) : arena_make();
    atomic_store(&used, 0);
    for (i = 0; i < THREADS; i++)
      REQUIRE(pthread_create(&threads[i], NULL, use_and_end, NULL) == 0, "pthread_create");
    while (atomic_load(&used) < THREADS)
      sched_yield();
    for (i = 0; i < round % 7 * 20; i++)
      sched_yield();
    arenas.destroy(shared);
    if (round % 3 == 2)
      memset(buffer, 0xff, EXPECT_MIB);
    for (i = 0; i < THREADS; i++)
      pthread_join(threads[i], NULL);
    if (round == 99)
      rss = expect_rss();
  }
  EXPECT(expect_rss() <= rss + EXPECT_MIB, "RSS %zu KiB became %zu", rss >> 10, expect_rss() >> 10);
  shared = arena_make();
  use_and_end(NULL);
  arenas.destroy(shared);
}

/* One arena lives on, one is gone when the thread ends. */
static void *outlive(void *argument) {
  weir_arena_t *kept = argument;
  void *block = arenas.alloc(kept, 500);

  use_and_end(NULL);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  memset(block, 1, 500);
  free(block);
  return NULL;
}

static void end_after_destroy(void) {
  weir_arena_t *kept = arena_make();
  size_t round, i;

  pthread_barrier_init(&barrier, NULL, THREADS + 1);
  for (round = 0; round < 100; round++) {
    pthread_t threads[THREADS];
    shared = arena_make();
    for (i = 0; i < THREADS; i++)
      REQUIRE(pthread_create(&threads[i], NULL, outlive, kept) == 0, "pthread_create");
    pthread_barrier_wait(&barrier);
    arenas.destroy(shared);
    /* What comes next in its place must not be touched by the threads that end. */
    shared = arena_make();
    use_and_end(NULL);
    pthread_barrier_wait(&barrier);
    for (i = 0; i < THREADS; i++)
      pthread_join(threads[i], NULL);
    use_and_end(NULL);
    arenas.destroy(shared);
  }
  EXPECT(arena_now(kept).live == 0, "blocks are left");
  EXPECT(arena_now(kept).heaps <= 2 * THREADS, "%llu heaps",
         (unsigned long long)arena_now(kept).heaps);
  arenas.destroy(kept);
}

/* ---- destructors of a thread's own data: they run before and after weir's own ---- */

static pthread_key_t keys[2];
static atomic_int last_rounds;

static void destructor_of(pthread_key_t key, void *value) {
  size_t round = (size_t)(uintptr_t)value, i;
  void *blocks[40];

  for (i = 0; i < EXPECT_COUNT(blocks); i++) {
    blocks[i] = arenas.alloc(shared, sizes[i % 9] + round);
    REQUIRE(blocks[i] != NULL, "weir_arena_alloc in a destructor");
    *(volatile char *)blocks[i] = 1;
  }
  for (i = 0; i < EXPECT_COUNT(blocks); i++)
    free(blocks[i]);
  if (round < PTHREAD_DESTRUCTOR_ITERATIONS)
    pthread_setspecific(key, (void *)(round + 1));
  else
    atomic_fetch_add(&last_rounds, 1);
}

static void destructor_0(void *value) {
  destructor_of(keys[0], value);
}
static void destructor_1(void *value) {
  destructor_of(keys[1], value);
}

static void *tear(void *argument) {
  if (argument != NULL)
    use_and_end(NULL);
  pthread_setspecific(keys[0], (void *)1);
  pthread_setspecific(keys[1], (void *)1);
  return NULL;
}

static void in_destructors(void) {
  size_t round, rss = 0;

  pthread_key_create(&keys[0], destructor_0);
  pthread_key_create(&keys[1], destructor_1);
  for (round = 0; round < 300; round++) {
    shared = arena_make();
    elsewhere(tear, NULL);
    elsewhere(tear, &rss);
    elsewhere(tear, NULL);
    EXPECT(arena_now(shared).heaps <= 2, "a heap is left by each thread");
    arenas.destroy(shared);
    if (round == 50)
      rss = expect_rss();
  }
  EXPECT(atomic_load(&last_rounds) > 0, "no destructor ran its last round");
  EXPECT(expect_rss() <= rss + EXPECT_MIB, "RSS %zu KiB became %zu", rss >> 10, expect_rss() >> 10);
}

/* ---- fork ---- */

enum { WORKING = 4, INHERITED = 120 };
static weir_arena_t *working[WORKING];
static atomic_bool stop;
static void *inherited[INHERITED];

static void *work(void *argument) {
  uint64_t state = (uint64_t)(uintptr_t)argument;
  void *own[64] = {0};
  size_t i;

  while (!atomic_load(&stop)) {
    size_t place = (size_t)(next_random(&state) % EXPECT_COUNT(own));
    weir_arena_t *arena = working[next_random(&state) % WORKING];
    free(own[place]);
    own[place] = arenas.alloc(arena, next_random_size(&state, state % 9 == 0 ? 1 << 20 : 50000));
    if (own[place] != NULL)
      *(volatile char *)own[place] = 1;
    if (state % 1024 == 0)
      arenas.trim(arena, 0);
    if (state % 512 == 1) {
      weir_arena_t *brief = arena_make();
      free(arenas.alloc(brief, 1000));
      arenas.destroy(brief);
    }
    /* Four threads on two processors must let the children run now and then. */
    if (state % 32 == 1)
      usleep(500);
  }
  for (i = 0; i < EXPECT_COUNT(own); i++)
    free(own[i]);
  return NULL;
}

static void all_sizes(weir_arena_t *arena) {
  void *blocks[EXPECT_COUNT(sizes)];
  size_t k;

  for (k = 0; k < EXPECT_COUNT(sizes); k++) {
    blocks[k] = arenas.alloc(arena, sizes[k]);
    if (blocks[k] != NULL)
      memset(blocks[k], 5, sizes[k] < 200 ? sizes[k] : 200);
    else if (arena == NULL)
      _exit(20);
  }
  for (k = 0; k < EXPECT_COUNT(sizes); k++)
    free(blocks[k]);
}

static void *thread_in_child(void *unused) {
  size_t i;

  for (i = 0; i < WORKING; i++)
    all_sizes(working[i]);
  return unused;
}

static void child_life(size_t number) {
  weir_arena_t *own;
  size_t i;

  alarm(WATCHDOG);
  for (i = 0; i < WORKING; i++)
    all_sizes(working[i]);
  for (i = 0; i < INHERITED; i++) {
    if (!expect_holds(inherited[i], sizes[i % 9], i))
      _exit(21);
    if (arenas.of(inherited[i]) != working[i % WORKING])
      _exit(22);
    if (i % 2 == 0)
      free(inherited[i]);
    else
      arenas.free(working[i % WORKING], inherited[i]);
  }
  own = arena_make();
  all_sizes(own);
  elsewhere(thread_in_child, NULL);
  arenas.reset(working[number % WORKING]);
  all_sizes(working[number % WORKING]);
  arenas.destroy(working[(number + 1) % WORKING]);
  working[(number + 1) % WORKING] = own;
  elsewhere(thread_in_child, NULL);
  for (i = 0; i < WORKING; i++)
    arenas.destroy(working[i]);
  all_sizes(NULL);
  _exit(0);
}

static void fork_often(size_t times) {
  static char buffer[4 << 20];
  pthread_t threads[THREADS];
  size_t i;

  for (i = 0; i < WORKING; i++)
    working[i] = i == 3 ? arena_make_in(buffer, sizeof buffer) : arena_make();
  for (i = 0; i < INHERITED; i++) {
    inherited[i] = arenas.alloc(working[i % WORKING], sizes[i % 9]);
    REQUIRE(inherited[i] != NULL, "weir_arena_alloc");
    expect_fill(inherited[i], sizes[i % 9], i);
  }
  for (i = 0; i < THREADS; i++)
    REQUIRE(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0, "pthread_create");
  /* A fork that waits for a lock for ever fails the test, too; a child inherits no alarm. */
  alarm(PATIENCE);
  expect_forks(times, child_life);
  atomic_store(&stop, true);
  for (i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  for (i = 0; i < INHERITED; i++) {
    EXPECT(expect_holds(inherited[i], sizes[i % 9], i), "a child changed its parent's block");
    free(inherited[i]);
  }
  for (i = 0; i < WORKING; i++) {
    EXPECT(arena_now(working[i]).live == 0, "arena %zu: blocks are left", i);
    arenas.destroy(working[i]);
  }
}

static void forks(void) {
  fork_often(96);
}

static void forks_again(void) {
  fork_often(24);
}

int main(int argc, char **argv) {
  static const struct expect_case cases[] = {
      {"given_to_libc", given_to_libc, NULL},
      {"taken_from_libc", taken_from_libc, NULL},
      {"a_thousand_come_and_go", a_thousand_come_and_go, NULL},
      {"end_while_destroyed", end_while_destroyed, NULL},
      {"end_after_destroy", end_after_destroy, NULL},
      {"in_destructors", in_destructors, NULL},
      {"forks", forks, NULL},
      {"forks_again", forks_again, "WEIR_RETAIN=0"},
  };

  arenas_start();
  return expect_cases(cases, EXPECT_COUNT(cases), argc, argv);
}
