/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pin: the order of its two calls, over a glibc that refuses; in this program, its results for
 * every size, that the environment counts, and the lines about them. What it does to glibc's
 * malloc, and other mallocs, are tests/pin's.
 */
#include "pin.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "attr.h"
#include "unit.h"

/* AddressSanitizer brings a malloc of its own. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define GLIBC_IS_IN_FORCE 1
#else
#define GLIBC_IS_IN_FORCE 0
#endif

START_TEST(every_result_has_a_line_of_its_own) {
  const char *lines[WEIR_PIN_WEIR + 2];
  for (int i = 0; i <= WEIR_PIN_WEIR + 1; i++) {
    lines[i] = weir_pin_text((weir_pin_t)i);
    ck_assert_ptr_nonnull(lines[i]);
    ck_assert_uint_gt(strlen(lines[i]), 10);
    ck_assert_ptr_null(strchr(lines[i], '\n'));
    ck_assert_ptr_eq(weir_pin_text((weir_pin_t)i), lines[i]);
    for (int k = 0; k < i; k++)
      ck_assert_str_ne(lines[k], lines[i]);
  }
}
END_TEST

START_TEST(no_result_has_no_line) {
  static const int others[] = {-1, WEIR_PIN_WEIR + 1, 255, 256, 65536, INT_MAX, INT_MIN};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    ck_assert_str_eq(weir_pin_text((weir_pin_t)others[i]), weir_pin_text((weir_pin_t)-1));
}
END_TEST

START_TEST(the_malloc_of_this_program_is_known) {
  wr_os_mallopt tune = NULL;
  enum wr_os_malloc whose;
  errno = 99;
  whose = wr_os_malloc(&tune);
  ck_assert_int_eq(errno, 99);
  ck_assert_int_eq(whose, GLIBC_IS_IN_FORCE ? WR_OS_MALLOC_GLIBC : WR_OS_MALLOC_OTHER);
  ck_assert_int_eq(tune != NULL, GLIBC_IS_IN_FORCE);
}
END_TEST

static int parameters[4], values[4], calls, refused;

static int tune(int parameter, int value) {
  parameters[calls] = parameter;
  values[calls++] = value;
  return calls == refused ? 0 : 1;
}

START_TEST(both_are_set_or_neither) {
  /* M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of glibc. */
  ck_assert_int_eq(wr_pin_set(tune, 4096), WEIR_PIN_SET);
  ck_assert_int_eq(calls, 2);
  ck_assert_int_eq(parameters[0], -3);
  ck_assert_int_eq(parameters[1], -1);
  ck_assert_int_eq(values[0], 4096);
  ck_assert_int_eq(values[1], 4096);
  calls = 0;
  refused = 1;
  ck_assert_int_eq(wr_pin_set(tune, 4096), WEIR_PIN_FAILED);
  ck_assert_int_eq(calls, 1);
  ck_assert_int_eq(wr_pin_set(tune, 0), WEIR_PIN_FAILED);
  ck_assert_int_eq(wr_pin_set(tune, SIZE_MAX), WEIR_PIN_FAILED);
  ck_assert_int_eq(calls, 1);
}
END_TEST

#if GLIBC_IS_IN_FORCE
static void expect(weir_pin_t want, size_t bytes) {
  weir_pin_t got;
  errno = 99;
  got = weir_glibc_pin(bytes);
  ck_assert_msg(got == want, "%zu bytes: %s", bytes, weir_pin_text(got));
  ck_assert_int_eq(errno, 99);
}

START_TEST(sizes_are_set_or_refused) {
  static const size_t good[] = {1, 4096, (size_t)1 << 19};
  static const size_t bad[] = {0,       ((size_t)32 << 20) + 1, (size_t)64 << 20,
                               INT_MAX, (size_t)INT_MAX + 1,    SIZE_MAX};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    expect(WEIR_PIN_FAILED, bad[i]);
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
    expect(WEIR_PIN_SET, good[i]);
#if SIZE_MAX > UINT32_MAX
  expect(WEIR_PIN_SET, (size_t)32 << 20);
  expect(WEIR_PIN_FAILED, ((size_t)1 << 32) + 4096);
#endif
}
END_TEST

START_TEST(the_environment_counts_before_the_size) {
  ck_assert_int_eq(setenv("MALLOC_TOP_PAD_", "", 1), 0);
  expect(WEIR_PIN_OPERATOR, (size_t)1 << 20);
  expect(WEIR_PIN_OPERATOR, 0);
  ck_assert_int_eq(unsetenv("MALLOC_TOP_PAD_"), 0);
  expect(WEIR_PIN_SET, (size_t)1 << 20);
}
END_TEST

START_TEST(without_an_environment_nothing_was_chosen) {
  ck_assert_int_eq(clearenv(), 0);
  expect(WEIR_PIN_SET, (size_t)1 << 20);
}
END_TEST

UNIT_SUITE(pin, every_result_has_a_line_of_its_own, no_result_has_no_line, both_are_set_or_neither,
           the_malloc_of_this_program_is_known, sizes_are_set_or_refused,
           the_environment_counts_before_the_size, without_an_environment_nothing_was_chosen)
#else
START_TEST(another_malloc_is_left_alone) {
  ck_assert_int_eq(weir_glibc_pin((size_t)1 << 20), WEIR_PIN_NOT_GLIBC);
  ck_assert_int_eq(weir_glibc_pin(0), WEIR_PIN_NOT_GLIBC);
}
END_TEST

UNIT_SUITE(pin, every_result_has_a_line_of_its_own, no_result_has_no_line, both_are_set_or_neither,
           the_malloc_of_this_program_is_known, another_malloc_is_left_alone)
#endif
