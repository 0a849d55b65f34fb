/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making, emptying and ending arenas: what they leave behind, memory that is short at any step, and
 * where everything of an arena in a buffer lies.
 */
#include "lifetime.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "alloc.h"
#include "free.h"
#include "init.h"
#include "os.h"
#include "unit.h"
#include "weir.h"

#define MIB ((size_t)1 << 20)
#define ARENAS 40

static weir_arena_options_t plain(void) {
  return (weir_arena_options_t)WEIR_ARENA_OPTIONS_INIT;
}

static struct wr_arena *make(const weir_arena_options_t *options) {
  struct wr_arena *arena = NULL;
  ck_assert_int_eq(wr_lifetime_make(options, &arena), 0);
  return arena;
}

/* Pages of address space of this process. A stream would take a buffer from libc's malloc. */
static size_t pages(void) {
  char text[128] = "";
  int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0 || read(file, text, sizeof text - 1) <= 0)
    ck_abort_msg("no /proc/self/statm");
  (void)close(file);
  return strtoul(text, NULL, 10);
}

/* Has blocks of all kinds in an arena, and gives some of them back. */
static void use(struct wr_arena *arena, uint64_t seed) {
  for (int i = 0; i < 200; i++) {
    size_t size = unit_below(&seed, 6) == 0 ? unit_below(&seed, MIB) : unit_below(&seed, 5000);
    char *block = wr_alloc_take_in(arena, size);
    if (block == NULL)
      continue;
    /* Of large ones the first pages and the last byte: zeroing all of them would take most of the
     * time that these tests do. */
    memset(block, i, wr_bits_min(size, 5000));
    if (size > 0)
      block[size - 1] = (char)i;
    if (unit_below(&seed, 2) == 0)
      wr_free_give_in(arena, block);
  }
}

static void check(struct wr_arena *arena) {
  wr_span_check(&arena->spans);
  for (struct wr_heap *heap = wr_arena_heaps(arena); heap != NULL; heap = heap->next)
    wr_heap_check(heap);
}

/* If one page stayed in each round, that would be more than a leaf of the page map, which comes
 * once where the kernel has put a range elsewhere than it was asked to. */
START_TEST(what_ends_leaves_no_page) {
  enum { ROUNDS = 40 };
  size_t leaf = sizeof(struct wr_pagemap_leaf) / wr_os_page_size() + 1;
  weir_arena_options_t options = plain();
  size_t before = 0;
  options.prefault = MIB;
  for (int round = 0; round < ROUNDS; round++) {
    struct wr_arena *arena[ARENAS];
    for (int i = 0; i < ARENAS; i++) {
      arena[i] = make(i % 2 == 0 ? &options : &(weir_arena_options_t)WEIR_ARENA_OPTIONS_INIT);
      use(arena[i], (uint64_t)(round * ARENAS + i + 1));
      check(arena[i]);
    }
    for (int i = 0; i < ARENAS; i++)
      wr_lifetime_end(arena[(i * 7 + round) % ARENAS]);
    /* The first rounds make the process's page map and the thread's table. */
    if (round == 2)
      before = pages();
  }
  ck_assert_uint_le(pages(), before + leaf);
}
END_TEST

START_TEST(the_lowest_slot_that_is_free_is_taken) {
  weir_arena_options_t options = plain();
  struct wr_arena *arena[ARENAS];
  size_t slot;
  for (int i = 0; i < ARENAS; i++) {
    arena[i] = make(&options);
    ck_assert_uint_eq(arena[i]->slot, WR_ARENA_SLOT_FIRST + (size_t)i * WR_ARENA_SLOT_BYTES);
  }
  use(arena[17], 1);
  ck_assert(wr_heap_is_alive(wr_heap_in(arena[17])));
  slot = arena[17]->slot;
  wr_lifetime_end(arena[17]);
  arena[17] = make(&options);
  ck_assert_uint_eq(arena[17]->slot, slot);
  /* The former one's heap is nobody's. */
  ck_assert_ptr_eq(wr_heap_in(arena[17]), &wr_heap_unborn);
  use(arena[17], 1);
  for (int i = 0; i < ARENAS; i++)
    wr_lifetime_end(arena[i]);
}
END_TEST

/* Makes an arena with so much address space left to the process; its exit status tells. */
static void make_with_little(void *argument) {
  size_t left = *(size_t *)argument;
  struct rlimit limit = {0, 0};
  weir_arena_options_t options = plain();
  struct wr_arena *arena;
  size_t before;
  int error;
  options.prefault = 8 * MIB;
  wr_free_give(wr_alloc_take(1));
  before = pages();
  limit.rlim_cur = limit.rlim_max = before * (size_t)sysconf(_SC_PAGESIZE) + left;
  if (setrlimit(RLIMIT_AS, &limit) != 0)
    _exit(2);
  for (int i = 0; i < 3; i++) {
    error = wr_lifetime_make(&options, &arena);
    if (error != 0 && error != ENOMEM)
      _exit(3);
    if (error == 0)
      wr_lifetime_end(arena);
    /* The page map may have got a leaf and more. */
    if (i > 0 && pages() != before)
      _exit(4);
    before = pages();
  }
  _exit(error == 0 ? 1 : 0);
}

START_TEST(memory_may_be_short_at_every_step) {
  bool made = false;
  for (size_t left = 0; left <= 10 * MIB && !made; left += left < MIB ? 16384 : 262144) {
    int status = unit_child(make_with_little, &left, (char[100]){0}, 100);
    ck_assert(WIFEXITED(status));
    ck_assert_int_le(WEXITSTATUS(status), 1);
    made = WEXITSTATUS(status) == 1;
  }
  ck_assert(made);
}
END_TEST

START_TEST(a_limit_below_what_is_to_be_resident_is_refused) {
  weir_arena_options_t options = plain();
  struct wr_arena *arena = NULL;
  size_t least = 0;
  options.prefault = MIB;
  for (options.limit = 0; options.limit < 2 * MIB; options.limit += 4096) {
    int error = wr_lifetime_make(&options, &arena);
    if (error == 0)
      break;
    ck_assert_int_eq(error, EINVAL);
    least = options.limit;
  }
  ck_assert_ptr_nonnull(arena);
  ck_assert_uint_ge(least, MIB);
  ck_assert_uint_le(least, MIB + 65536);
  ck_assert_uint_le(wr_extent_committed(&arena->spans), options.limit);
  wr_lifetime_end(arena);
}
END_TEST

START_TEST(impossible_sizes_are_refused) {
  weir_arena_options_t options = plain();
  struct wr_arena *arena = NULL;
  options.prefault = SIZE_MAX;
  ck_assert_int_eq(wr_lifetime_make(&options, &arena), ENOMEM);
  options.prefault = SIZE_MAX - 4096;
  options.limit = SIZE_MAX - 1;
  ck_assert_int_eq(wr_lifetime_make(&options, &arena), ENOMEM);
  /* As large as a payload may be, and more than there is address space. */
  options.prefault = (size_t)1 << 46;
  ck_assert_int_eq(wr_lifetime_make(&options, &arena), ENOMEM);
  options.limit = MIB;
  ck_assert_int_eq(wr_lifetime_make(&options, &arena), EINVAL);
  ck_assert_ptr_null(arena);
}
END_TEST

START_TEST(a_name_is_cut_between_characters) {
  weir_arena_options_t options = plain();
  struct wr_arena *arena;
  char name[64];
  for (size_t lead = 0; lead < 40; lead++) {
    size_t kept;
    memset(name, 'a', lead);
    strcpy(name + lead, "\xc3\xa4\xe2\x82\xac");
    options.name = name;
    arena = make(&options);
    kept = strlen(arena->name);
    ck_assert_uint_lt(kept, sizeof arena->name);
    ck_assert_int_eq(strncmp(arena->name, name, kept), 0);
    ck_assert(kept == strlen(name) || (name[kept] & 0xc0) != 0x80);
    ck_assert_uint_ge(kept + 3, lead + 5 < 31 ? lead + 5 : 31);
    wr_lifetime_end(arena);
  }
}
END_TEST

START_TEST(emptying_makes_everything_free) {
  weir_arena_options_t options = plain();
  struct wr_arena *arena = make(&options);
  struct wr_snapshot snapshot;
  for (int round = 1; round < 30; round++) {
    use(arena, (uint64_t)round);
    wr_lifetime_reset(arena);
    check(arena);
    wr_snapshot_take(arena, &snapshot);
    ck_assert_uint_eq(snapshot.stats.live, 0);
    ck_assert_uint_eq(snapshot.stats.fragmented, 0);
    ck_assert_uint_eq(snapshot.stats.active, 0);
    ck_assert_uint_le(snapshot.stats.retained, snapshot.stats.mark);
  }
  wr_lifetime_end(arena);
}
END_TEST

START_TEST(a_buffer_holds_all_of_it) {
  static char room[(8 << 20) + 128];
  uint64_t seed = 5;
  for (int i = 0; i < 300; i++) {
    weir_arena_options_t options = plain();
    size_t least = wr_lifetime_buffer_min();
    size_t size = i < 128 ? least : least + unit_below(&seed, sizeof room - 128 - least);
    size_t lead = i < 128 ? (size_t)i : unit_below(&seed, 128);
    char *buffer = room + lead;
    struct wr_arena *arena;
    memset(room, 0x5a, lead + size + 1 < sizeof room ? lead + size + 1 : sizeof room);
    ck_assert_int_eq(wr_lifetime_make_in(buffer, least - 1, &options, &arena), EINVAL);
    ck_assert_int_eq(wr_lifetime_make_in(buffer, size, &options, &arena), 0);
    ck_assert((char *)arena >= buffer && (char *)(arena + 1) <= buffer + size);
    ck_assert(arena->range.base >= (char *)(arena + 1));
    ck_assert(arena->range.base + arena->range.length <= buffer + size);
    ck_assert_uint_ge(arena->range.length, 4096);
    ck_assert(arena->meta.next <= arena->meta.end && arena->meta.end <= arena->range.base);
    /* At most a unit is lost at each end, and a twentieth is for weir's own structures. */
    ck_assert_uint_ge(arena->range.length + 20480 + size / 20 + (2U << arena->range.shift), size);
    ck_assert_ptr_nonnull(wr_alloc_take_in(arena, 2048));
    use(arena, seed);
    check(arena);
    wr_lifetime_reset(arena);
    check(arena);
    for (size_t at = 0; at < lead; at++)
      ck_assert_int_eq(room[at], 0x5a);
    ck_assert_int_eq(room[lead + size], lead + size < sizeof room ? 0x5a : room[lead + size]);
    wr_lifetime_end(arena);
  }
}
END_TEST

static struct wr_arena *ending;
static _Atomic(bool) ended;

static void *end_in_thread(void *argument) {
  wr_lifetime_end(ending);
  atomic_store(&ended, true);
  return argument;
}

START_TEST(one_that_somebody_looks_at_does_not_end) {
  weir_arena_options_t options = plain();
  struct wr_arena *last;
  pthread_t thread;
  ending = make(&options);
  last = make(&options);
  wr_lock_take(&wr_arena_ends_lock);
  ck_assert_ptr_eq(wr_arena_next(0), ending);
  ck_assert_int_eq(pthread_create(&thread, NULL, end_in_thread, NULL), 0);
  for (int i = 0; i < 100; i++)
    wr_os_yield();
  ck_assert(!atomic_load(&ended));
  ck_assert_str_eq(ending->name, "");
  ck_assert_ptr_eq(wr_arena_next(ending->slot), last);
  ck_assert_ptr_null(wr_arena_next(last->slot));
  wr_lock_give(&wr_arena_ends_lock);
  pthread_join(thread, NULL);
  ck_assert_ptr_eq(wr_arena_next(0), last);
  wr_lifetime_end(last);
}
END_TEST

/* An arena comes before the default one has any memory, and something else lies where the hint was,
 * or where arenas lie: malloc's blocks are found in the first leaf of the page map all the same. */
static void come_first(size_t from, size_t length) {
  weir_arena_options_t options = plain();
  struct wr_arena *arena;
  char *start, *block;
  wr_init();
  if (wr_arena_default.spans.end == NULL)
    return;
  start = (char *)((uintptr_t)wr_arena_default.spans.end & -(uintptr_t)WR_PAGEMAP_LEAF_BYTES);
  ck_assert_ptr_eq(mmap(start + from, length, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0),
                   start + from);
  arena = make(&options);
  block = wr_alloc_take(100);
  ck_assert_ptr_nonnull(wr_alloc_take_in(arena, 100));
  ck_assert_ptr_eq(arena->range.base, (char *)~atomic_load(&wr_pagemap_first.not_base));
  ck_assert_uint_lt((uintptr_t)block - (uintptr_t)arena->range.base, WR_PAGEMAP_LEAF_BYTES);
  check(arena);
  wr_lifetime_end(arena);
}

START_TEST(the_first_leaf_is_the_default_arenas) {
  come_first(0, WR_PAGEMAP_LEAF_BYTES);
}
END_TEST

START_TEST(the_first_leaf_is_the_default_arenas_where_arenas_have_no_place) {
  come_first(WR_PAGEMAP_LEAF_BYTES / 4 * 3, WR_PAGEMAP_LEAF_BYTES / 4);
}
END_TEST

static void *use_all(void *argument) {
  struct wr_arena **arena = argument;
  for (int i = 0; i < ARENAS; i++)
    use(arena[i], (uint64_t)i + 1);
  return NULL;
}

START_TEST(a_threads_heaps_wait_for_the_next_thread) {
  weir_arena_options_t options = plain();
  struct wr_arena *arena[ARENAS];
  size_t meta = 0;
  for (int i = 0; i < ARENAS; i++)
    arena[i] = make(&options);
  for (int round = 0; round < 20; round++) {
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, use_all, arena), 0);
    pthread_join(thread, NULL);
    for (int i = 0; i < ARENAS; i++) {
      ck_assert_uint_eq(wr_counter_read(&arena[i]->heap_count), 1);
      ck_assert(!atomic_load(&wr_arena_heaps(arena[i])->attended));
      ck_assert_ptr_eq(arena[i]->idle, wr_arena_heaps(arena[i]));
      check(arena[i]);
    }
    if (round == 0)
      meta = wr_counter_read(&wr_arena_default.meta.used);
  }
  /* The tables of threads that have ended serve the next. The page map may have got nodes. */
  meta = (wr_counter_read(&wr_arena_default.meta.used) - meta) % sizeof(struct wr_pagemap_leaf);
  ck_assert_uint_le(meta, 2 * sizeof(struct wr_pagemap_middle));
  for (int i = 0; i < ARENAS; i++)
    wr_lifetime_end(arena[i]);
}
END_TEST

/* Their blocks are found as fast as the default arena's only there. */
START_TEST(they_keep_their_place_however_large_the_default_arena_gets) {
  enum { LARGE = 30 };
  void *large[LARGE], *first = weir_malloc(10);
  for (int i = 0; i < LARGE; i++)
    large[i] = weir_malloc(60 * MIB);
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < ARENAS; i++) {
      struct wr_arena *arena = make(&(weir_arena_options_t)WEIR_ARENA_OPTIONS_INIT);
      ck_assert_uint_eq((uintptr_t)wr_alloc_take_in(arena, 10) >> 30, (uintptr_t)first >> 30);
      wr_lifetime_end(arena);
    }
    for (int i = 0; i < LARGE && round == 0; i++)
      weir_free(large[i]);
    weir_trim(0);
  }
  weir_free(first);
}
END_TEST

UNIT_SUITE(lifetime, they_keep_their_place_however_large_the_default_arena_gets,
           the_first_leaf_is_the_default_arenas,
           the_first_leaf_is_the_default_arenas_where_arenas_have_no_place,
           what_ends_leaves_no_page, the_lowest_slot_that_is_free_is_taken,
           memory_may_be_short_at_every_step, a_limit_below_what_is_to_be_resident_is_refused,
           impossible_sizes_are_refused, a_name_is_cut_between_characters,
           emptying_makes_everything_free, a_buffer_holds_all_of_it,
           one_that_somebody_looks_at_does_not_end, a_threads_heaps_wait_for_the_next_thread)
