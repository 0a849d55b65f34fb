/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir's own memory: aligned, zeroed, disjoint, and there again after the source had none.
 */
#include "meta.h"

#include <pthread.h>
#include <string.h>

#include "fake.h"
#include "unit.h"

static struct wr_source source;
static struct wr_meta meta;

static void begin(size_t page) {
  memset(&source, 0, sizeof source);
  memset(&meta, 0, sizeof meta);
  fake_begin(page);
  fake_source(&source);
  meta.source = &source;
}

/* Whether a range is zero; it is 0xff afterwards, so that an overlap is seen by the next. */
static bool is_fresh(unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (bytes[i] != 0)
      return false;
  memset(bytes, 0xff, size);
  return true;
}

static void take_many(void) {
  uint64_t seed = 17;
  size_t sum = 0;
  for (int i = 0; i < 2000; i++) {
    size_t size = 1 + unit_below(&seed, i % 100 == 0 ? 200000 : 900);
    size_t alignment = (size_t)1 << unit_below(&seed, 13);
    unsigned char *got = wr_meta_take(&meta, size, alignment);
    ck_assert_ptr_nonnull(got);
    ck_assert_uint_eq((uintptr_t)got % alignment, 0);
    ck_assert(is_fresh(got, size));
    sum += size;
    ck_assert_uint_eq(wr_counter_read(&meta.used), sum);
  }
  ck_assert_uint_ge(fake_mapped(), sum);
}

START_TEST(memory_is_aligned_zeroed_and_disjoint) {
  for (const size_t *page = fake_pages; *page != 0; page++) {
    begin(*page);
    take_many();
    begin(*page);
    fake.ignores_hints = true;
    take_many();
  }
}
END_TEST

START_TEST(a_chunk_serves_many) {
  begin(4096);
  /* But for the first bytes, where the chunk itself is described. */
  for (int i = 0; i < 63; i++)
    ck_assert_ptr_nonnull(wr_meta_take(&meta, 1024, 64));
  ck_assert_uint_eq(fake_calls(FAKE_MAP), 1);
  ck_assert_ptr_nonnull(wr_meta_take(&meta, 1024, 64));
  ck_assert_uint_eq(fake_calls(FAKE_MAP), 2);
}
END_TEST

START_TEST(all_of_it_can_be_unmapped) {
  for (const size_t *page = fake_pages; *page != 0; page++)
    for (int apart = 0; apart < 2; apart++) {
      begin(*page);
      fake.ignores_hints = apart != 0;
      for (int i = 0; i < 300; i++)
        ck_assert_ptr_nonnull(wr_meta_take(&meta, 1000, 64));
      ck_assert_uint_gt(fake_mapped(), 300000);
      wr_meta_unmap(&meta);
      ck_assert_uint_eq(fake_mapped(), 0);
      ck_assert_ptr_null(meta.chunks);
    }
}
END_TEST

START_TEST(what_is_wanted_soon_is_mapped_at_once) {
  begin(4096);
  fake_fail(FAKE_MAP, 1, 1);
  ck_assert(!wr_meta_reserve(&meta, 1000000));
  ck_assert(wr_meta_reserve(&meta, 1000000));
  ck_assert(wr_meta_reserve(&meta, 1000000));
  ck_assert_uint_eq(fake_calls(FAKE_MAP), 2);
  for (int i = 0; i < 1000; i++)
    ck_assert_ptr_nonnull(wr_meta_take(&meta, 1000, 8));
  ck_assert_uint_eq(fake_calls(FAKE_MAP), 2);
}
END_TEST

START_TEST(what_is_left_can_be_made_resident) {
  char *taken;
  begin(4096);
  taken = wr_meta_take(&meta, 5000, 64);
  memset(taken, 1, 5000);
  wr_meta_prefault(&meta);
  for (int i = 0; i < 5000; i++)
    ck_assert_int_eq(taken[i], 1);
  ck_assert_uint_eq(wr_counter_read(&meta.used), 5000);
}
END_TEST

START_TEST(without_memory_nothing_is_lost) {
  unsigned char *got;
  begin(4096);
  fake_fail(FAKE_MAP, 1, 1);
  ck_assert_ptr_null(wr_meta_take(&meta, 100, 16));
  ck_assert_uint_eq(wr_counter_read(&meta.used), 0);
  got = wr_meta_take(&meta, 60000, 16);
  ck_assert_ptr_nonnull(got);
  fake_fail(FAKE_MAP, 1, 2);
  ck_assert_ptr_null(wr_meta_take(&meta, 60000, 16));
  ck_assert_ptr_null(wr_meta_take(&meta, 6000, 16));
  /* What is left of the chunk still serves. */
  ck_assert_ptr_nonnull(wr_meta_take(&meta, 1000, 16));
  ck_assert_uint_eq(wr_counter_read(&meta.used), 61000);
  ck_assert_uint_eq(atomic_load(&meta.lock.word), 0);
  ck_assert_ptr_nonnull(wr_meta_take(&meta, 60000, 16));
}
END_TEST

#define THREADS 4

static void *take_in_thread(void *argument) {
  bool *good = argument;
  for (int i = 0; i < 300 && *good; i++) {
    unsigned char *got = wr_meta_take(&meta, 1000, 64);
    *good = got != NULL && is_fresh(got, 1000);
  }
  return NULL;
}

START_TEST(threads_get_memory_of_their_own) {
  pthread_t thread[THREADS];
  bool good[THREADS];
  begin(4096);
  for (int i = 0; i < THREADS; i++) {
    good[i] = true;
    ck_assert_int_eq(pthread_create(&thread[i], NULL, take_in_thread, &good[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(thread[i], NULL);
    ck_assert(good[i]);
  }
  ck_assert_uint_eq(wr_counter_read(&meta.used), (size_t)THREADS * 300 * 1000);
}
END_TEST

UNIT_SUITE(meta, memory_is_aligned_zeroed_and_disjoint, a_chunk_serves_many,
           what_is_wanted_soon_is_mapped_at_once, all_of_it_can_be_unmapped,
           what_is_left_can_be_made_resident, without_memory_nothing_is_lost,
           threads_get_memory_of_their_own)
