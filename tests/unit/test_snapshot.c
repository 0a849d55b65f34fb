/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics against what the test itself counts.
 */
#include "snapshot.h"

#include <pthread.h>
#include <string.h>

#include "heaps.h"
#include "init.h"
#include "weir.h"

#define MIB ((size_t)1 << 20)

static struct wr_snapshot snapshot;
static const weir_stats_t *const stats = &snapshot.stats;

static struct wr_span *take_payload(size_t size) {
  struct wr_span *span = wr_span_take(&arena->spans, size, 1, &stale);
  ck_assert_ptr_nonnull(span);
  fake_touch(span->user, span->usable);
  return span;
}

/* The sums that hold whatever happened. */
static void snap(void) {
  uint64_t live = 0, slabs = 0;
  wr_snapshot_take(arena, &snapshot);
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    ck_assert_uint_eq(snapshot.classes[class].block, wr_sizeclass_block(class));
    live += snapshot.classes[class].live * snapshot.classes[class].block;
    slabs += snapshot.classes[class].slabs;
  }
  ck_assert_uint_le(live, stats->live);
  ck_assert(slabs > 0 || live == 0);
  ck_assert_uint_eq(stats->committed,
                    stats->active + wr_counter_read(&arena->spans.retain.total) + stats->meta);
  ck_assert_uint_le(stats->live, stats->active);
  ck_assert_uint_le(stats->live + stats->retained + stats->fragmented + stats->meta,
                    stats->committed);
  ck_assert_uint_le(stats->committed, stats->reserved);
  ck_assert_uint_ge(stats->peak_active, stats->active);
  ck_assert_uint_ge(stats->peak_committed, stats->committed);
  ck_assert_uint_eq(stats->reserved, fake_mapped());
  ck_assert_uint_eq(stats->heaps, wr_counter_read(&arena->heap_count));
  ck_assert_uint_eq(stats->sys_map, fake_calls(FAKE_MAP));
  ck_assert_uint_eq(stats->sys_unmap, fake_calls(FAKE_UNMAP));
  ck_assert_uint_eq(stats->sys_purge, fake_calls(FAKE_PURGE));
  ck_assert_uint_eq(stats->sys_advise, fake_calls(FAKE_HUGE));
  ck_assert_uint_eq(stats->sys_probe, fake_calls(FAKE_RESIDENT));
  ck_assert_uint_eq(stats->sys_move, fake_calls(FAKE_MOVE));
}

START_TEST(an_unused_arena) {
  arena = fake_arena(4096, 5 * MIB);
  snap();
  ck_assert_uint_eq(stats->live + stats->retained + stats->fragmented + stats->active, 0);
  ck_assert_uint_eq(stats->committed + stats->reserved + stats->heaps, 0);
  ck_assert_uint_eq(stats->mark, 5 * MIB);
}
END_TEST

START_TEST(an_untouched_snapshot_of_no_init) {
  /* The process's arena may be asked before it is brought up. */
  wr_snapshot_take(&wr_arena_default, &snapshot);
  ck_assert_uint_eq(stats->live, 0);
}
END_TEST

START_TEST(payloads_live_and_retained) {
  struct wr_span *one, *two;
  begin(64 * MIB);
  one = take_payload(MIB + 1);
  two = take_payload(3 * MIB);
  snap();
  /* The first does not begin with its first page. */
  ck_assert_uint_eq(stats->live, one->usable + two->usable);
  ck_assert_uint_lt(stats->live, 4 * MIB + 4096);
  ck_assert_uint_eq(stats->active, 4 * MIB + 4096);
  ck_assert_uint_eq(stats->retained, 0);
  ck_assert_uint_eq(stats->live + stats->fragmented, 4 * MIB + 4096);
  ck_assert_uint_eq(stats->fresh_commits, 2);
  ck_assert_uint_eq(stats->fresh_bytes, 4 * MIB + 4096);
  ck_assert_uint_eq(stats->span_hits, 0);
  ck_assert(wr_span_give(one, one->user));
  snap();
  ck_assert_uint_eq(stats->live, 3 * MIB);
  ck_assert_uint_eq(stats->retained, MIB + 4096);
  ck_assert_uint_eq(stats->peak_active, 4 * MIB + 4096);
  ck_assert_ptr_eq(take_payload(MIB + 1), one);
  snap();
  ck_assert_uint_eq(stats->span_hits, 1);
  ck_assert_uint_eq(stats->fresh_commits, 2);
  ck_assert_uint_eq(stats->retained, 0);
  ck_assert(wr_span_give(one, one->user));
  ck_assert(wr_span_give(two, two->user));
  wr_heap_set_mark(arena, MIB);
  snap();
  ck_assert_uint_eq(stats->retained, MIB);
  ck_assert_uint_eq(stats->purged_bytes, 3 * MIB + 4096);
  ck_assert_uint_eq(stats->purges, fake_calls(FAKE_PURGE));
  ck_assert_uint_eq(stats->peak_retained, 4 * MIB + 4096);
}
END_TEST

START_TEST(slabs_live_and_fragmented) {
  begin(64 * MIB);
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    size_t size = wr_sizeclass_block(class);
    void *block[3];
    uint64_t live, fragmented, touched, room;
    const struct wr_span *slab;
    snap();
    live = stats->live;
    fragmented = stats->fragmented;
    for (int i = 0; i < 3; i++)
      block[i] = take(class);
    slab = wr_pagemap_find(block[0]);
    ck_assert_ptr_nonnull(slab);
    touched = wr_counter_read(&slab->touched);
    room = 0;
    while (wr_slab_lead(slab) + room * wr_slab_step(slab) + size <= touched)
      room++;
    snap();
    ck_assert_uint_eq(stats->live, live + 3 * size);
    ck_assert_uint_eq(stats->fragmented, fragmented + touched - 3 * size);
    ck_assert_uint_eq(snapshot.classes[class].slabs, 1);
    ck_assert_uint_eq(snapshot.classes[class].live, 3);
    ck_assert_uint_eq(snapshot.classes[class].free, room - 3);
    wr_free_give(block[1]);
    snap();
    ck_assert_uint_eq(stats->live, live + 2 * size);
    ck_assert_uint_eq(stats->fragmented, fragmented + touched - 2 * size);
    ck_assert_uint_eq(snapshot.classes[class].live, 2);
    ck_assert_uint_eq(snapshot.classes[class].free, room - 2);
  }
}
END_TEST

START_TEST(an_empty_slab_that_is_kept_is_retained) {
  void *block;
  begin(64 * MIB);
  block = take(10);
  wr_free_give(block);
  snap();
  ck_assert_uint_eq(stats->live + stats->fragmented, 0);
  ck_assert_uint_eq(stats->retained, 4096);
  ck_assert_uint_eq(snapshot.classes[10].slabs, 1);
  ck_assert_uint_eq(snapshot.classes[10].live, 0);
}
END_TEST

START_TEST(what_is_on_its_way_back_is_free) {
  void *block[20];
  uint64_t both;
  begin(64 * MIB);
  for (int i = 0; i < 20; i++)
    block[i] = take(5);
  snap();
  both = stats->live + stats->fragmented;
  wr_heap_self = &wr_heap_unborn;
  for (int i = 0; i < 15; i++)
    wr_free_give(block[i]);
  snap();
  ck_assert_uint_eq(stats->live, 5 * wr_sizeclass_block(5));
  ck_assert_uint_eq(stats->live + stats->fragmented, both);
  ck_assert_uint_eq(snapshot.classes[5].live, 5);
  ck_assert_uint_eq(stats->remote_frees, 0);
  wr_heap_attend(heap, false);
  snap();
  ck_assert_uint_eq(stats->live, 5 * wr_sizeclass_block(5));
  ck_assert_uint_eq(stats->remote_frees, 15);
}
END_TEST

START_TEST(random_use_with_shadow_counts) {
  for (uint64_t seed = 1; seed <= 4; seed++) {
    struct {
      void *block;
      struct wr_span *span;
      size_t bytes;
      unsigned class;
    } live[200];
    uint64_t state = seed * 99991, count[WR_CLASSES] = {0}, sum = 0;
    memset(live, 0, sizeof live);
    begin(seed % 2 == 0 ? 8 * MIB : 300000);
    for (int step = 0; step < 2500; step++) {
      size_t i = unit_below(&state, 200);
      if (live[i].bytes == 0 && unit_below(&state, 8) == 0) {
        live[i].span = take_payload(65537 + unit_below(&state, MIB));
        sum += live[i].bytes = live[i].span->usable;
      } else if (live[i].bytes == 0) {
        live[i].span = NULL;
        live[i].block = take((unsigned)unit_below(&state, WR_CLASSES));
        /* A block of another class may stand in. */
        live[i].class = wr_extent_at(&arena->spans, live[i].block)->class;
        sum += live[i].bytes = wr_sizeclass_block(live[i].class);
        count[live[i].class]++;
      } else {
        sum -= live[i].bytes;
        live[i].bytes = 0;
        if (live[i].span != NULL) {
          ck_assert(wr_span_give(live[i].span, live[i].span->user));
        } else {
          wr_heap_self = unit_below(&state, 3) == 0 ? &wr_heap_unborn : heap;
          wr_free_give(live[i].block);
          wr_heap_self = heap;
          count[live[i].class]--;
        }
      }
      if (step % 50 != 0)
        continue;
      /* The record of the fake is finite. */
      wr_snapshot_take(arena, &snapshot);
      ck_assert_uint_eq(stats->live, sum);
      for (unsigned class = 0; class < WR_CLASSES; class ++)
        ck_assert_uint_eq(snapshot.classes[class].live, count[class]);
      ck_assert_uint_le(wr_counter_read(&arena->spans.retain.total), stats->mark);
      ck_assert_uint_le(stats->live + stats->retained + stats->fragmented + stats->meta,
                        stats->committed);
    }
  }
}
END_TEST

START_TEST(what_a_caller_knows_of_the_structure) {
  struct {
    weir_stats_t stats;
    unsigned char behind[64];
  } room;
  void *block = weir_malloc(1000);
  memset(&room, 0xee, sizeof room);
  weir_stats(&room.stats, sizeof(uint64_t));
  ck_assert_uint_eq(room.stats.live, weir_usable_size(block));
  ck_assert_uint_eq(room.stats.retained, UINT64_C(0xeeeeeeeeeeeeeeee));
  weir_stats(&room.stats, sizeof room.stats + 32);
  ck_assert_uint_eq(room.stats.live, weir_usable_size(block));
  for (int i = 0; i < 64; i++)
    ck_assert_uint_eq(room.behind[i], i < 32 ? 0 : 0xee);
  weir_free(block);
}
END_TEST

START_TEST(classes_fill_as_many_as_there_is_room_for) {
  weir_class_stats_t classes[WR_CLASSES + 1];
  void *block = weir_malloc(1);
  memset(classes, 0xee, sizeof classes);
  ck_assert_uint_eq(weir_class_stats(NULL, 0), WR_CLASSES);
  ck_assert_uint_eq(weir_class_stats(classes, 1), WR_CLASSES);
  ck_assert_uint_eq(classes[0].block, 16);
  ck_assert_uint_eq(classes[0].live, 1);
  ck_assert_uint_eq(classes[1].block, UINT64_C(0xeeeeeeeeeeeeeeee));
  ck_assert_uint_eq(weir_class_stats(classes, WR_CLASSES + 1), WR_CLASSES);
  ck_assert_uint_eq(classes[WR_CLASSES - 1].block, WR_BLOCK_MAX);
  ck_assert_uint_eq(classes[WR_CLASSES].block, UINT64_C(0xeeeeeeeeeeeeeeee));
  weir_free(block);
}
END_TEST

#define THREADS 3

static _Atomic(int) running;

/* Makes and gives back slabs of all classes, so that walks meet them in every state. */
static void *make_slabs(void *argument) {
  uint64_t state = (uintptr_t)argument;
  for (int round = 0; round < 60; round++) {
    void *block[120];
    for (int i = 0; i < 120; i++)
      block[i] = weir_malloc(unit_below(&state, 140000));
    for (int i = 0; i < 120; i++)
      weir_free(block[i]);
  }
  atomic_fetch_sub(&running, 1);
  return NULL;
}

START_TEST(snapshots_while_threads_make_slabs) {
  pthread_t thread[THREADS];
  weir_set_retain(2 * MIB);
  atomic_store(&running, THREADS);
  for (uintptr_t i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, make_slabs, (void *)(i + 1)), 0);
  while (atomic_load(&running) > 0) {
    wr_snapshot_take(&wr_arena_default, &snapshot);
    for (unsigned class = 0; class < WR_CLASSES; class ++)
      ck_assert_uint_le(snapshot.classes[class].slabs, 100000);
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(thread[i], NULL);
  wr_snapshot_take(&wr_arena_default, &snapshot);
  ck_assert_uint_eq(stats->live, 0);
}
END_TEST

UNIT_SUITE(snapshot, an_unused_arena, an_untouched_snapshot_of_no_init, payloads_live_and_retained,
           slabs_live_and_fragmented, an_empty_slab_that_is_kept_is_retained,
           what_is_on_its_way_back_is_free, random_use_with_shadow_counts,
           what_a_caller_knows_of_the_structure, classes_fill_as_many_as_there_is_room_for,
           snapshots_while_threads_make_slabs)
