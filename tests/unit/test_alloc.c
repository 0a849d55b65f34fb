/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking blocks through the public functions: sizes, alignments, zeroes, errno, and what happens
 * when memory is out.
 */
#include "alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "unit.h"
#include "weir.h"

#define MIB ((size_t)1 << 20)

/* Keeps the compiler from knowing that a size is too large. */
static size_t hidden(size_t size) {
  volatile size_t copy = size;
  return copy;
}

START_TEST(every_size_up_to_the_largest_slab_block) {
  for (size_t size = 0; size <= WR_BLOCK_MAX + 20000; size += size < 2100 ? 1 : 97) {
    unsigned char *block = weir_malloc(size);
    ck_assert_ptr_nonnull(block);
    ck_assert_uint_eq((uintptr_t)block % 16, 0);
    ck_assert_uint_ge(weir_usable_size(block), size);
    if (size <= WR_BLOCK_MAX)
      ck_assert_uint_eq(weir_usable_size(block), wr_sizeclass_block(wr_sizeclass_of(size)));
    memset(block, 0xc3, weir_usable_size(block));
    weir_free(block);
  }
}
END_TEST

START_TEST(blocks_of_no_bytes_are_distinct) {
  void *block[100];
  for (int i = 0; i < 100; i++) {
    block[i] = weir_malloc(0);
    ck_assert_ptr_nonnull(block[i]);
    for (int k = 0; k < i; k++)
      ck_assert_ptr_ne(block[k], block[i]);
  }
  for (int i = 0; i < 100; i++)
    weir_free(block[i]);
}
END_TEST

START_TEST(payloads_end_with_a_page_and_begin_behind_what_that_leaves) {
  size_t page = wr_os_page_size();
  for (size_t size = WR_BLOCK_MAX + 1; size < 40 * MIB; size += size % 3 == 0 ? 61 : size / 3) {
    void *block = weir_malloc(size);
    size_t left = wr_bits_up(size, page) - size, skew = (uintptr_t)block % page;
    ck_assert_ptr_nonnull(block);
    ck_assert_uint_eq(skew % 64, 0);
    ck_assert_uint_ge(skew, wr_bits_min(left / 64, 1) * 64);
    ck_assert_uint_le(skew, left);
    ck_assert_uint_eq(skew + weir_usable_size(block), wr_bits_up(size, page));
    weir_free(block);
  }
}
END_TEST

/* Or copies from one to another would be slow on some processors, at a distance of a header. */
START_TEST(payloads_that_are_live_at_once_begin_at_different_places_in_their_pages) {
  static const size_t sizes[] = {70000, 250000, 1000000, 6220800};
  enum { LIVE = 8 };
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    void *block[LIVE];
    for (int k = 0; k < LIVE; k++) {
      block[k] = weir_malloc(sizes[i] + (k % 2 == 0 ? 0 : 28));
      for (int j = 0; j < k; j++)
        ck_assert_uint_ne((uintptr_t)block[k] % 4096, (uintptr_t)block[j] % 4096);
    }
    for (int k = 0; k < LIVE; k++)
      weir_free(block[k]);
  }
}
END_TEST

START_TEST(every_alignment_with_every_kind_of_size) {
  static const size_t sizes[] = {0, 1, 16, 100, 1000, 4096, 5000, 65536, 65537, 300000, 3 * MIB};
  void *block[11];
  for (size_t alignment = 1; alignment <= 16 * MIB; alignment *= 2) {
    for (size_t i = 0; i < 11; i++) {
      block[i] = weir_aligned_alloc(alignment, sizes[i]);
      ck_assert_ptr_nonnull(block[i]);
      ck_assert_uint_eq((uintptr_t)block[i] % alignment, 0);
      ck_assert_uint_ge(weir_usable_size(block[i]), sizes[i]);
      memset(block[i], (int)i, sizes[i]);
    }
    for (size_t i = 0; i < 11; i++) {
      ck_assert(sizes[i] == 0 || ((char *)block[i])[sizes[i] - 1] == (char)i);
      weir_free(block[i]);
    }
  }
}
END_TEST

START_TEST(other_alignments_are_refused) {
  static const size_t bad[] = {0, 3, 24, 4097, SIZE_MAX};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    errno = 0;
    ck_assert_ptr_null(weir_aligned_alloc(hidden(bad[i]), 8));
    ck_assert_int_eq(errno, EINVAL);
  }
}
END_TEST

START_TEST(zeroed_blocks_are_zero_however_dirty_memory_was) {
  static const size_t sizes[] = {1, 16, 100, 5000, 65536, 65537, 200000, 3 * MIB};
  for (int round = 0; round < 4; round++)
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
      unsigned char *dirty = weir_malloc(sizes[i]), *block;
      ck_assert_ptr_nonnull(dirty);
      memset(dirty, 0xff, weir_usable_size(dirty));
      weir_free(dirty);
      if (round == 3)
        (void)weir_trim(sizes[i] / 2);
      block = weir_calloc(sizes[i] > 9 && round == 1 ? 10 : 1,
                          sizes[i] > 9 && round == 1 ? sizes[i] / 10 : sizes[i]);
      ck_assert_ptr_nonnull(block);
      for (size_t k = 0; k < sizes[i] / 10 * 10; k++)
        if (block[k] != 0)
          ck_abort_msg("size %zu: byte %zu is %u", sizes[i], k, block[k]);
      weir_free(block);
    }
}
END_TEST

START_TEST(errno_is_kept_when_all_is_well) {
  errno = 4711;
  for (size_t size = 0; size < 10 * MIB; size = size * 2 + 1) {
    void *block = weir_malloc(size);
    void *zeroed = weir_calloc(1, size);
    void *aligned = weir_aligned_alloc(4096, size);
    weir_free(weir_realloc(block, size * 2));
    weir_free(zeroed);
    weir_free(aligned);
    weir_free(NULL);
  }
  weir_set_retain(0);
  (void)weir_trim(0);
  ck_assert_int_eq(errno, 4711);
}
END_TEST

static uint64_t refused(void) {
  weir_stats_t stats;
  weir_stats(&stats, sizeof stats);
  return stats.out_of_memory;
}

START_TEST(impossible_sizes_are_refused_and_counted) {
  static const size_t sizes[] = {(size_t)PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX - 4096,
                                 SIZE_MAX};
  uint64_t count = refused();
  for (size_t i = 0; i < 4; i++) {
    errno = 0;
    ck_assert_ptr_null(weir_malloc(hidden(sizes[i])));
    ck_assert_int_eq(errno, ENOMEM);
    errno = 0;
    ck_assert_ptr_null(weir_calloc(1, hidden(sizes[i])));
    ck_assert_int_eq(errno, ENOMEM);
    errno = 0;
    ck_assert_ptr_null(weir_aligned_alloc(4096, hidden(sizes[i])));
    ck_assert_int_eq(errno, ENOMEM);
  }
  errno = 0;
  ck_assert_ptr_null(weir_calloc(hidden(SIZE_MAX / 2), 3));
  ck_assert_int_eq(errno, ENOMEM);
  errno = 0;
  ck_assert_ptr_null(weir_aligned_alloc((size_t)1 << (sizeof(size_t) * 8 - 1), 1));
  ck_assert_int_eq(errno, ENOMEM);
  ck_assert_uint_eq(refused(), count + 14);
}
END_TEST

START_TEST(without_memory_retained_memory_is_given_up) {
  void *block, *small;
  fake_default();
  /* Used again, so that it is not split either. */
  for (int i = 0; i < 2; i++) {
    block = weir_malloc(32 * MIB);
    ck_assert_ptr_nonnull(block);
    weir_free(block);
  }
  fake_fail(FAKE_MAP, 1, SIZE_MAX);
  small = weir_malloc(2 * MIB);
  ck_assert_ptr_nonnull(small);
  ck_assert(fake_failed());
  errno = 0;
  ck_assert_ptr_null(weir_malloc(64 * MIB));
  ck_assert_int_eq(errno, ENOMEM);
  ck_assert_uint_eq(refused(), 1);
  weir_free(small);
  fake_forget();
  ck_assert_ptr_nonnull(weir_malloc(64 * MIB));
}
END_TEST

/* Each that the limit refuses, of whatever size and alignment; and it costs nothing of what is
 * retained, though a few bytes can take as many pages as their alignment has. */
START_TEST(every_refusal_at_the_limit_is_counted) {
  enum { LIVE = 64, TURNS = 25000 };
  for (uint64_t seed = 1; seed <= 3; seed++) {
    weir_arena_options_t options = WEIR_ARENA_OPTIONS_INIT;
    weir_arena_t *arena;
    uint64_t state = seed, refused = 0;
    void *live[LIVE] = {NULL};
    options.retain = WEIR_RETAIN_UNLIMITED;
    options.limit = 4 * MIB;
    arena = weir_arena_create(&options);
    ck_assert_ptr_nonnull(arena);
    for (int i = 0; i < TURNS; i++) {
      size_t place = unit_below(&state, LIVE);
      size_t size = ((size_t)16 << unit_below(&state, 16)) + unit_below(&state, 65536);
      size_t alignment = (size_t)1 << unit_below(&state, 20);
      size_t retained = wr_counter_read(&arena->spans.retain.total);
      if (live[place] != NULL) {
        weir_arena_free(arena, live[place]);
        live[place] = NULL;
        continue;
      }
      live[place] = weir_arena_aligned_alloc(arena, alignment, size);
      if (live[place] != NULL) {
        memset(live[place], 1, size);
        continue;
      }
      ck_assert_msg(wr_counter_read(&arena->over_limit) == ++refused,
                    "%zu bytes at a multiple of %zu", size, alignment);
      ck_assert_msg(wr_counter_read(&arena->spans.retain.total) >= retained,
                    "%zu bytes at a multiple of %zu cost retained memory", size, alignment);
    }
    ck_assert_uint_gt(refused, TURNS / 100);
    ck_assert_uint_eq(wr_counter_read(&arena->out_of_memory), refused);
    ck_assert_uint_le(wr_counter_read(&arena->spans.peak_committed), 4 * MIB);
    weir_arena_destroy(arena);
  }
}
END_TEST

/* A script in a child in which the n-th mapping and those after it fail. */
struct failure {
  size_t n, count;
};

#define BLOCKS 120

static void demand(bool condition) {
  if (!condition)
    abort();
}

/* A block is NULL only with ENOMEM; it is filled then. */
static void *take_or_fail(size_t i) {
  size_t size = i % 7 == 0 ? 100000 * i : 37 * i * (i % 5);
  void *block;
  errno = 0;
  block = i % 3 == 0   ? weir_aligned_alloc((size_t)1 << i % 20, size)
          : i % 3 == 1 ? weir_calloc(1, size)
                       : weir_malloc(size);
  demand(block != NULL ? errno == 0 : errno == ENOMEM);
  if (block != NULL)
    memset(block, (int)i, size < 5000 ? size : 5000);
  return block;
}

static void run_script(void *block[BLOCKS]) {
  for (size_t i = 0; i < BLOCKS; i++)
    block[i] = take_or_fail(i);
  for (size_t i = 0; i < BLOCKS; i += 2) {
    void *moved = weir_realloc(block[i], 50 * i + 1);
    demand(moved != NULL || errno == ENOMEM);
    if (moved != NULL)
      block[i] = moved;
  }
  for (size_t i = 0; i < BLOCKS; i++)
    weir_free(block[i]);
}

static void fail_and_go_on(void *argument) {
  const struct failure *failure = argument;
  void *block[BLOCKS];
  weir_stats_t stats;
  bool failed;
  fake_default();
  fake_fail(FAKE_MAP, failure->n, failure->count);
  run_script(block);
  failed = fake_failed();
  fake_forget();
  weir_stats(&stats, sizeof stats);
  demand(stats.live == 0 && (failed || stats.out_of_memory == 0));
  wr_span_check(&wr_arena_default.spans);
  if (wr_heap_self != &wr_heap_unborn)
    wr_heap_check(wr_heap_self);
  run_script(block);
  weir_stats(&stats, sizeof stats);
  demand(stats.live == 0);
  (void)weir_trim(0);
  weir_stats(&stats, sizeof stats);
  /* Else the slabs that the thread takes from stay. */
  demand(stats.retained + stats.fragmented == 0 || !WR_CHECK_CHEAP || !wr_os_barrier());
  if (!failed)
    _Exit(7);
}

START_TEST(every_mapping_fails) {
  static const size_t counts[] = {1, SIZE_MAX};
  for (int i = 0; i < 2; i++) {
    struct failure failure = {0, counts[i]};
    char text[1000];
    int status = 0;
    while (status == 0) {
      failure.n++;
      status = unit_child(fail_and_go_on, &failure, text, sizeof text);
    }
    /* Ended because no call was left to fail, not by a failed demand. */
    ck_assert_msg(status == 7 << 8, "call %zu: wait status %#x: %s", failure.n, status, text);
    ck_assert_uint_gt(failure.n, 10);
  }
}
END_TEST

UNIT_SUITE(alloc, every_refusal_at_the_limit_is_counted, every_size_up_to_the_largest_slab_block,
           blocks_of_no_bytes_are_distinct,
           payloads_end_with_a_page_and_begin_behind_what_that_leaves,
           payloads_that_are_live_at_once_begin_at_different_places_in_their_pages,
           every_alignment_with_every_kind_of_size, other_alignments_are_refused,
           zeroed_blocks_are_zero_however_dirty_memory_was, errno_is_kept_when_all_is_well,
           impossible_sizes_are_refused_and_counted, without_memory_retained_memory_is_given_up,
           every_mapping_fails)
