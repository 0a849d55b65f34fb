/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locked arenas in buffers: when one is gone, what it locked is not locked any more, and what was
 * locked by others is: by the process as a whole, for the buffer, for a part of it, or by the arena
 * of which the buffer is a block.
 */
#include "arenas.h"

#include <sys/mman.h>
#include <sys/syscall.h>

static _Alignas(1 << 16) unsigned char area[6 << 20];

/* Bytes that are locked in memory. */
static size_t locked(void) {
  char line[256];
  size_t bytes = 0;
  FILE *file = fopen("/proc/self/status", "r");

  ck_assert_ptr_nonnull(file);
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "VmLck:", 6) == 0)
      bytes = strtoull(line + 6, NULL, 10) << 10;
  }
  fclose(file);
  return bytes;
}

static weir_arena_t *make_locked_in(void *buffer, size_t size, size_t limit) {
  weir_arena_options_t wanted = options();

  wanted.lock = true;
  wanted.limit = limit;
  wanted.prefault = limit < 8192 ? limit : 8192;
  return weir_arena_create_in(buffer, size, &wanted);
}

/* Lock every page, or so many in the middle of the buffer; a sanitizer's mlock does nothing. */
static bool lock_all(void) {
  return !SANITIZED && mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
}
static bool lock_middle(unsigned char *buffer, size_t length) {
  return syscall(SYS_mlock, buffer + 16 * KIB, length) == 0;
}

enum { WHOLE = 48 << 10, SECOND = 64 << 10 };

/* Of the buffer, `before` bytes are locked by the process; an arena in it comes and goes. */
static void come_and_go(size_t before, bool partly) {
  size_t start = locked();
  unsigned char *buffer = area + (partly ? 0 : 16 * KIB);
  size_t size = partly ? SECOND + 32 * KIB : WHOLE;
  weir_arena_t *arena = make_locked_in(buffer, size, WEIR_LIMIT_NONE);

  ck_assert_ptr_nonnull(arena);
  ck_assert_uint_ge(locked(), start - before + size);
  weir_free(weir_arena_alloc(arena, 2000));
  weir_arena_destroy(arena);
  if (partly) {
    /* All that was locked is; whether that goes for the rest is nobody's business. */
    ck_assert_uint_ge(locked(), start);
  } else {
    ck_assert_uint_eq(locked(), start);
  }
  /* One that cannot be made leaves it as it was, too. */
  errno = 0;
  ck_assert_ptr_null(make_locked_in(buffer, size, 4096));
  ck_assert_int_eq(errno, EINVAL);
  ck_assert_uint_ge(locked(), start);
}

START_TEST(what_weir_locked_is_unlocked) {
  size_t start = locked();

  come_and_go(0, false);
  come_and_go(0, false);
  ck_assert_uint_eq(locked(), start);
}
END_TEST

START_TEST(what_was_locked_before_stays_so) {
  if (!lock_middle(area, WHOLE))
    return;
  come_and_go(WHOLE, false);
  ck_assert_uint_eq(locked(), WHOLE);
}
END_TEST

START_TEST(what_was_partly_locked_before_stays_so) {
  if (!lock_middle(area, 4096))
    return;
  come_and_go(4096, true);
}
END_TEST

START_TEST(what_mlockall_locked_stays_so) {
  size_t start;

  /* What the process and the thread need for their first arena is there before. */
  come_and_go(0, false);
  if (!lock_all())
    return;
  start = locked();
  come_and_go(WHOLE, false);
  ck_assert_uint_eq(locked(), start);
}
END_TEST

START_TEST(what_mlockall_locks_later_stays_so) {
  weir_arena_t *arena = make_locked_in(area, SECOND, WEIR_LIMIT_NONE);
  size_t start;

  ck_assert_ptr_nonnull(arena);
  if (!lock_all())
    return;
  start = locked();
  weir_arena_destroy(arena);
  ck_assert_uint_eq(locked(), start);
}
END_TEST

START_TEST(an_arena_inside_a_locked_one_leaves_it_locked) {
  weir_arena_t *outer = make_locked_in(area, 4 * MIB, WEIR_LIMIT_NONE);
  weir_arena_t *inner;
  unsigned char *block;
  size_t start = locked();

  ck_assert_ptr_nonnull(outer);
  block = weir_arena_alloc(outer, MIB);
  ck_assert_ptr_nonnull(block);
  inner = make_locked_in(block, MIB, WEIR_LIMIT_NONE);
  ck_assert_ptr_nonnull(inner);
  weir_arena_destroy(inner);
  ck_assert_uint_eq(locked(), start);
  weir_free(block);
  weir_arena_destroy(outer);
  ck_assert_uint_lt(locked(), start);
}
END_TEST

START_TEST(neighbours_on_one_page_leave_each_other_locked) {
  enum { LENGTH_OF_EACH = 100000 };
  weir_arena_t *first = make_locked_in(area, LENGTH_OF_EACH, WEIR_LIMIT_NONE);
  weir_arena_t *second = make_locked_in(area + LENGTH_OF_EACH, LENGTH_OF_EACH, WEIR_LIMIT_NONE);

  ck_assert_ptr_nonnull(first);
  ck_assert_ptr_nonnull(second);
  weir_arena_destroy(first);
  ck_assert_uint_ge(locked(), LENGTH_OF_EACH);
  weir_arena_destroy(second);
  ck_assert_uint_lt(locked(), LENGTH_OF_EACH);
}
END_TEST

static Suite *lock_suite(void) {
  Suite *suite = suite_create("arena_lock");
  TCase *tests = tcase_create("locked buffers");

  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, what_weir_locked_is_unlocked);
  tcase_add_test(tests, what_was_locked_before_stays_so);
  tcase_add_test(tests, what_was_partly_locked_before_stays_so);
  tcase_add_test(tests, what_mlockall_locked_stays_so);
  tcase_add_test(tests, what_mlockall_locks_later_stays_so);
  tcase_add_test(tests, an_arena_inside_a_locked_one_leaves_it_locked);
  tcase_add_test(tests, neighbours_on_one_page_leave_each_other_locked);
  suite_add_tcase(suite, tests);
  return suite;
}

int main(void) {
  return run_suite(lock_suite());
}
