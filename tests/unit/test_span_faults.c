/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans when the source fails, at random, and from many threads: nothing is lost, nothing is handed
 * out twice, the mark holds, and all of it works again afterwards.
 */
#include <pthread.h>
#include <string.h>

#include "fake.h"
#include "span.h"
#include "unit.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static struct wr_arena *arena;
static struct wr_spans *spans;

static void begin(size_t page, size_t mark) {
  arena = fake_arena(page, mark);
  spans = &arena->spans;
}

static size_t retained(void) {
  return wr_counter_read(&spans->retain.total);
}

#define SCRIPT_BLOCKS 24

/* A workload with a bit of everything; what it could not take is NULL. */
struct script {
  struct wr_span *payload[SCRIPT_BLOCKS];
  struct wr_span *slab[SCRIPT_BLOCKS];
  size_t refused;
};

static void take_one(struct script *script, int i) {
  size_t stale;
  if (i % 3 == 0) {
    script->slab[i] = fake_slab(spans, i % 2 == 0 ? 1 : 4);
    if (script->slab[i] != NULL)
      wr_span_touch_slab(script->slab[i], 65536);
    script->refused += script->slab[i] == NULL;
  } else {
    script->payload[i] =
        wr_span_take(spans, 70000 + (size_t)i * 37000, i % 10 == 1 ? 2 * MIB : 1, &stale);
    if (script->payload[i] != NULL)
      fake_touch(script->payload[i]->user, 5000);
    script->refused += script->payload[i] == NULL;
  }
  wr_span_check(spans);
}

static void give_one(struct script *script, int i) {
  if (script->payload[i] != NULL)
    ck_assert(wr_span_give(script->payload[i], script->payload[i]->user));
  if (script->slab[i] != NULL) {
    wr_span_give_slab(script->slab[i]);
    wr_settle(spans);
  }
  script->payload[i] = script->slab[i] = NULL;
  wr_span_check(spans);
}

/* Returns how many requests were answered with NULL. */
static size_t run_script(void) {
  struct script script;
  memset(&script, 0, sizeof script);
  for (int i = 0; i < SCRIPT_BLOCKS; i++)
    take_one(&script, i);
  for (int i = 0; i < SCRIPT_BLOCKS; i += 2)
    give_one(&script, i);
  for (int i = 1; i < SCRIPT_BLOCKS; i += 4)
    if (script.payload[i] != NULL)
      (void)wr_span_resize(script.payload[i], script.payload[i]->usable + 20000);
  for (int i = 3; i < SCRIPT_BLOCKS; i += 4)
    if (script.payload[i] != NULL)
      (void)wr_span_shrink(script.payload[i], script.payload[i]->usable / 5);
  for (int i = 0; i < SCRIPT_BLOCKS; i += 2)
    take_one(&script, i);
  (void)wr_settle_to(spans, 100 * KIB);
  for (int i = 0; i < SCRIPT_BLOCKS; i += 3)
    if (script.slab[i] != NULL && i % 2 == 1)
      (void)wr_span_purge_slab(script.slab[i]);
  for (int i = 0; i < SCRIPT_BLOCKS; i++)
    give_one(&script, i);
  return script.refused;
}

/* Nothing is in use: then all address space is free or retained, and all of it can be given
 * back. */
static void expect_nothing_lost(bool exact_mapped) {
  wr_span_check(spans);
  ck_assert_uint_eq(wr_keep_active(spans), 0);
  (void)wr_settle_to(spans, 0);
  wr_span_check(spans);
  ck_assert_uint_eq(retained(), 0);
  if (exact_mapped) {
    size_t of_meta = fake_mapped() - wr_counter_read(&spans->mapped);
    ck_assert_uint_eq(wr_counter_read(&arena->source.mapped), fake_mapped());
    ck_assert_uint_ge(of_meta, wr_counter_read(&arena->meta.used));
  }
}

/* The n-th call of `kind` fails, and so do the `count` after it; true when there was one. */
static bool run_with_failure(enum fake_kind kind, size_t n, size_t count, bool apart) {
  bool failed;
  size_t refused;
  begin(4096, 2 * MIB);
  fake.ignores_hints = apart;
  fake_fail(kind, n, count);
  refused = run_script();
  failed = fake_failed();
  fake_forget();
  ck_assert(failed || refused == 0);
  /* Only new address space can be missing. */
  ck_assert(refused == 0 || kind == FAKE_MAP || kind == FAKE_ANY);
  expect_nothing_lost(kind != FAKE_UNMAP && kind != FAKE_ANY);
  ck_assert_uint_eq(run_script(), 0);
  expect_nothing_lost(kind != FAKE_UNMAP && kind != FAKE_ANY);
  return failed;
}

static size_t fail_every(enum fake_kind kind, size_t count, bool apart) {
  size_t n = 1;
  while (run_with_failure(kind, n, count, apart))
    n++;
  return n - 1;
}

START_TEST(every_mapping_fails_once) {
  ck_assert_uint_gt(fail_every(FAKE_MAP, 1, false), 5);
}
END_TEST

START_TEST(every_mapping_fails_for_good) {
  ck_assert_uint_gt(fail_every(FAKE_MAP, SIZE_MAX, false), 5);
}
END_TEST

START_TEST(every_mapping_fails_where_none_adjoins) {
  ck_assert_uint_gt(fail_every(FAKE_MAP, 2, true), 5);
}
END_TEST

START_TEST(every_purge_fails) {
  ck_assert_uint_gt(fail_every(FAKE_PURGE, 1, false), 2);
  ck_assert_uint_gt(fail_every(FAKE_PURGE, 3, false), 2);
}
END_TEST

START_TEST(every_probe_fails) {
  ck_assert_uint_gt(fail_every(FAKE_RESIDENT, 1, false), 2);
}
END_TEST

START_TEST(every_call_fails) {
  ck_assert_uint_gt(fail_every(FAKE_ANY, 1, true), 15);
}
END_TEST

/* Random use against a model of what is live. */

#define LIVE 48

struct live {
  struct wr_span *span;
  size_t size;
  unsigned char tag;
};

/* The first and the last byte of each page of a block tell whose it is. */
static void mark_block(const struct live *live) {
  char *user = live->span->user;
  for (size_t at = 0; at < live->size; at += 65536) {
    fake_touch(user + at, 1);
    memset(user + at, live->tag, 1);
  }
  fake_touch(user + live->size - 1, 1);
  memset(user + live->size - 1, live->tag, 1);
}

static void check_block(const struct live *live) {
  const unsigned char *user = (const unsigned char *)live->span->user;
  for (size_t at = 0; at < live->size; at += 65536)
    if (user[at] != live->tag)
      ck_abort_msg("byte %zu was overwritten", at);
  ck_assert_uint_eq(user[live->size - 1], live->tag);
}

static void take_random(struct live *live, uint64_t *state) {
  size_t stale, alignment = (size_t)1 << unit_below(state, 22);
  live->size = 1 + unit_below(state, (size_t)1 << (12 + unit_below(state, 11)));
  live->tag = (unsigned char)(1 + unit_below(state, 255));
  live->span = wr_span_take(spans, live->size, alignment, &stale);
  ck_assert_ptr_nonnull(live->span);
  ck_assert_uint_eq((uintptr_t)live->span->user % alignment, 0);
  ck_assert(live->span->user + live->span->usable <=
            live->span->base + wr_extent_length(live->span));
  for (size_t at = stale; at < live->span->usable; at += 4096)
    if (live->span->user[at] != 0)
      ck_abort_msg("byte %zu is not zero", at);
  mark_block(live);
}

static void resize_random(struct live *live, uint64_t *state) {
  size_t size = live->size / 2 + 1 + unit_below(state, live->size);
  size_t less = live->size / (2 + unit_below(state, 30)) + 1;
  bool shrinks = less < size && unit_below(state, 2) == 0;
  check_block(live);
  if (shrinks ? wr_span_shrink(live->span, less) : wr_span_resize(live->span, size)) {
    size = shrinks ? less : size;
    live->size = size;
    mark_block(live);
  }
}

START_TEST(random_use_keeps_blocks_apart_and_the_mark) {
  static const size_t marks[] = {0, 4096, 3 * MIB, 64 * MIB, SIZE_MAX};
  for (uint64_t seed = 1; seed <= 6; seed++) {
    struct live live[LIVE];
    uint64_t state = seed * 7919;
    size_t mark = marks[seed % 5];
    memset(live, 0, sizeof live);
    begin(fake_pages[seed % 3], mark);
    for (int step = 0; step < 400; step++) {
      struct live *one = &live[unit_below(&state, LIVE)];
      size_t what = unit_below(&state, 20);
      if (one->span == NULL) {
        take_random(one, &state);
      } else if (what < 4) {
        resize_random(one, &state);
      } else if (what == 4) {
        size_t target = unit_below(&state, 8 * MIB);
        (void)wr_settle_to(spans, target);
        ck_assert_uint_le(retained(), target);
      } else if (what == 5 && mark != SIZE_MAX) {
        mark = unit_below(&state, 32 * MIB);
        wr_settle_set_mark(spans, mark);
      } else {
        check_block(one);
        ck_assert(wr_span_give(one->span, one->span->user));
        one->span = NULL;
      }
      ck_assert_uint_le(retained(), mark);
      wr_span_check(spans);
    }
    for (int i = 0; i < LIVE; i++)
      if (live[i].span != NULL) {
        check_block(&live[i]);
        ck_assert(wr_span_give(live[i].span, live[i].span->user));
      }
    expect_nothing_lost(true);
    ck_assert_uint_eq(fake_resident(), 0);
  }
}
END_TEST

#define THREADS 4

static _Atomic(bool) broken;

static void *use_in_thread(void *argument) {
  uint64_t state = (uintptr_t)argument * 104729;
  struct wr_span *live[8] = {NULL};
  for (int step = 0; step < 1500; step++) {
    struct wr_span **one = &live[unit_below(&state, 8)];
    size_t stale;
    if (*one == NULL) {
      *one = wr_span_take(spans, 65537 + unit_below(&state, MIB), 1, &stale);
      if (*one == NULL)
        atomic_store(&broken, true);
      else
        (*one)->user[0] = (char)(uintptr_t)argument;
    } else {
      if ((*one)->user[0] != (char)(uintptr_t)argument || !wr_span_give(*one, (*one)->user))
        atomic_store(&broken, true);
      *one = NULL;
    }
    if (step % 500 == 499)
      (void)wr_settle_to(spans, MIB);
  }
  for (int i = 0; i < 8; i++)
    if (live[i] != NULL && !wr_span_give(live[i], live[i]->user))
      atomic_store(&broken, true);
  return NULL;
}

START_TEST(many_threads) {
  static const size_t marks[] = {0, 2 * MIB, SIZE_MAX};
  for (int round = 0; round < 3; round++) {
    pthread_t thread[THREADS];
    begin(4096, marks[round]);
    for (uintptr_t i = 0; i < THREADS; i++)
      ck_assert_int_eq(pthread_create(&thread[i], NULL, use_in_thread, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
      pthread_join(thread[i], NULL);
    ck_assert(!atomic_load(&broken));
    ck_assert_uint_le(retained(), marks[round]);
    expect_nothing_lost(true);
  }
}
END_TEST

static void *give_in_thread(void *argument) {
  struct wr_span *span = argument;
  return wr_span_give(span, span->user) ? argument : NULL;
}

START_TEST(of_two_threads_that_free_a_block_one_succeeds) {
  begin(4096, SIZE_MAX);
  for (int round = 0; round < 200; round++) {
    pthread_t thread[2];
    void *given[2];
    size_t stale;
    struct wr_span *span = wr_span_take(spans, MIB, 1, &stale);
    ck_assert_ptr_nonnull(span);
    for (int i = 0; i < 2; i++)
      ck_assert_int_eq(pthread_create(&thread[i], NULL, give_in_thread, span), 0);
    for (int i = 0; i < 2; i++)
      pthread_join(thread[i], &given[i]);
    ck_assert((given[0] == NULL) != (given[1] == NULL));
    wr_span_check(spans);
  }
}
END_TEST

UNIT_SUITE(span_faults, every_mapping_fails_once, every_mapping_fails_for_good,
           every_mapping_fails_where_none_adjoins, every_purge_fails, every_probe_fails,
           every_call_fails, random_use_keeps_blocks_apart_and_the_mark, many_threads,
           of_two_threads_that_free_a_block_one_succeeds)
