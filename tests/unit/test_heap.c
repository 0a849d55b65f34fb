/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps: which block comes next, what happens to full and to empty slabs, blocks that others free,
 * and trimming while the heap's thread sleeps. The test plays every thread itself; real ones are in
 * test_thread.c.
 */
#include "heap.h"

#include <errno.h>
#include <string.h>

#include "heaps.h"

#define MIB ((size_t)1 << 20)

/* Whether the slab that a thread takes from can be emptied without the thread's help. */
static bool can_steal(void) {
  return WR_CHECK_CHEAP && wr_os_barrier();
}

static size_t retained(void) {
  return wr_counter_read(&arena->spans.retain.total);
}

static size_t active(void) {
  return wr_keep_active(&arena->spans);
}

START_TEST(the_last_given_back_is_taken_first_in_every_class) {
  begin(64 * MIB);
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    /* A slab has at least seven blocks; one stays, so that the slab does too. */
    void *block[7];
    for (int i = 0; i < 7; i++)
      block[i] = take(class);
    for (int i = 1; i < 7; i++)
      wr_free_give(block[i]);
    for (int i = 6; i > 0; i--)
      ck_assert_ptr_eq(take(class), block[i]);
    check();
  }
}
END_TEST

START_TEST(blocks_do_not_overlap) {
  begin(64 * MIB);
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    static void *block[9000];
    size_t size = wr_sizeclass_block(class);
    int count = (int)(3 * ((size_t)wr_sizeclass_units(class, WR_UNIT_SHIFT) << 16) / size / 2);
    for (int i = 0; i < count; i++) {
      block[i] = take(class);
      memset(block[i], 0, size);
      *(int *)block[i] = i;
      ((unsigned char *)block[i])[size - 1] = 0xee;
    }
    check();
    for (int i = 0; i < count; i++) {
      if (*(int *)block[i] != i || ((unsigned char *)block[i])[size - 1] != 0xee)
        ck_abort_msg("block %d of %zu bytes was overwritten", i, size);
    }
    for (int i = 0; i < count; i++)
      wr_free_give(block[(int)((size_t)i * 7919 % (size_t)count)]);
    /* 7919 is prime and no divisor of any of the counts: each block went once. */
    check();
    ck_assert_uint_eq(wr_slab_used(wr_heap_current(heap, class)), 0);
  }
  wr_heap_attend(heap, false);
  ck_assert_uint_eq(active(), 0);
}
END_TEST

START_TEST(an_empty_slab_is_kept) {
  void *block;
  begin(MIB);
  block = take(4);
  wr_free_give(block);
  fake_forget();
  for (int i = 0; i < 1000; i++) {
    ck_assert_ptr_eq(take(4), block);
    wr_free_give(block);
  }
  ck_assert_uint_eq(fake_calls(FAKE_ANY), 0);
  ck_assert_uint_eq(retained(), 0);
  /* What is touched of it counts. */
  ck_assert_uint_eq(heap->pinned_bytes, 4096);
  check();
}
END_TEST

START_TEST(below_a_mark_of_one_mib_none_is_kept) {
  begin(MIB - 1);
  wr_free_give(take(4));
  ck_assert_uint_eq(heap->pinned_bytes, 0);
  ck_assert_uint_eq(slabs(), 0);
  ck_assert_uint_eq(retained(), 4096);
  check();
  begin(0);
  wr_free_give(take(4));
  ck_assert_uint_eq(slabs(), 0);
  ck_assert_uint_eq(retained(), 0);
  ck_assert_uint_eq(fake_calls(FAKE_PURGE), 1);
  check();
}
END_TEST

START_TEST(empty_slabs_are_kept_up_to_one_mib) {
  void *block[WR_CLASSES][3];
  begin(64 * MIB);
  /* Three blocks of each: 1.9 MiB in all. */
  for (unsigned class = 0; class < WR_CLASSES; class ++)
    for (int i = 0; i < 3; i++)
      block[class][i] = take(class);
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    for (int i = 0; i < 3; i++)
      wr_free_give(block[class][i]);
    ck_assert_uint_le(heap->pinned_bytes, MIB);
    check();
  }
  ck_assert_uint_ge(heap->pinned_bytes, MIB / 2);
  ck_assert_uint_gt(retained(), 0);
}
END_TEST

/* Fills slabs of the class until `slabs` of them are full and one has a block; returns the blocks,
 * in order. */
static void **fill(unsigned class, size_t full, size_t *count) {
  static void *block[20000];
  *count = full * (((size_t)wr_sizeclass_units(class, WR_UNIT_SHIFT) << 16) /
                   wr_sizeclass_block(class)) +
           1;
  for (size_t i = 0; i < *count; i++)
    block[i] = take(class);
  return block;
}

START_TEST(stale_says_what_of_a_block_may_not_be_zero) {
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    size_t size = wr_sizeclass_block(class);
    unsigned char *block[3];
    begin(64 * MIB);
    for (int i = 0; i < 3; i++) {
      stale = SIZE_MAX;
      block[i] = take(class);
      /* Of new memory, where a carved page gives one block: the link and the mark, and what lies
       * in a page with the block before. */
      if (size > 2048)
        ck_assert_uint_le(stale, i == 0 ? sizeof(struct wr_block) : 4096);
      for (size_t at = stale; at < size; at++)
        ck_assert_uint_eq(block[i][at], 0);
      memset(block[i], 0xa5, size);
    }
    for (int i = 0; i < 3; i++)
      wr_free_give(block[i]);
    /* At a thread's end its slabs go, but their memory is kept as it is. */
    wr_heap_attend(heap, false);
    wr_heap_attend(heap, true);
    block[0] = take(class);
    ck_assert_uint_ge(stale, size);
  }
}
END_TEST

START_TEST(of_two_empty_slabs_one_is_kept) {
  size_t count;
  void **block;
  begin(64 * MIB);
  block = fill(20, 2, &count);
  ck_assert_uint_eq(slabs(), 3);
  for (size_t i = 0; i < count; i++) {
    wr_free_give(block[i]);
    check();
  }
  ck_assert_uint_eq(slabs(), 1);
  ck_assert_uint_eq(retained(), 2 * 65536);
}
END_TEST

START_TEST(a_full_slab_is_unlisted_until_a_block_comes_back) {
  size_t count;
  void **block;
  struct wr_span *first;
  begin(64 * MIB);
  block = fill(20, 2, &count);
  first = slab_of(block[0]);
  ck_assert_uint_eq(atomic_load(&first->owner), (uintptr_t)heap | WR_OWNER_FULL);
  ck_assert_ptr_ne(slab_of(block[count - 1]), first);
  check();
  wr_free_give(block[5]);
  ck_assert_uint_eq(atomic_load(&first->owner), (uintptr_t)heap);
  ck_assert_ptr_eq(wr_heap_current(heap, 20), first);
  check();
  ck_assert_ptr_eq(take(20), block[5]);
  /* The last slab serves when this one has run dry again. */
  ck_assert_ptr_eq(slab_of(take(20)), slab_of(block[count - 1]));
  check();
}
END_TEST

START_TEST(a_slab_that_has_run_dry_stays_listed_as_long_as_blocks_come_back) {
  size_t count;
  void **block;
  struct wr_span *first;
  begin(64 * MIB);
  block = fill(20, 1, &count);
  first = slab_of(block[0]);
  for (int round = 0; round < 5; round++) {
    ck_assert_uint_eq(atomic_load(&first->owner), (uintptr_t)heap);
    wr_free_give(block[round]);
    ck_assert_ptr_eq(take(20), block[round]);
    /* The first slab is dry again, and found so in the list when the last slab is dry, too. */
    while (slab_of(take(20)) == slab_of(block[count - 1]))
      continue;
    check();
    count++;
    block[count - 1] = take(20);
  }
  /* Two slabs more run dry, and no block of it comes back. */
  for (int i = 0; i < 2; i++) {
    block[count - 1] = take(20);
    while (slab_of(take(20)) == slab_of(block[count - 1]))
      continue;
    check();
  }
  ck_assert_uint_eq(atomic_load(&first->owner), (uintptr_t)heap | WR_OWNER_FULL);
  wr_free_give(block[0]);
  ck_assert_ptr_eq(take(20), block[0]);
}
END_TEST

static void visit(void *context, const struct wr_span *slab) {
  (void)slab;
  ++*(size_t *)context;
}

static size_t pending(void) {
  size_t count = 0;
  wr_heap_each_pending(heap, visit, &count);
  return count;
}

START_TEST(what_others_free_comes_back_64_at_a_time) {
  void *block[256];
  begin(64 * MIB);
  for (int i = 0; i < 256; i++)
    block[i] = take(0);
  for (int i = 0; i < 200; i++)
    give_remote(block[i]);
  ck_assert_uint_eq(pending(), 200);
  ck_assert_uint_eq(wr_slab_used(slab_of(block[0])), 256);
  for (size_t back = 64; back <= 192; back += 64) {
    /* The first takes the slow path, the others find what it put back. */
    ck_assert_ptr_eq(slab_of(take(0)), slab_of(block[0]));
    ck_assert_uint_eq(wr_counter_read(&heap->remote_frees), back);
    ck_assert_uint_eq(pending(), 200 - back);
    check();
    for (int i = 1; i < 64; i++)
      ck_assert_ptr_nonnull(wr_heap_take(heap, 0));
    ck_assert_ptr_null(wr_heap_take(heap, 0));
  }
  (void)take(0);
  ck_assert_uint_eq(wr_counter_read(&heap->remote_frees), 200);
  ck_assert_uint_eq(pending(), 0);
  check();
}
END_TEST

START_TEST(a_block_on_its_way_back_is_free) {
  void *block;
  begin(64 * MIB);
  block = take(3);
  (void)take(3);
  ck_assert(!wr_heap_is_free(heap, slab_of(block), block));
  give_remote(block);
  ck_assert(wr_heap_is_free(heap, slab_of(block), block));
}
END_TEST

START_TEST(a_heap_without_a_thread_is_served_by_whoever_frees) {
  void *block[300];
  begin(64 * MIB);
  for (int i = 0; i < 300; i++)
    block[i] = take(0);
  ck_assert(!wr_heap_give_unattended(heap, slab_of(block[0]), block[0]));
  give_remote(block[0]);
  ck_assert_uint_eq(pending(), 1);
  wr_heap_attend(heap, false);
  ck_assert_uint_eq(pending(), 0);
  for (int i = 1; i < 300; i++) {
    give_remote(block[i]);
    ck_assert_uint_eq(pending(), 0);
    check();
  }
  wr_heap_trim(heap);
  ck_assert_uint_eq(slabs(), 0);
  ck_assert_uint_eq(active(), 0);
  wr_heap_attend(heap, true);
  (void)take(0);
  check();
}
END_TEST

START_TEST(when_its_thread_goes_empty_slabs_are_given_back) {
  begin(64 * MIB);
  for (unsigned class = 0; class < WR_CLASSES; class += 5)
    wr_free_give(take(class));
  ck_assert_uint_gt(slabs(), 0);
  wr_heap_attend(heap, false);
  ck_assert_uint_eq(slabs(), 0);
  ck_assert_uint_eq(heap->pinned_bytes, 0);
  check();
}
END_TEST

START_TEST(trimming_takes_empty_slabs_though_they_are_current) {
  void *kept[WR_CLASSES], *spare[WR_CLASSES];
  size_t before;
  if (!can_steal())
    return;
  begin(64 * MIB);
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    kept[class] = take(class);
    memset(kept[class], 0x11, wr_sizeclass_block(class));
    spare[class] = take(class);
  }
  for (unsigned class = 0; class < WR_CLASSES; class ++)
    wr_free_give(spare[class]);
  before = active();
  wr_heap_trim(heap);
  ck_assert_uint_eq(active(), before);
  check();
  for (unsigned class = 0; class < 16; class ++)
    wr_free_give(kept[class]);
  (void)wr_heap_trim_all(arena, 0);
  check();
  ck_assert_uint_eq(retained(), 0);
  for (unsigned class = 0; class < 16; class ++)
    ck_assert(slab_of(kept[class]) == NULL || wr_counter_read(&slab_of(kept[class])->touched) == 0);
  for (unsigned class = 16; class < WR_CLASSES; class ++)
    ck_assert_int_eq(*(char *)kept[class], 0x11);
  /* The thread goes on as if nothing had been. */
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    void *block = take(class);
    memset(block, 0x22, wr_sizeclass_block(class));
    check();
    wr_free_give(block);
    check();
  }
}
END_TEST

START_TEST(trimming_asks_no_more_where_the_kernel_refuses) {
  size_t before;
  if (!can_steal())
    return;
  begin(64 * MIB);
  for (unsigned class = 0; class < WR_CLASSES; class += 5)
    wr_free_give(take(class));
  before = active();
  fake_forget();
  fake.refusal = EINVAL;
  wr_heap_self = &wr_heap_unborn;
  wr_heap_trim(heap);
  ck_assert_uint_eq(fake_calls(FAKE_PURGE), 1);
  ck_assert_uint_eq(active(), before);
  wr_heap_self = heap;
  /* All are as if just made, and can be trimmed again when the kernel agrees. */
  fake.refusal = 0;
  for (unsigned class = 0; class < WR_CLASSES; class += 5)
    wr_free_give(take(class));
  wr_heap_self = &wr_heap_unborn;
  wr_heap_trim(heap);
  ck_assert_uint_eq(active(), 0);
  check();
}
END_TEST

START_TEST(a_slab_whose_memory_was_taken_goes_with_the_thread) {
  if (!can_steal())
    return;
  begin(64 * MIB);
  wr_free_give(take(7));
  (void)wr_heap_trim_all(arena, 0);
  ck_assert_uint_eq(active(), 0);
  wr_heap_attend(heap, false);
  ck_assert_uint_eq(slabs(), 0);
}
END_TEST

START_TEST(trimming_puts_back_what_others_freed_of_full_slabs) {
  size_t count;
  void **block;
  begin(64 * MIB);
  block = fill(20, 2, &count);
  ck_assert_uint_eq(slabs(), 3);
  for (size_t i = 0; i < count - 1; i++)
    give_remote(block[i]);
  wr_heap_trim(heap);
  check();
  /* The first slab is full, and free; of the second only if it was seen to be full too. */
  ck_assert_uint_lt(slabs(), 3);
  ck_assert_uint_le(pending(), count / 2);
  wr_free_give(block[count - 1]);
  for (int i = 0; i < 4; i++)
    (void)take(20);
  check();
}
END_TEST

START_TEST(trimming_all_keeps_as_much_as_it_is_told) {
  struct wr_span *span[4];
  size_t bytes;
  begin(64 * MIB);
  for (int i = 0; i < 4; i++) {
    span[i] = wr_span_take(&arena->spans, MIB, 1, &stale);
    ck_assert_ptr_nonnull(span[i]);
    fake_touch(span[i]->user, MIB);
  }
  for (int i = 0; i < 4; i++)
    ck_assert(wr_span_give(span[i], span[i]->user));
  ck_assert_uint_eq(wr_heap_trim_all(arena, 3 * MIB), MIB);
  ck_assert_uint_eq(retained(), 3 * MIB);
  if (!can_steal())
    return;
  wr_free_give(take(30));
  bytes = retained() + active();
  ck_assert_uint_eq(wr_heap_trim_all(arena, 0), bytes);
  ck_assert_uint_eq(retained() + active(), 0);
  ck_assert_uint_eq(wr_heap_trim_all(arena, 0), 0);
  check();
}
END_TEST

START_TEST(a_mark_below_one_mib_takes_the_kept_slabs) {
  if (!can_steal())
    return;
  begin(64 * MIB);
  wr_free_give(take(9));
  wr_heap_set_mark(arena, 2 * MIB);
  ck_assert_uint_gt(heap->pinned_bytes, 0);
  wr_heap_set_mark(arena, 5000);
  ck_assert_uint_eq(heap->pinned_bytes, 0);
  ck_assert_uint_le(retained() + active(), 5000);
  check();
}
END_TEST

START_TEST(without_memory_nothing_is_lost) {
  void *block[600];
  int taken = 0;
  begin(64 * MIB);
  fake_fail(FAKE_MAP, 3, SIZE_MAX);
  while (taken < 600) {
    void *got = wr_heap_take(heap, 30);
    if (got == NULL)
      got = wr_heap_refill(heap, 30, &stale);
    if (got == NULL)
      break;
    block[taken++] = got;
  }
  ck_assert_int_lt(taken, 600);
  check();
  ck_assert_ptr_null(wr_heap_refill(heap, 30, &stale));
  wr_free_give(block[0]);
  ck_assert_ptr_eq(take(30), block[0]);
  check();
  fake_forget();
  block[taken] = take(30);
  for (int i = 0; i <= taken; i++)
    wr_free_give(block[i]);
  check();
}
END_TEST

START_TEST(without_memory_there_is_no_heap) {
  arena = fake_arena(4096, MIB);
  fake_fail(FAKE_MAP, 1, SIZE_MAX);
  ck_assert_ptr_null(wr_heap_make(arena));
  ck_assert_uint_eq(wr_counter_read(&arena->heap_count), 0);
  fake_forget();
  ck_assert_ptr_nonnull(wr_heap_make(arena));
  ck_assert_uint_eq(wr_counter_read(&arena->heap_count), 1);
}
END_TEST

#define LIVE 400

START_TEST(random_use) {
  static const size_t marks[] = {0, 600000, 64 * MIB, SIZE_MAX};
  for (uint64_t seed = 1; seed <= 8; seed++) {
    struct {
      unsigned char *block;
      size_t size;
    } live[LIVE];
    uint64_t state = seed * 31337;
    memset(live, 0, sizeof live);
    begin(marks[seed % 4]);
    for (int step = 0; step < 6000; step++) {
      size_t i = unit_below(&state, LIVE), what = unit_below(&state, 1000);
      if (live[i].block == NULL) {
        unsigned class = (unsigned)unit_below(&state, unit_below(&state, WR_CLASSES) + 1);
        live[i].size = wr_sizeclass_block(class);
        live[i].block = take(class);
        memset(live[i].block, 0, 16);
        live[i].block[live[i].size - 1] = live[i].block[0] = (unsigned char)i;
      } else {
        ck_assert_uint_eq(live[i].block[0], (unsigned char)i);
        ck_assert_uint_eq(live[i].block[live[i].size - 1], (unsigned char)i);
        if (what % 3 == 0)
          give_remote(live[i].block);
        else
          wr_free_give(live[i].block);
        live[i].block = NULL;
      }
      if (what == 0)
        (void)wr_heap_trim_all(arena, unit_below(&state, MIB));
      if (what < 2 || what == 9)
        wr_heap_attend(heap, what == 9);
      if (what == 1)
        wr_heap_attend(heap, true);
      if (step % 16 == 0)
        check();
    }
    for (int i = 0; i < LIVE; i++)
      if (live[i].block != NULL)
        wr_free_give(live[i].block);
    wr_heap_attend(heap, false);
    check();
    ck_assert_uint_eq(active(), 0);
    ck_assert_uint_eq(pending(), 0);
  }
}
END_TEST

UNIT_SUITE(heap, the_last_given_back_is_taken_first_in_every_class, blocks_do_not_overlap,
           an_empty_slab_is_kept, below_a_mark_of_one_mib_none_is_kept,
           empty_slabs_are_kept_up_to_one_mib, of_two_empty_slabs_one_is_kept,
           stale_says_what_of_a_block_may_not_be_zero,
           a_full_slab_is_unlisted_until_a_block_comes_back,
           a_slab_that_has_run_dry_stays_listed_as_long_as_blocks_come_back,
           what_others_free_comes_back_64_at_a_time, a_block_on_its_way_back_is_free,
           a_heap_without_a_thread_is_served_by_whoever_frees,
           when_its_thread_goes_empty_slabs_are_given_back,
           trimming_takes_empty_slabs_though_they_are_current,
           trimming_asks_no_more_where_the_kernel_refuses,
           a_slab_whose_memory_was_taken_goes_with_the_thread,
           trimming_puts_back_what_others_freed_of_full_slabs,
           trimming_all_keeps_as_much_as_it_is_told, a_mark_below_one_mib_takes_the_kept_slabs,
           without_memory_nothing_is_lost, without_memory_there_is_no_heap, random_use)
