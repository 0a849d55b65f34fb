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

static size_t expected_extent(const struct wr_span *slab) {
  size_t spacing = wr_sizeclass_spacing(slab->class, WR_UNIT_SHIFT), count = 0;
  size_t lead = (uintptr_t)slab->base % WR_UNIT;
  while (lead + (count + 1) * (slab->block + spacing) - spacing <= wr_extent_length(slab))
    count++;
  ck_assert_uint_ge(count, 7);
  return count * (slab->block + spacing);
}

START_TEST(a_new_slab_has_nothing_carved) {
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    struct wr_span *slab = make(4096, class);
    ck_assert_uint_eq(slab->block, wr_sizeclass_block(class));
    ck_assert_uint_eq(slab->class, class);
    ck_assert_uint_eq(slab->extent, expected_extent(slab));
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
static size_t expected_carve(size_t page, const struct wr_span *slab, size_t carved) {
  size_t lead = wr_slab_lead(slab), step = wr_slab_step(slab), count = 1;
  size_t last = lead + carved * step + slab->block - 1;
  if (page / slab->block < 2)
    return 1;
  while ((carved + count) * step < slab->extent && (last + count * step) / page == last / page)
    count++;
  return count;
}

START_TEST(a_page_of_blocks_is_carved_at_a_time) {
  for (const size_t *page = fake_pages; *page != 0; page++)
    for (unsigned class = 0; class < WR_CLASSES; class ++) {
      struct wr_span *slab = make(*page, class);
      size_t carved = 0;
      while (wr_slab_carve(slab)) {
        size_t step = wr_slab_step(slab), end;
        size_t want = expected_carve(*page, slab, carved);
        ck_assert_msg(listed(slab) == want, "page %zu, block %u, %zu carved: %zu, not %zu", *page,
                      slab->block, carved, listed(slab), want);
        /* In the order of addresses, each marked, and all memory up to there counted. */
        for (size_t i = 0; i < want; i++) {
          char *block = wr_slab_pop(slab);
          if (block != slab->base + (carved + i) * step || wr_slab_used(slab) != carved + i + 1)
            ck_abort_msg("block %zu of %u bytes is not the next", carved + i, slab->block);
        }
        carved += want;
        end = wr_slab_lead(slab) + (carved - 1) * step + slab->block;
        ck_assert_uint_le(end, wr_extent_length(slab));
        ck_assert_uint_eq(wr_counter_read(&slab->touched), (end + *page - 1) / *page * *page);
        ck_assert_ptr_null(wr_slab_pop(slab));
      }
      ck_assert_uint_eq(carved, slab->extent / wr_slab_step(slab));
    }
}
END_TEST

/* A copy between two blocks, of what stands behind a header in one of them, is slow where they
 * begin at the same place in their pages: so nearly no two live ones do. */
START_TEST(blocks_over_2_KiB_begin_in_many_places_of_their_pages) {
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    unsigned at[64] = {0}, blocks = 0, same = 0;
    if (wr_sizeclass_spacing(class, WR_UNIT_SHIFT) == 0)
      continue;
    spans = &fake_arena(4096, SIZE_MAX)->spans;
    for (int i = 0; i < 16; i++) {
      struct wr_span *slab = wr_slab_make(spans, class, owner);
      ck_assert_ptr_nonnull(slab);
      ck_assert_uint_eq((uintptr_t)slab->base % 64, 0);
      for (unsigned k = 0; k < 7; k++, blocks++)
        at[((uintptr_t)slab->base + k * wr_slab_step(slab)) % 4096 / 64]++;
    }
    for (int i = 0; i < 64; i++)
      same += at[i] * (at[i] - 1) / 2;
    /* By chance a 64th of all pairs would; where a class leaves little over, its slabs can begin in
     * fewer places. */
    ck_assert_msg(same * 10 <= blocks * (blocks - 1) / 2, "%zu bytes: %u of %u pairs",
                  wr_sizeclass_block(class), same, blocks * (blocks - 1) / 2);
  }
}
END_TEST

START_TEST(small_blocks_and_aligned_ones_begin_with_their_slab) {
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    struct wr_span *slab = make(4096, class);
    if (wr_sizeclass_spacing(class, WR_UNIT_SHIFT) == 0) {
      ck_assert_ptr_eq(slab->base, wr_extent_base(slab));
      ck_assert_uint_eq(wr_slab_step(slab), slab->block);
    }
    wr_slab_retire(slab);
    ck_assert_ptr_eq(slab->base, wr_extent_base(slab));
    wr_span_check(spans);
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
    size_t length = wr_extent_length(slab) - wr_slab_lead(slab), block = slab->block, next = 0;
    carve_all(slab);
    for (size_t offset = 0; offset < length; offset++) {
      bool is_block = offset == next && offset + block <= length;
      if (offset == next)
        next += wr_slab_step(slab);
      if (wr_slab_holds(slab, slab->base + offset) != is_block)
        ck_abort_msg("block %zu, offset %zu", block, offset);
    }
    ck_assert(!wr_slab_holds(slab, slab->base + length));
    ck_assert(!wr_slab_holds(slab, slab->base + slab->extent));
    for (size_t i = 1; i <= 64; i++)
      ck_assert(!wr_slab_holds(slab, (char *)((uintptr_t)slab->base - i * wr_slab_step(slab))));
    ck_assert(!wr_slab_holds(slab, NULL));
    ck_assert(!wr_slab_holds(slab, (char *)((uintptr_t)slab->base | (uintptr_t)1 << 56)));
  }
}
END_TEST

START_TEST(the_last_given_back_is_taken_first) {
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    struct wr_span *slab = make(4096, class);
    void *block[7];
    for (int i = 0; i < 7; i++) {
      if (wr_slab_free(slab) == NULL)
        ck_assert(wr_slab_carve(slab));
      block[i] = wr_slab_pop(slab);
      ck_assert_ptr_nonnull(block[i]);
      ck_assert(!wr_slab_is_marked(slab, block[i]));
      memset(block[i], 0xff, slab->block);
    }
    for (size_t i = 0; i < 7; i++) {
      ck_assert_uint_eq(wr_slab_push(slab, block[i]), 6 - i);
      ck_assert(wr_slab_is_marked(slab, block[i]));
      ck_assert(wr_slab_is_free(slab, block[i]));
      ck_assert(i == 6 || !wr_slab_is_free(slab, block[i + 1]));
    }
    for (int i = 6; i >= 0; i--)
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
           blocks_over_2_KiB_begin_in_many_places_of_their_pages,
           small_blocks_and_aligned_ones_begin_with_their_slab, what_is_not_carved_is_no_block,
           exactly_the_multiples_are_blocks, the_last_given_back_is_taken_first,
           use_tells_whether_a_block_was_taken, a_link_that_leads_out_of_the_slab_stops_the_program,
           a_list_that_runs_in_a_circle_is_walked_to_an_end,
#if WR_CHECK_CHEAP
           a_stolen_slab_starts_anew, a_slab_that_cannot_be_purged_starts_anew_all_the_same,
#endif
           a_retired_slab_is_retained_memory, without_memory_there_is_no_slab)
