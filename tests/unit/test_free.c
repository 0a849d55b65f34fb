/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving blocks back: whose they are, and every kind of misuse with its line.
 */
#include "free.h"

#include <pthread.h>
#include <string.h>

#include "unit.h"
#include "weir.h"

#define MIB ((size_t)1 << 20)

static uint64_t live(void) {
  weir_stats_t stats;
  weir_stats(&stats, sizeof stats);
  return stats.live;
}

START_TEST(nothing_is_given_back_for_null) {
  weir_free(NULL);
  ck_assert_uint_eq(weir_usable_size(NULL), 0);
  ck_assert_uint_eq(live(), 0);
}
END_TEST

START_TEST(what_is_given_back_is_no_longer_live) {
  uint64_t sum = 0;
  void *block[200];
  for (size_t i = 0; i < 200; i++) {
    block[i] = weir_malloc(i * i * 10);
    sum += weir_usable_size(block[i]);
    ck_assert_uint_eq(live(), sum);
  }
  for (size_t i = 0; i < 200; i++) {
    sum -= weir_usable_size(block[i]);
    weir_free(block[i]);
    ck_assert_uint_eq(live(), sum);
  }
  ck_assert_uint_eq(sum, 0);
}
END_TEST

static void *free_it(void *argument) {
  weir_free(argument);
  return NULL;
}

static void free_elsewhere(void *block) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, free_it, block) == 0)
    pthread_join(thread, NULL);
}

START_TEST(another_thread_gives_it_to_its_owner) {
  weir_stats_t stats;
  void *block[3] = {weir_malloc(100), weir_malloc(100), weir_malloc(200000)};
  for (int i = 0; i < 3; i++)
    free_elsewhere(block[i]);
  ck_assert_uint_eq(live(), 0);
  /* The owner sees them when it is slow next. */
  for (int i = 0; i < 1000; i++)
    (void)!weir_malloc(100);
  weir_stats(&stats, sizeof stats);
  ck_assert_uint_eq(stats.remote_frees, 2);
}
END_TEST

#if WR_CHECK_CHEAP

static void *hide(const void *pointer) {
  void *volatile copy = (void *)(uintptr_t)pointer;
  return copy;
}

static void expect(const char *kind, void (*what)(void *argument), void *pointer) {
  unit_expect_misuse(what, pointer, kind, pointer);
}

static void free_one(void *argument) {
  weir_free(argument);
}

static void size_one(void *argument) {
  (void)weir_usable_size(argument);
}

static void resize_one(void *argument) {
  (void)!weir_realloc(argument, 10);
}

/* For each of the functions that takes a block. */
static void expect_of_all(const char *kind, void *pointer) {
  expect(kind, free_one, pointer);
  expect(kind, size_one, pointer);
  expect(kind, resize_one, pointer);
  expect(kind, free_elsewhere, pointer);
}

START_TEST(addresses_that_weir_never_gave) {
  int local = 0;
  static int global;
  weir_free(weir_malloc(10));
  expect_of_all("invalid pointer", hide(&local));
  expect_of_all("invalid pointer", hide(&global));
  expect_of_all("invalid pointer", (void *)(uintptr_t)0x10);
  expect_of_all("invalid pointer", (void *)(uintptr_t)0x4141414141414141);
  expect_of_all("invalid pointer", (void *)UINTPTR_MAX);
  expect_of_all("invalid pointer", wr_heap_self);
}
END_TEST

START_TEST(addresses_inside_a_block) {
  char *small = weir_malloc(100), *large = weir_malloc(MIB);
  static const size_t offsets[] = {1, 8, 16, 64, 111};
  for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
    expect_of_all("invalid pointer", small + offsets[i]);
    expect_of_all("invalid pointer", large + offsets[i]);
  }
  expect_of_all("invalid pointer", large - 1);
  expect_of_all("invalid pointer", large + 65536);
  expect_of_all("invalid pointer", large + MIB - 1);
  weir_free(small);
  weir_free(large);
}
END_TEST

START_TEST(addresses_whose_high_bits_are_wrong) {
  char *small = weir_malloc(100), *large = weir_malloc(MIB);
  expect_of_all("invalid pointer", (char *)((uintptr_t)small | (uintptr_t)1 << 60));
  expect_of_all("invalid pointer", (char *)((uintptr_t)large | (uintptr_t)1 << 60));
}
END_TEST

START_TEST(small_blocks_freed_twice) {
  void *kept = weir_malloc(100);
  for (size_t size = 0; size <= 65536; size = size * 2 + 9) {
    void *anchor = weir_malloc(size), *block = weir_malloc(size), *other = weir_malloc(size);
    weir_free(block);
    expect_of_all("double free", block);
    weir_free(other);
    expect_of_all("double free", block);
    weir_free(anchor);
  }
  weir_free(kept);
}
END_TEST

START_TEST(a_lone_block_freed_twice) {
  void *block = weir_malloc(100);
  weir_free(block);
  expect_of_all("double free", block);
  weir_set_retain(64 * MIB);
}
END_TEST

START_TEST(payloads_freed_twice) {
  static const size_t marks[] = {64 * MIB, 0, SIZE_MAX, 500000};
  for (int i = 0; i < 4; i++) {
    void *before, *block, *behind;
    weir_set_retain(marks[i]);
    before = weir_malloc(MIB);
    block = weir_malloc(MIB);
    behind = weir_malloc(MIB);
    weir_free(block);
    expect_of_all("double free", block);
    weir_free(behind);
    expect_of_all("double free", block);
    weir_free(before);
    expect_of_all("double free", before);
    (void)weir_trim(0);
  }
}
END_TEST

START_TEST(blocks_that_another_thread_freed_before) {
  void *anchor = weir_malloc(100), *block = weir_malloc(100), *large = weir_malloc(MIB);
  free_elsewhere(block);
  expect_of_all("double free", block);
  free_elsewhere(large);
  expect_of_all("double free", large);
  weir_free(anchor);
}
END_TEST

START_TEST(blocks_of_a_slab_that_was_given_back) {
  void *block;
  weir_set_retain(64 << 10);
  block = weir_malloc(100);
  weir_free(block);
  expect_of_all("double free", block);
}
END_TEST

static void take_after_overwriting(void *argument) {
  (void)argument;
  for (int i = 0; i < 3; i++)
    (void)!weir_malloc(100);
}

START_TEST(a_link_written_after_its_block_was_freed) {
  void *anchor = weir_malloc(100);
  void **one = weir_malloc(100), **two = weir_malloc(100);
  void *bad = (void *)(uintptr_t)0x4242424242424240;
  weir_free(two);
  weir_free(one);
  *(void **)hide(one) = bad;
  unit_expect_misuse(take_after_overwriting, NULL, "corrupted free list", bad);
  *(void **)hide(one) = two;
  weir_free(anchor);
}
END_TEST

START_TEST(a_program_may_write_what_looks_like_a_freed_block) {
  for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
    void *anchor = weir_malloc(100);
    struct wr_block *block = weir_malloc(100);
    block->mark = wr_slab_mark(wr_pagemap_find(block), block);
    ck_assert_uint_eq(weir_usable_size(block), weir_usable_size(anchor));
    ck_assert_ptr_eq(weir_realloc(block, 101), block);
    weir_free(block);
    ck_assert_uint_eq(live(), weir_usable_size(anchor));
    ck_assert_ptr_eq(weir_malloc(100), block);
    weir_free(block);
    weir_free(anchor);
  }
}
END_TEST

/* Memory is full of the marks of blocks that were free once. Programs copy what they never wrote,
 * as padding and unused parts of buffers. */
START_TEST(what_was_never_written_may_be_copied_and_freed_by_any_thread) {
  enum { SMALL = 20000, LARGE = 200 };
  static void *small[SMALL], *large[LARGE];
  for (size_t i = 0; i < SMALL; i++)
    small[i] = weir_malloc(48);
  for (size_t i = 0; i < SMALL; i++)
    weir_free(small[i]);
  for (size_t i = 0; i < LARGE; i++)
    large[i] = weir_malloc(1024);
  for (size_t i = 1; i < LARGE; i++) {
    char *copy = weir_malloc(1024);
    size_t skip = i * 16 % 960;
    memcpy(copy, (char *)large[i - 1] + skip, 64);
    memcpy(large[i], (char *)large[i - 1] + skip, 64);
    if (i % 4 == 0)
      large[i] = weir_realloc(large[i], 2000);
    free_elsewhere(copy);
  }
  for (size_t i = 0; i < LARGE; i++)
    weir_free(large[i]);
}
END_TEST

UNIT_SUITE(free, nothing_is_given_back_for_null, what_is_given_back_is_no_longer_live,
           another_thread_gives_it_to_its_owner, addresses_that_weir_never_gave,
           addresses_inside_a_block, addresses_whose_high_bits_are_wrong, small_blocks_freed_twice,
           a_lone_block_freed_twice, payloads_freed_twice, blocks_that_another_thread_freed_before,
           blocks_of_a_slab_that_was_given_back, a_link_written_after_its_block_was_freed,
           a_program_may_write_what_looks_like_a_freed_block,
           what_was_never_written_may_be_copied_and_freed_by_any_thread)
#else
UNIT_SUITE(free, nothing_is_given_back_for_null, what_is_given_back_is_no_longer_live,
           another_thread_gives_it_to_its_owner)
#endif
