/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes that are guests of a larger one's slab: when they are, and when no longer.
 */
#include "heap.h"

#include <string.h>

#include "heaps.h"

#define MIB ((size_t)1 << 20)

static unsigned class_of(const void *block) {
  return slab_of(block)->class;
}

START_TEST(few_blocks_of_many_sizes_share_slabs) {
  unsigned classes = wr_sizeclass_of(WR_SIZECLASS_HOST_MAX) + 1;
  begin(64 * MIB);
  for (unsigned class = classes; class -- > 0;) {
    size_t size = wr_sizeclass_block(class);
    void *block = take(class);
    ck_assert_uint_ge(slab_of(block)->block, size);
    ck_assert_uint_le(slab_of(block)->block, 2 * size);
    ck_assert_uint_eq((uintptr_t)block % (size & -size), 0);
    wr_free_give(block);
    ck_assert_ptr_eq(take(class), block);
    check();
  }
  /* 16 to 2048 bytes, and some that are aligned better than what is above them. */
  ck_assert_uint_le(slabs(), 13);
}
END_TEST

START_TEST(a_guest_gets_a_slab_of_its_own_when_its_hosts_have_no_block) {
  unsigned host = wr_sizeclass_of(1024), guest = wr_sizeclass_of(640), taken = 1;
  begin(64 * MIB);
  (void)take(host);
  while (class_of(take(guest)) == host)
    taken++;
  ck_assert_uint_eq(taken, 4);
  for (int i = 0; i < 100; i++)
    ck_assert_uint_eq(class_of(take(guest)), guest);
  /* The host's class is as it was. */
  ck_assert_uint_eq(class_of(take(host)), host);
  check();
}
END_TEST

START_TEST(a_slab_that_goes_is_no_longer_its_guests) {
  unsigned host = wr_sizeclass_of(1024), guest = wr_sizeclass_of(640);
  for (int way = 0; way < 4; way++) {
    void *own, *other;
    begin(way == 0 ? 0 : 64 * MIB);
    own = take(host);
    other = take(guest);
    ck_assert_ptr_eq(slab_of(own), slab_of(other));
    wr_free_give(own);
    if (way == 1)
      give_remote(other);
    else
      wr_free_give(other);
    if (way > 1) {
      wr_heap_self = way == 2 ? &wr_heap_unborn : heap;
      wr_heap_trim(heap);
      wr_heap_self = heap;
    }
    check();
    other = take(guest);
    own = take(host);
    ck_assert_ptr_ne(own, other);
    memset(other, 1, 640);
    memset(own, 2, 1024);
    ck_assert_int_eq(*(char *)other, 1);
    check();
  }
}
END_TEST

START_TEST(a_full_slab_has_no_guests) {
  unsigned host = wr_sizeclass_of(1024), guest = wr_sizeclass_of(640);
  void *first;
  begin(64 * MIB);
  (void)take(host);
  first = take(guest);
  /* So many that the first slab has been found dry twice. */
  for (int i = 0; i < 300; i++)
    (void)take(host);
  ck_assert_uint_ne(atomic_load(&slab_of(first)->owner) & WR_OWNER_FULL, 0);
  check();
  /* Another thread puts the block back for its owner, who is not to take it without the lock. */
  give_remote(first);
  wr_heap_self = &wr_heap_unborn;
  wr_heap_help(heap);
  wr_heap_self = heap;
  ck_assert_ptr_null(wr_heap_take(heap, guest));
  check();
}
END_TEST

START_TEST(where_memory_is_out_a_class_with_slabs_is_a_guest_too) {
  unsigned host = wr_sizeclass_of(1024), guest = wr_sizeclass_of(640);
  void *first, *block;
  begin(64 * MIB);
  first = take(host);
  do
    block = take(guest);
  while (class_of(block) == host);
  while (wr_slab_free(slab_of(block)) != NULL)
    ck_assert_uint_eq(class_of(take(guest)), guest);
  arena->spans.limit = wr_extent_committed(&arena->spans);
  ck_assert_ptr_null(wr_heap_refill(heap, guest, &stale));
  wr_free_give(first);
  ck_assert_ptr_eq(take(guest), first);
  ck_assert_ptr_null(wr_heap_refill(heap, guest, &stale));
  check();
  /* Its own have not been forgotten for that. */
  wr_free_give(block);
  ck_assert_ptr_eq(take(guest), block);
  check();
}
END_TEST

UNIT_SUITE(heap_guest, few_blocks_of_many_sizes_share_slabs,
           a_guest_gets_a_slab_of_its_own_when_its_hosts_have_no_block,
           a_slab_that_goes_is_no_longer_its_guests, a_full_slab_has_no_guests,
           where_memory_is_out_a_class_with_slabs_is_a_guest_too)
