/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/rcutils.h as its users have it: rcutils_allocator_t structures over several arenas, copied
 * and thrown away at random, whose blocks go back through each other; the contract of
 * rcutils/allocator.h; and rcutils' own functions that take one.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <rcutils/types/rcutils_ret.h>
#include <rcutils/types/array_list.h>
#include <rcutils/types/string_array.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <weir/rcutils.h>

/* Declares the same functions without rcutils: the compiler finds out when they differ. */
#include "adapter/rcutils.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

enum { ARENAS = 4, HOLDERS = 12, SLOTS = 300 };

static uint64_t live(weir_arena_t *arena) {
  weir_stats_t stats;
  weir_arena_stats(arena, &stats, sizeof stats);
  return stats.live;
}

static weir_arena_t *make(const char *name, size_t limit) {
  weir_arena_options_t options = WEIR_ARENA_OPTIONS_INIT;
  weir_arena_t *arena;
  options.name = name;
  options.limit = limit;
  arena = weir_arena_create(&options);
  ck_assert_ptr_nonnull(arena);
  return arena;
}

/* ---- random sequences ---- */

/* Check writes a line for every assertion that it makes, which is too slow for a million of them.
 */
#define MUST(condition) \
  do { \
    if (!(condition)) \
      ck_abort_msg("not so: %s", #condition); \
  } while (0)

static uint64_t seed;

static size_t below(size_t limit) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (size_t)(seed % limit);
}

/* Small ones as likely as large ones, and now and then none. */
static size_t random_size(void) {
  size_t size = below((size_t)1 << below(19));
  return below(50) == 0 ? 0 : size;
}

static void fill(unsigned char *bytes, size_t size, unsigned tag) {
  for (size_t i = 0; i < size; i++)
    bytes[i] = (unsigned char)(tag + i * 7);
}

static bool holds(const unsigned char *bytes, size_t size, unsigned tag) {
  for (size_t i = 0; i < size; i++)
    if (bytes[i] != (unsigned char)(tag + i * 7))
      return false;
  return true;
}

/* The first is the default one; the last lies in a buffer, and is the only one that may be full. */
static weir_arena_t *arenas[ARENAS];
static uint64_t live_before[ARENAS];
static rcutils_allocator_t *holder[HOLDERS];

static struct slot {
  unsigned char *block;
  size_t size;
  unsigned tag;
  weir_arena_t *arena;
} slots[SLOTS];

/* A structure dies where it was, overwritten; a copy of it or of another has taken its place. */
static void renew_holder(size_t i) {
  rcutils_allocator_t *old = holder[i];
  const rcutils_allocator_t *other = holder[below(HOLDERS)];
  holder[i] = malloc(sizeof *holder[i]);
  *holder[i] = below(3) == 0 ? weir_rcutils_allocator(arenas[below(ARENAS)]) : *other;
  memset(old, 0xee, sizeof *old);
  free(old);
}

static void begin_random(uint64_t number) {
  static unsigned char buffer[2 << 20];
  seed = number * 0x9e3779b97f4a7c15u + 1;
  arenas[1] = make("one", WEIR_LIMIT_NONE);
  arenas[2] = make("two", WEIR_LIMIT_NONE);
  arenas[3] = weir_arena_create_in(buffer + number % 64, sizeof buffer - 64, NULL);
  ck_assert_ptr_nonnull(arenas[3]);
  for (size_t i = 0; i < HOLDERS; i++) {
    holder[i] = malloc(sizeof *holder[i]);
    *holder[i] = weir_rcutils_allocator(arenas[i % ARENAS]);
  }
  for (size_t i = 0; i < ARENAS; i++)
    live_before[i] = live(arenas[i]);
}

static void put(struct slot *slot, void *block, size_t size, weir_arena_t *arena) {
  slot->block = block;
  slot->size = block != NULL ? size : 0;
  slot->arena = arena;
  slot->tag = (unsigned)below(256);
  if (block == NULL) {
    MUST(arena == arenas[ARENAS - 1]);
    return;
  }
  MUST((uintptr_t)block % 16 == 0);
  MUST(weir_usable_size(block) >= size);
  MUST(weir_arena_of(block) == arena);
  fill(block, size, slot->tag);
}

static void take_one(struct slot *slot, const rcutils_allocator_t *through) {
  size_t size = random_size();
  put(slot, through->allocate(size, through->state), size, through->state);
}

static void take_zeroed(struct slot *slot, const rcutils_allocator_t *through) {
  size_t count = below(40), size = random_size() / 16;
  unsigned char *block = through->zero_allocate(count, size, through->state);
  for (size_t i = 0; block != NULL && i < count * size; i++)
    MUST(block[i] == 0);
  put(slot, block, count * size, through->state);
}

/* Whichever allocator is asked, a block stays where it is from. */
static void resize(struct slot *slot, const rcutils_allocator_t *through) {
  size_t size = random_size(), common = size < slot->size ? size : slot->size;
  weir_arena_t *arena = slot->block != NULL ? slot->arena : through->state;
  unsigned char *block = through->reallocate(slot->block, size, through->state);
  if (block == NULL) {
    MUST(arena == arenas[ARENAS - 1]);
    MUST(holds(slot->block, slot->size, slot->tag));
  } else {
    MUST(holds(block, common, slot->tag));
    put(slot, block, size, arena);
  }
}

static void give(struct slot *slot, const rcutils_allocator_t *through) {
  MUST(holds(slot->block, slot->size, slot->tag));
  if (below(4) == 0)
    weir_free(slot->block);
  else
    through->deallocate(slot->block, through->state);
  slot->block = NULL;
  slot->size = 0;
}

/* Each arena holds what the slots say that it does. */
static void count_all(void) {
  for (size_t i = 0; i < ARENAS; i++) {
    uint64_t held = live_before[i];
    for (size_t j = 0; j < SLOTS; j++)
      if (slots[j].block != NULL && slots[j].arena == arenas[i])
        held += weir_usable_size(slots[j].block);
    ck_assert_uint_eq(live(arenas[i]), held);
  }
}

START_TEST(random_sequences_keep_the_contract) {
  begin_random((uint64_t)_i + 1);
  for (int turn = 0; turn < 20000; turn++) {
    struct slot *slot = &slots[below(SLOTS)];
    const rcutils_allocator_t *through = holder[below(HOLDERS)];
    switch (below(8)) {
    case 0:
      renew_holder(below(HOLDERS));
      break;
    case 1:
    case 2:
    case 3:
      resize(slot, through);
      break;
    default:
      if (slot->block != NULL || below(20) == 0)
        give(slot, through);
      else
        (below(2) == 0 ? take_one : take_zeroed)(slot, through);
    }
    if (turn % 1000 == 0)
      count_all();
  }
  for (size_t i = 0; i < SLOTS; i++)
    give(&slots[i], holder[below(HOLDERS)]);
  count_all();
  for (size_t i = 1; i < ARENAS; i++) {
    ck_assert_uint_eq(live(arenas[i]), 0);
    weir_arena_destroy(arenas[i]);
  }
}
END_TEST

/* ---- threads that share one allocator by copies ---- */

enum { THREADS = 4, EXCHANGED = 64 };
static _Atomic(unsigned char *) exchange[EXCHANGED];

static void *share(void *argument) {
  rcutils_allocator_t allocator = *(const rcutils_allocator_t *)argument;
  uint64_t state = (uintptr_t)&allocator | 1;
  for (int turn = 0; turn < 20000; turn++) {
    size_t size;
    unsigned char *block;
    state = state * 6364136223846793005u + 1442695040888963407u;
    size = 2 + (size_t)(state >> 40) % (turn % 64 == 0 ? 100000 : 2000);
    block = allocator.allocate(size, allocator.state);
    if (block == NULL)
      return NULL;
    block[0] = block[1] = (unsigned char)size;
    block = atomic_exchange(&exchange[(state >> 33) % EXCHANGED], block);
    if (block != NULL && block[0] != block[1])
      return NULL;
    if (block != NULL && turn % 3 == 0)
      block = allocator.reallocate(block, size, allocator.state);
    allocator.deallocate(block, allocator.state);
  }
  return argument;
}

START_TEST(threads_share_an_allocator) {
  weir_arena_t *arena = make("shared", WEIR_LIMIT_NONE);
  rcutils_allocator_t allocator = weir_rcutils_allocator(arena);
  pthread_t thread[THREADS];
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, share, &allocator), 0);
  for (int i = 0; i < THREADS; i++) {
    void *got;
    pthread_join(thread[i], &got);
    ck_assert_ptr_eq(got, &allocator);
  }
  for (int i = 0; i < EXCHANGED; i++)
    weir_free(exchange[i]);
  ck_assert_uint_eq(live(arena), 0);
  weir_arena_destroy(arena);
}
END_TEST

/* ---- the structure ---- */

START_TEST(rcutils_takes_it_for_valid) {
  rcutils_allocator_t allocator = weir_rcutils_allocator(NULL), copy;
  ck_assert(rcutils_allocator_is_valid(&allocator));
  ck_assert_ptr_null(allocator.state);
  memcpy(&copy, &allocator, sizeof copy);
  ck_assert(rcutils_allocator_is_valid(&copy));
  ck_assert_int_eq(memcmp(&copy, &allocator, sizeof copy), 0);
}
END_TEST

/* As rcl does: an object keeps a copy of what it was made with. */
static void init_with_dying_owner(rcutils_string_array_t *array, weir_arena_t *arena) {
  rcutils_allocator_t *owner = malloc(sizeof *owner);
  *owner = weir_rcutils_allocator(arena);
  ck_assert_int_eq(rcutils_string_array_init(array, 10, owner), RCUTILS_RET_OK);
  memset(owner, 0xee, sizeof *owner);
  free(owner);
}

START_TEST(copies_outlive_their_owner) {
  weir_arena_t *arena = make("owner", WEIR_LIMIT_NONE);
  rcutils_string_array_t array = rcutils_get_zero_initialized_string_array();
  init_with_dying_owner(&array, arena);
  ck_assert_ptr_eq(weir_arena_of(array.data), arena);
  ck_assert_int_eq(rcutils_string_array_resize(&array, 10000), RCUTILS_RET_OK);
  ck_assert_uint_ge(live(arena), 10000 * sizeof(char *));
  ck_assert_int_eq(rcutils_string_array_fini(&array), RCUTILS_RET_OK);
  ck_assert_uint_eq(live(arena), 0);
  weir_arena_destroy(arena);
}
END_TEST

START_TEST(failures_leave_the_old_block) {
  weir_arena_t *arena = make("limited", 4 * MIB);
  rcutils_allocator_t allocator = weir_rcutils_allocator(arena);
  unsigned char *block = allocator.allocate(KIB, allocator.state);
  ck_assert_ptr_nonnull(block);
  fill(block, KIB, 5);
  errno = 0;
  ck_assert_ptr_null(allocator.reallocate(block, 5 * MIB, allocator.state));
  ck_assert_int_eq(errno, ENOMEM);
  ck_assert(holds(block, KIB, 5));
  ck_assert_uint_eq(live(arena), weir_usable_size(block));
  block = allocator.reallocate(block, 2 * MIB, allocator.state);
  ck_assert_ptr_nonnull(block);
  ck_assert(holds(block, KIB, 5));
  ck_assert_ptr_null(allocator.allocate(3 * MIB, allocator.state));
  ck_assert_ptr_null(allocator.zero_allocate(3, MIB, allocator.state));
  ck_assert(holds(block, KIB, 5));
  /* As reallocf: the old block is gone when it fails. */
  ck_assert_ptr_null(rcutils_reallocf(block, 5 * MIB, &allocator));
  ck_assert_uint_eq(live(arena), 0);
  weir_arena_destroy(arena);
}
END_TEST

/* rcutils tells its caller of a limit that was reached, and all goes on behind it. */
START_TEST(rcutils_tells_of_the_limit) {
  weir_arena_t *arena = make("limited", MIB);
  rcutils_allocator_t allocator = weir_rcutils_allocator(arena);
  rcutils_array_list_t list = rcutils_get_zero_initialized_array_list();
  unsigned char entry[4096];
  size_t size = 0;
  rcutils_ret_t ret;
  fill(entry, sizeof entry, 3);
  ck_assert_int_eq(rcutils_array_list_init(&list, 1, sizeof entry, &allocator), RCUTILS_RET_OK);
  while ((ret = rcutils_array_list_add(&list, entry)) == RCUTILS_RET_OK)
    size++;
  ck_assert_int_eq(ret, RCUTILS_RET_BAD_ALLOC);
  ck_assert_uint_gt(size, 32);
  ck_assert_int_eq(rcutils_array_list_get(&list, size - 1, entry), RCUTILS_RET_OK);
  ck_assert(holds(entry, sizeof entry, 3));
  ck_assert_int_eq(rcutils_array_list_fini(&list), RCUTILS_RET_OK);
  ck_assert_uint_eq(live(arena), 0);
  weir_arena_destroy(arena);
}
END_TEST

START_TEST(the_process_has_an_arena_for_rcutils) {
  weir_arena_t *arena = weir_rcutils_arena();
  rcutils_allocator_t allocator = weir_rcutils_allocator(arena);
  rcutils_string_array_t array = rcutils_get_zero_initialized_string_array();
  ck_assert_str_eq(weir_arena_name(arena), "rcutils");
  ck_assert_int_eq(rcutils_string_array_init(&array, 3, &allocator), RCUTILS_RET_OK);
  ck_assert_ptr_eq(weir_arena_of(array.data), arena);
  ck_assert_int_eq(rcutils_string_array_fini(&array), RCUTILS_RET_OK);
  ck_assert_uint_eq(live(arena), 0);
}
END_TEST

static Suite *contract_suite(void) {
  Suite *suite = suite_create("contract");
  TCase *tests = tcase_create("weir/rcutils.h");
  tcase_set_timeout(tests, 240);
  tcase_add_loop_test(tests, random_sequences_keep_the_contract, 0, 8);
  tcase_add_test(tests, threads_share_an_allocator);
  tcase_add_test(tests, rcutils_takes_it_for_valid);
  tcase_add_test(tests, copies_outlive_their_owner);
  tcase_add_test(tests, failures_leave_the_old_block);
  tcase_add_test(tests, rcutils_tells_of_the_limit);
  tcase_add_test(tests, the_process_has_an_arena_for_rcutils);
  suite_add_tcase(suite, tests);
  return suite;
}

int main(void) {
  SRunner *runner = srunner_create(contract_suite());
  int failed;
  srunner_run_all(runner, CK_NORMAL);
  failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
