/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slabs: how they are carved, which addresses are blocks, the free list and its checks, stealing.
 */
#include "slab.h"

#include <string.h>

#include "fake.h"
#include "unit.h"

static struct wr_spans *spans;
static struct wr_heap *const owner = (struct wr_heap *)(uintptr_t)0x10000;

static struct wr_span *make(size_t page, unsigned class) {
  struct wr_span *slab;
  spans = &fake_arena(page, SIZE_MAX)->spans;
  slab = wr_slab_make(spans, class, owner);
  ck_assert_ptr_nonnull(slab);
  return slab;
}

static size_t listed(const struct wr_span *slab) {
  size_t count = 0;
  for (const struct wr_block *block = wr_slab_free(slab); block != NULL; block = block->next)
    count++;
  return count;
}

START_TEST(a_new_slab_has_nothing_carved) {
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    struct wr_span *slab = make(4096, class);
    ck_assert_uint_eq(slab->block, wr_sizeclass_block(class));
    ck_assert_uint_eq(slab->class, class);
    ck_assert_uint_eq(slab->extent, wr_extent_length(slab) / slab->block * slab->block);
    ck_assert(!wr_slab_holds(slab, slab->base));
    ck_assert_uint_eq(slab->units, wr_sizeclass_units(class, WR_UNIT_SHIFT));
    ck_assert_uint_eq(wr_slab_used(slab), 0);
    ck_assert_ptr_null(wr_slab_free(slab));
    ck_assert_uint_eq(wr_counter_read(&slab->touched), 0);
    ck_assert_ptr_null(wr_slab_pop(slab));
    ck_assert_uint_eq(wr_slab_used(slab), 0);
    ck_assert_uint_eq(atomic_load(&slab->owner), (uintptr_t)owner);
  }
}
END_TEST

/* How many blocks the next carving yields, by what slab.h says. */
static size_t expected_carve(size_t page, size_t block, size_t from, size_t extent) {
  size_t to = from + block;
  if (page / block >= 2) {
    size_t end = (to + page - 1) / page * page;
    while (to + block <= end && to + block <= extent)
      to += block;
  }
  return (to - from) / block;
}

START_TEST(a_page_of_blocks_is_carved_at_a_time) {
  for (const size_t *page = fake_pages; *page != 0; page++)
    for (unsigned class = 0; class < WR_CLASSES; class ++) {
      struct wr_span *slab = make(*page, class);
      size_t carved = 0;
      while (wr_slab_carve(slab)) {
        size_t from = carved * slab->block, end;
        size_t want = expected_carve(*page, slab->block, from, slab->extent);
        ck_assert_msg(listed(slab) == want, "page %zu, block %u, from %zu: %zu carved, not %zu",
                      *page, slab->block, from, listed(slab), want);
        /* In the order of addresses, each marked, and all memory up to there counted. */
        for (size_t i = 0; i < want; i++) {
          char *block = wr_slab_pop(slab);
          if (block != slab->base + from + i * slab->block || wr_slab_used(slab) != carved + i + 1)
            ck_abort_msg("block %zu of %u bytes is not the next", carved + i, slab->block);
        }
        carved += want;
        end = (carved * slab->block + *page - 1) / *page * *page;
        ck_assert_uint_eq(wr_counter_read(&slab->touched),
                          end < wr_extent_length(slab) ? end : wr_extent_length(slab));
        ck_assert_ptr_null(wr_slab_pop(slab));
      }
      ck_assert_uint_eq(carved, slab->extent / slab->block);
    }
}
END_TEST

/* Makes all blocks of a slab, and none free. */
static void carve_all(struct wr_span *slab) {
  while (wr_slab_carve(slab))
    while (wr_slab_pop(slab) != NULL)
      continue;
}

START_TEST(what_is_not_carved_is_no_block) {
  struct wr_span *slab = make(4096, 3);
  ck_assert(wr_slab_carve(slab));
  ck_assert(wr_slab_holds(slab, slab->base));
  ck_assert(wr_slab_holds(slab, slab->bump - slab->block));
  ck_assert(!wr_slab_holds(slab, slab->bump));
  ck_assert(!wr_slab_holds(slab, slab->bump + slab->block));
}
END_TEST

START_TEST(exactly_the_multiples_are_blocks) {
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    struct wr_span *slab = make(4096, class);
    size_t length = wr_extent_length(slab), block = slab->block, next = 0;
    carve_all(slab);
    for (size_t offset = 0; offset < length; offset++) {
      bool is_block = offset == next && offset + block <= length;
      if (offset == next)
        next += block;
      if (wr_slab_holds(slab, slab->base + offset) != is_block)
        ck_abort_msg("block %zu, offset %zu", block, offset);
    }
    ck_assert(!wr_slab_holds(slab, slab->base + length));
    ck_assert(!wr_slab_holds(slab, slab->base + slab->extent));
    for (size_t i = 1; i <= 64; i++)
      ck_assert(!wr_slab_holds(slab, (char *)((uintptr_t)slab->base - i * block)));
    ck_assert(!wr_slab_holds(slab, NULL));
    ck_assert(!wr_slab_holds(slab, (char *)((uintptr_t)slab->base | (uintptr_t)1 << 56)));
  }
}
END_TEST

START_TEST(the_last_given_back_is_taken_first) {
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    struct wr_span *slab = make(4096, class);
    void *block[8];
    for (int i = 0; i < 8; i++) {
      if (wr_slab_free(slab) == NULL)
        ck_assert(wr_slab_carve(slab));
      block[i] = wr_slab_pop(slab);
      ck_assert_ptr_nonnull(block[i]);
      ck_assert(!wr_slab_is_marked(slab, block[i]));
      memset(block[i], 0xff, slab->block);
    }
    for (size_t i = 0; i < 8; i++) {
      ck_assert_uint_eq(wr_slab_push(slab, block[i]), 7 - i);
      ck_assert(wr_slab_is_marked(slab, block[i]));
      ck_assert(wr_slab_is_free(slab, block[i]));
      ck_assert(i == 7 || !wr_slab_is_free(slab, block[i + 1]));
    }
    for (int i = 7; i >= 0; i--)
      ck_assert_ptr_eq(wr_slab_pop(slab), block[i]);
  }
}
END_TEST

START_TEST(use_tells_whether_a_block_was_taken) {
  struct wr_span *slab = make(4096, 3);
  size_t before;
  void *block;
  ck_assert(wr_slab_carve(slab));
  before = wr_slab_use(slab);
  block = wr_slab_pop(slab);
  ck_assert_uint_eq(wr_slab_push(slab, block), 0);
  ck_assert_uint_eq(wr_slab_used(slab), 0);
  ck_assert_uint_ne(wr_slab_use(slab), before);
}
END_TEST

static void verify(void *argument) {
  wr_slab_verify(argument);
}

static void walk(void *argument) {
  (void)wr_slab_is_free(argument, NULL);
}

START_TEST(a_link_that_leads_out_of_the_slab_stops_the_program) {
  struct wr_span *slab = make(4096, 3);
  struct wr_block *one, *two;
  ck_assert(wr_slab_carve(slab));
  one = wr_slab_pop(slab);
  two = wr_slab_pop(slab);
  wr_slab_push(slab, two);
  wr_slab_push(slab, one);
  wr_slab_verify(slab);
  ck_assert(!wr_slab_is_free(slab, NULL));
  /* What a program does that writes to a block it has freed. */
  one->next = (struct wr_block *)(uintptr_t)0x4141414141414140;
  unit_expect_misuse(walk, slab, "corrupted free list", one->next);
  ck_assert_ptr_eq(wr_slab_pop(slab), one);
  unit_expect_misuse(verify, slab, "corrupted free list", (void *)(uintptr_t)0x4141414141414140);
#if WR_CHECK_CHEAP
  ck_assert_ptr_null(wr_slab_pop(slab));
  ck_assert_uint_eq(wr_slab_used(slab), 1);
#endif
  /* Into the slab, but to no block of it. */
  wr_slab_set_free(slab, (struct wr_block *)(void *)((char *)two + 8));
  unit_expect_misuse(verify, slab, "corrupted free list", (char *)two + 8);
}
END_TEST

START_TEST(a_list_that_runs_in_a_circle_is_walked_to_an_end) {
  struct wr_span *slab = make(4096, 3);
  struct wr_block *one;
  ck_assert(wr_slab_carve(slab));
  one = wr_slab_free(slab);
  one->next->next = one;
  ck_assert(!wr_slab_is_free(slab, slab->base + 60000));
}
END_TEST

#if WR_CHECK_CHEAP
START_TEST(a_stolen_slab_starts_anew) {
  struct wr_span *slab = make(4096, 5);
  void *block;
  ck_assert(wr_slab_carve(slab));
  block = wr_slab_pop(slab);
  ck_assert(!wr_slab_steal(slab));
  ck_assert_uint_eq(wr_slab_used(slab), 1);
  ck_assert(!wr_slab_is_free(slab, block));
  wr_slab_push(slab, block);
  if (!wr_os_barrier())
    return;
  ck_assert(wr_slab_steal(slab));
  ck_assert_ptr_null(wr_slab_pop(slab));
  ck_assert(wr_slab_purge(slab, true));
  ck_assert_uint_eq(wr_counter_read(&slab->touched), 0);
  ck_assert_ptr_null(wr_slab_free(slab));
  ck_assert(wr_slab_carve(slab));
  ck_assert_ptr_eq(wr_slab_pop(slab), slab->base);
}
END_TEST

START_TEST(a_slab_that_cannot_be_purged_starts_anew_all_the_same) {
  struct wr_span *slab = make(4096, 5);
  if (!wr_os_barrier())
    return;
  ck_assert(wr_slab_carve(slab));
  ck_assert(wr_slab_steal(slab));
  fake_fail(FAKE_PURGE, 1, 1);
  ck_assert(!wr_slab_purge(slab, true));
  ck_assert_uint_eq(wr_counter_read(&slab->touched), 4096);
  /* Nor need it be asked. */
  fake_forget();
  ck_assert(wr_slab_purge(slab, false));
  ck_assert_uint_eq(fake_calls(FAKE_ANY), 0);
  ck_assert(wr_slab_carve(slab));
  ck_assert_ptr_eq(wr_slab_pop(slab), slab->base);
  ck_assert_uint_eq(wr_counter_read(&slab->touched), 4096);
}
END_TEST
#endif

START_TEST(a_retired_slab_is_retained_memory) {
  struct wr_span *slab = make(4096, 5);
  size_t touched;
  ck_assert(wr_slab_carve(slab));
  touched = wr_counter_read(&slab->touched);
  wr_slab_retire(slab);
  wr_span_check(spans);
  ck_assert_uint_eq(wr_counter_read(&spans->retain.total), touched);
  ck_assert_ptr_eq(wr_slab_make(spans, 7, owner), slab);
  ck_assert_uint_eq(slab->class, 7);
  ck_assert_uint_eq(wr_counter_read(&slab->touched), touched);
  ck_assert(wr_slab_carve(slab));
}
END_TEST

START_TEST(without_memory_there_is_no_slab) {
  spans = &fake_arena(4096, SIZE_MAX)->spans;
  fake_fail(FAKE_MAP, 1, SIZE_MAX);
  ck_assert_ptr_null(wr_slab_make(spans, 0, owner));
  fake_forget();
  ck_assert_ptr_nonnull(wr_slab_make(spans, 0, owner));
}
END_TEST

UNIT_SUITE(slab, a_new_slab_has_nothing_carved, a_page_of_blocks_is_carved_at_a_time,
           what_is_not_carved_is_no_block, exactly_the_multiples_are_blocks,
           the_last_given_back_is_taken_first, use_tells_whether_a_block_was_taken,
           a_link_that_leads_out_of_the_slab_stops_the_program,
           a_list_that_runs_in_a_circle_is_walked_to_an_end,
#if WR_CHECK_CHEAP
           a_stolen_slab_starts_anew, a_slab_that_cannot_be_purged_starts_anew_all_the_same,
#endif
           a_retired_slab_is_retained_memory, without_memory_there_is_no_slab)
