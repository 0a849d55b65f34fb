/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up: once, whoever comes first, with the options of the environment.
 */
#include "init.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"
#include "unit.h"
#include "weir.h"

START_TEST(bring_up_is_done_once) {
  size_t mark;
  wr_init();
  ck_assert_ptr_nonnull(wr_arena_default.source.ops);
  ck_assert_uint_eq(wr_arena_default.source.page, wr_os_page_size());
  mark = weir_retain();
  ck_assert_uint_eq(mark, wr_init_options.retain);
  weir_set_retain(12345);
  wr_init();
  wr_init_late(NULL);
  ck_assert_uint_eq(weir_retain(), 12345);
}
END_TEST

static void *come(void *argument) {
  wr_init();
  return wr_arena_default.source.ops != NULL ? argument : NULL;
}

START_TEST(threads_may_come_at_once) {
  pthread_t thread[4];
  int once = 0;
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, come, &once), 0);
  for (int i = 0; i < 4; i++) {
    void *got;
    pthread_join(thread[i], &got);
    ck_assert_ptr_eq(got, &once);
  }
}
END_TEST

START_TEST(the_environment_is_read_at_load) {
  static const struct {
    const char *entry, *want;
  } cases[] = {
      {"WEIR_RETAIN=3M", "WEIR_RETAIN=3M WEIR_THP=default"},
      {"WEIR_RETAIN=unlimited", "WEIR_RETAIN=unlimited WEIR_THP=default"},
      {"WEIR_THP=never", "WEIR_RETAIN=64M WEIR_THP=never"},
      {"MALLOC_TRIM_THRESHOLD_=4096", "WEIR_RETAIN=4K WEIR_THP=default"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char *environment[] = {(char *)(uintptr_t) "WEIR_VERBOSE=1", (char *)(uintptr_t)cases[i].entry,
                           NULL};
    char got[2000];
    (void)unit_again(environment, got, sizeof got);
    ck_assert_msg(strstr(got, cases[i].want) != NULL, "%s", got);
  }
}
END_TEST

START_TEST(what_is_wrong_is_told_once) {
  char *environment[] = {(char *)(uintptr_t) "WEIR_RETAIN=abc",
                         (char *)(uintptr_t) "WEIR_NOTHING=1", NULL};
  char got[2000], *line;
  (void)unit_again(environment, got, sizeof got);
  ck_assert_int_eq(strncmp(got, "weir: WEIR_RETAIN=abc ", 22), 0);
  line = strchr(got, '\n');
  ck_assert_ptr_nonnull(line);
  ck_assert_str_eq(line + 1, "weir: WEIR_NOTHING is not an option of weir; ignored\n");
}
END_TEST

START_TEST(without_options_nothing_is_said) {
  char *environment[] = {(char *)(uintptr_t) "PATH=/bin", NULL};
  char got[2000];
  (void)unit_again(environment, got, sizeof got);
  ck_assert_str_eq(got, "");
}
END_TEST

UNIT_SUITE(init, bring_up_is_done_once, threads_may_come_at_once, the_environment_is_read_at_load,
           what_is_wrong_is_told_once, without_options_nothing_is_said)
