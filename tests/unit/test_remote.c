/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks on their way back: what several threads push is taken once and whole, and the amount that
 * a push tells is that of what is there.
 */
#include "remote.h"

#include <pthread.h>

#include "unit.h"

enum { THREADS = 4, EACH = 20000 };

static struct wr_remote remote;
static struct wr_block blocks[THREADS][EACH];

START_TEST(what_is_pushed_last_comes_first) {
  remote = (struct wr_remote){0};
  ck_assert(wr_remote_is_empty(&remote));
  for (int i = 0; i < 3; i++)
    (void)wr_remote_give(&remote, &blocks[0][i], 64);
  ck_assert(!wr_remote_is_empty(&remote));
  ck_assert_ptr_eq(wr_remote_peek(&remote), &blocks[0][2]);
  ck_assert_ptr_eq(wr_remote_take_all(&remote), &blocks[0][2]);
  ck_assert_ptr_eq(blocks[0][2].next, &blocks[0][1]);
  ck_assert_ptr_eq(blocks[0][1].next, &blocks[0][0]);
  ck_assert_ptr_null(blocks[0][0].next);
  ck_assert(wr_remote_is_empty(&remote));
  ck_assert_ptr_null(wr_remote_take_all(&remote));
}
END_TEST

#if UINTPTR_MAX > UINT32_MAX
START_TEST(the_amount_counts_units_and_does_not_wrap) {
  size_t amount = 0;
  remote = (struct wr_remote){0};
  ck_assert_uint_eq(wr_remote_give(&remote, &blocks[0][0], 16), 1);
  ck_assert_uint_eq(wr_remote_give(&remote, &blocks[0][1], 64), 2);
  ck_assert_uint_eq(wr_remote_give(&remote, &blocks[0][2], 65536), 2 + 1024);
  for (int i = 3; i < 200; i++)
    amount = wr_remote_give(&remote, &blocks[0][i], 65536);
  ck_assert_uint_eq(amount, WR_REMOTE_AMOUNT_MAX);
  ck_assert_ptr_eq(wr_remote_take_all(&remote), &blocks[0][199]);
  ck_assert_uint_eq(wr_remote_give(&remote, &blocks[0][0], 16), 1);
}
END_TEST
#endif

static void *push_all(void *argument) {
  struct wr_block *own = argument;
  for (int i = 0; i < EACH; i++)
    (void)wr_remote_give(&remote, &own[i], 64);
  return NULL;
}

START_TEST(no_block_is_lost_or_taken_twice) {
  pthread_t thread[THREADS];
  size_t taken = 0;
  remote = (struct wr_remote){0};
  for (int i = 0; i < THREADS; i++)
    for (int j = 0; j < EACH; j++)
      blocks[i][j].mark = 0;
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, push_all, blocks[i]), 0);
  while (taken < (size_t)THREADS * EACH)
    for (struct wr_block *block = wr_remote_take_all(&remote); block != NULL; taken++) {
      ck_assert_uint_eq(block->mark++, 0);
      block = block->next;
    }
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
  ck_assert(wr_remote_is_empty(&remote));
}
END_TEST

#if UINTPTR_MAX > UINT32_MAX
UNIT_SUITE(remote, what_is_pushed_last_comes_first, the_amount_counts_units_and_does_not_wrap,
           no_block_is_lost_or_taken_twice)
#else
UNIT_SUITE(remote, what_is_pushed_last_comes_first, no_block_is_lost_or_taken_twice)
#endif
