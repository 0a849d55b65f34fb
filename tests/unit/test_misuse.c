/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line that ends a program, exactly, and the line that does not.
 */
#include "misuse.h"

#include <string.h>
#include <unistd.h>

#include "unit.h"

static const char *const names[] = {"invalid pointer", "double free", "corrupted free list"};
static const uintptr_t addresses[] = {0, 0x10, 0x7f0123456780, UINTPTR_MAX};

struct misuse {
  enum wr_misuse_kind kind;
  uintptr_t address;
};

static void stop(void *argument) {
  const struct misuse *misuse = argument;
  wr_misuse_stop(misuse->kind, (void *)misuse->address);
}

START_TEST(every_kind_has_its_line_and_aborts) {
  for (unsigned kind = 0; kind < 3; kind++)
    for (unsigned i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
      struct misuse misuse = {(enum wr_misuse_kind)kind, addresses[i]};
      unit_expect_misuse(stop, &misuse, names[kind], (void *)addresses[i]);
    }
}
END_TEST

START_TEST(the_line_of_the_manual) {
  struct misuse misuse = {WR_MISUSE_DOUBLE_FREE, 0x7f0123456780};
  unit_expect_abort(stop, &misuse, "weir: double free: 0x7f0123456780\n");
}
END_TEST

static void stop_without_standard_error(void *argument) {
  close(2);
  stop(argument);
}

START_TEST(without_standard_error_it_still_aborts) {
  struct misuse misuse = {WR_MISUSE_POINTER, 1};
  unit_expect_abort(stop_without_standard_error, &misuse, "");
}
END_TEST

static void say(void *argument) {
  wr_misuse_say(argument);
}

START_TEST(say_prints_one_line_and_goes_on) {
  static char line[2000];
  char got[3000];
  memset(line, 'l', sizeof line - 1);
  ck_assert_int_eq(unit_child(say, line, got, sizeof got), 0);
  ck_assert_uint_eq(strlen(got), sizeof line);
  ck_assert_int_eq(strncmp(got, line, sizeof line - 1), 0);
  ck_assert_int_eq(got[sizeof line - 1], '\n');
}
END_TEST

UNIT_SUITE(misuse, every_kind_has_its_line_and_aborts, the_line_of_the_manual,
           without_standard_error_it_still_aborts, say_prints_one_line_and_goes_on)
