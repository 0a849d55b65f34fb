/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options: every good value, every kind of bad one with the line that names it, unknown names, the
 * settings of the C library that stand in for the mark, and those that are the operator's own.
 */
#include "options.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

static struct unit_sink said;
static struct wr_options options;

static void complain(const char *line) {
  ck_assert_ptr_null(strchr(line, '\n'));
  unit_sink(&said, line, strlen(line));
  unit_sink(&said, "\n", 1);
}

/* Reads the options from up to three entries. */
static void read_from(const char *one, const char *two, const char *three) {
  char *environment[] = {(char *)(uintptr_t)one, (char *)(uintptr_t)two, (char *)(uintptr_t)three,
                         NULL};
  memset(&said, 0, sizeof said);
  memset(&options, 0xff, sizeof options);
  wr_options_read(&options, environment, complain);
}

/* What is printed last where no case says something of it. */
#define RCUTILS " WEIR_RCUTILS_RETAIN=default WEIR_RCUTILS_LIMIT=unlimited"

static void expect_printed(const char *want) {
  struct unit_sink sink;
  struct wr_text text;
  memset(&sink, 0, sizeof sink);
  wr_text_begin(&text, unit_sink, &sink);
  wr_options_print(&options, &text);
  ck_assert_int_eq(wr_text_end(&text), 0);
  ck_assert_str_eq(sink.text, want);
}

static void expect_defaults(void) {
  ck_assert_uint_eq(options.retain, (size_t)64 << 20);
  ck_assert_int_eq(options.thp, WR_THP_DEFAULT);
  ck_assert(!options.verbose);
  ck_assert_int_eq(options.stats.kind, WR_SINK_NONE);
  ck_assert_ptr_null(options.stats.path);
  ck_assert_uint_eq(options.rcutils_retain, WEIR_RETAIN_DEFAULT);
  ck_assert_uint_eq(options.rcutils_limit, WEIR_LIMIT_NONE);
  expect_printed("WEIR_RETAIN=64M WEIR_THP=default WEIR_VERBOSE=0 WEIR_STATS=0" RCUTILS);
}

START_TEST(without_an_environment_all_is_default) {
  memset(&options, 0xff, sizeof options);
  wr_options_read(&options, NULL, complain);
  expect_defaults();
  read_from(NULL, NULL, NULL);
  expect_defaults();
  read_from("PATH=/bin", "WEIRD=1", "weir_retain=1");
  expect_defaults();
  ck_assert_str_eq(said.text, "");
}
END_TEST

START_TEST(good_values_are_taken_and_printed) {
  static const struct {
    const char *entry[3];
    const char *printed;
  } cases[] = {
      {{"WEIR_RETAIN=0", "WEIR_THP=never", "WEIR_VERBOSE=1"},
       "WEIR_RETAIN=0 WEIR_THP=never WEIR_VERBOSE=1 WEIR_STATS=0" RCUTILS},
      {{"WEIR_RETAIN=unlimited", "WEIR_THP=always", "WEIR_VERBOSE=0"},
       "WEIR_RETAIN=unlimited WEIR_THP=always WEIR_VERBOSE=0 WEIR_STATS=0" RCUTILS},
      {{"WEIR_RETAIN=1536K", "WEIR_THP=default", "WEIR_STATS=1"},
       "WEIR_RETAIN=1536K WEIR_THP=default WEIR_VERBOSE=0 WEIR_STATS=1" RCUTILS},
      {{"WEIR_RETAIN=4096", "WEIR_STATS=json", "LANG=C"},
       "WEIR_RETAIN=4K WEIR_THP=default WEIR_VERBOSE=0 WEIR_STATS=json" RCUTILS},
      {{"WEIR_STATS=json:/var/log/a=b.%p", "A=b", "C=d"},
       "WEIR_RETAIN=64M WEIR_THP=default WEIR_VERBOSE=0 WEIR_STATS=json:/var/log/a=b.%p" RCUTILS},
      {{"WEIR_STATS=/var/log/weir", "A=b", "C=d"},
       "WEIR_RETAIN=64M WEIR_THP=default WEIR_VERBOSE=0 WEIR_STATS=/var/log/weir" RCUTILS},
      {{"WEIR_RCUTILS_RETAIN=8M", "WEIR_RCUTILS_LIMIT=16M", "C=d"},
       "WEIR_RETAIN=64M WEIR_THP=default WEIR_VERBOSE=0 WEIR_STATS=0"
       " WEIR_RCUTILS_RETAIN=8M WEIR_RCUTILS_LIMIT=16M"},
      {{"WEIR_RCUTILS_RETAIN=unlimited", "WEIR_RCUTILS_LIMIT=0", "C=d"},
       "WEIR_RETAIN=64M WEIR_THP=default WEIR_VERBOSE=0 WEIR_STATS=0"
       " WEIR_RCUTILS_RETAIN=unlimited WEIR_RCUTILS_LIMIT=0"},
      {{"WEIR_RETAIN=1M", "WEIR_RCUTILS_RETAIN=default", "WEIR_RCUTILS_LIMIT=unlimited"},
       "WEIR_RETAIN=1M WEIR_THP=default WEIR_VERBOSE=0 WEIR_STATS=0" RCUTILS},
      {{"WEIR_STATS=0", "A=b", "C=d"},
       "WEIR_RETAIN=64M WEIR_THP=default WEIR_VERBOSE=0 WEIR_STATS=0" RCUTILS},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    read_from(cases[i].entry[0], cases[i].entry[1], cases[i].entry[2]);
    ck_assert_str_eq(said.text, "");
    expect_printed(cases[i].printed);
  }
}
END_TEST

START_TEST(sinks_are_told_apart) {
  read_from("WEIR_STATS=json", NULL, NULL);
  ck_assert_int_eq(options.stats.kind, WR_SINK_JSON);
  ck_assert_ptr_null(options.stats.path);
  read_from("WEIR_STATS=json:f", NULL, NULL);
  ck_assert_int_eq(options.stats.kind, WR_SINK_JSON);
  ck_assert_str_eq(options.stats.path, "f");
  read_from("WEIR_STATS=jsonf", NULL, NULL);
  ck_assert_int_eq(options.stats.kind, WR_SINK_TEXT);
  ck_assert_str_eq(options.stats.path, "jsonf");
  read_from("WEIR_STATS=1", NULL, NULL);
  ck_assert_int_eq(options.stats.kind, WR_SINK_TEXT);
  ck_assert_ptr_null(options.stats.path);
}
END_TEST

START_TEST(bad_values_are_named_and_not_taken) {
  static const struct {
    const char *entry;
    const char *kept;
  } cases[] = {
      {"WEIR_RETAIN=abc", "64M"},
      {"WEIR_RETAIN=", "64M"},
      {"WEIR_RETAIN=-1", "64M"},
      {"WEIR_RETAIN=1T", "64M"},
      {"WEIR_RETAIN=99999999999999999999G", "64M"},
      {"WEIR_THP=", "default"},
      {"WEIR_THP=madvise", "default"},
      {"WEIR_VERBOSE=yes", "0"},
      {"WEIR_VERBOSE=2", "0"},
      {"WEIR_VERBOSE=", "0"},
      {"WEIR_STATS=", "0"},
      {"WEIR_STATS=json:", "0"},
      {"WEIR_RCUTILS_RETAIN=", "default"},
      {"WEIR_RCUTILS_RETAIN=64MB", "default"},
      {"WEIR_RCUTILS_RETAIN=defaults", "default"},
      {"WEIR_RCUTILS_LIMIT=", "unlimited"},
      {"WEIR_RCUTILS_LIMIT=default", "unlimited"},
      {"WEIR_RCUTILS_LIMIT=-1", "unlimited"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char start[256], end[64];
    size_t length;
    read_from("X=y", cases[i].entry, NULL);
    snprintf(start, sizeof start, "weir: %s is not ", cases[i].entry);
    snprintf(end, sizeof end, "; keeping %s\n", cases[i].kept);
    length = strlen(end);
    ck_assert_msg(strncmp(said.text, start, strlen(start)) == 0, "%s", said.text);
    ck_assert_uint_gt(said.used, length);
    ck_assert_str_eq(said.text + said.used - length, end);
    ck_assert_uint_eq(said.calls, 2);
    expect_defaults();
  }
}
END_TEST

START_TEST(one_bad_value_spoils_no_other) {
  read_from("WEIR_THP=always", "WEIR_RETAIN=wrong", "WEIR_VERBOSE=1");
  expect_printed("WEIR_RETAIN=64M WEIR_THP=always WEIR_VERBOSE=1 WEIR_STATS=0" RCUTILS);
  ck_assert_uint_eq(said.calls, 2);
}
END_TEST

START_TEST(unknown_names_are_told_one_by_one) {
  read_from("WEIR_RCUTILS=1M", "WEIR_RCUTILS_LIMITS=1", NULL);
  ck_assert_str_eq(said.text, "weir: WEIR_RCUTILS is not an option of weir; ignored\n"
                              "weir: WEIR_RCUTILS_LIMITS is not an option of weir; ignored\n");
  expect_defaults();
  read_from("WEIR_RETIAN=1M", "WEIR_=1", "WEIR_RETAINED=1");
  ck_assert_str_eq(said.text, "weir: WEIR_RETIAN is not an option of weir; ignored\n"
                              "weir: WEIR_ is not an option of weir; ignored\n"
                              "weir: WEIR_RETAINED is not an option of weir; ignored\n");
  expect_defaults();
}
END_TEST

START_TEST(long_values_leave_room_for_what_is_said) {
  static char entry[4096] = "WEIR_RETAIN=";
  memset(entry + strlen(entry), 'x', 3000);
  read_from(entry, NULL, NULL);
  ck_assert_uint_eq(said.calls, 2);
  ck_assert_ptr_nonnull(strstr(said.text, "; keeping 64M\n"));
  memcpy(entry, "WEIR_QETAIN", 11);
  read_from(entry, NULL, NULL);
  ck_assert_uint_eq(said.calls, 2);
  ck_assert_ptr_nonnull(strstr(said.text, "WEIR_QETAIN is not an option of weir; ignored\n"));
  memset(entry, 'N', 200);
  memcpy(entry, "WEIR_", 5);
  read_from(entry, NULL, NULL);
  ck_assert_ptr_nonnull(strstr(said.text, " is not an option of weir; ignored\n"));
}
END_TEST

static void expect_mark(size_t mark) {
  ck_assert_str_eq(said.text, "");
  ck_assert_uint_eq(options.retain, mark);
}

START_TEST(the_c_librarys_threshold_is_the_mark) {
  read_from("MALLOC_TRIM_THRESHOLD_=131072", NULL, NULL);
  expect_mark(131072);
  read_from("MALLOC_TRIM_THRESHOLD_=0", NULL, NULL);
  expect_mark(0);
  read_from("MALLOC_TRIM_THRESHOLD_=-1", NULL, NULL);
  expect_mark(SIZE_MAX);
  read_from("MALLOC_TRIM_THRESHOLD_=0x10000", NULL, NULL);
  expect_mark(65536);
  read_from("MALLOC_TRIM_THRESHOLD_=0200", NULL, NULL);
  expect_mark(128);
  read_from("GLIBC_TUNABLES=glibc.malloc.trim_threshold=4096", NULL, NULL);
  expect_mark(4096);
  read_from("GLIBC_TUNABLES=glibc.malloc.check=3:glibc.malloc.trim_threshold=0xFF:a=b", NULL, NULL);
  expect_mark(255);
  read_from("GLIBC_TUNABLES=glibc.malloc.check=3", NULL, NULL);
  expect_mark((size_t)64 << 20);
  read_from("GLIBC_TUNABLES=xglibc.malloc.trim_threshold=1", NULL, NULL);
  expect_mark((size_t)64 << 20);
}
END_TEST

START_TEST(the_first_of_the_marks_counts) {
  read_from("GLIBC_TUNABLES=glibc.malloc.trim_threshold=1", "MALLOC_TRIM_THRESHOLD_=2", NULL);
  expect_mark(2);
  read_from("MALLOC_TRIM_THRESHOLD_=2", "GLIBC_TUNABLES=glibc.malloc.trim_threshold=1",
            "WEIR_RETAIN=3");
  expect_mark(3);
}
END_TEST

START_TEST(bad_thresholds_are_named) {
  static const char *const entries[] = {
      "MALLOC_TRIM_THRESHOLD_=",
      "MALLOC_TRIM_THRESHOLD_=1M",
      "MALLOC_TRIM_THRESHOLD_=09",
      "MALLOC_TRIM_THRESHOLD_=0x",
      "MALLOC_TRIM_THRESHOLD_=-2",
      "MALLOC_TRIM_THRESHOLD_=99999999999999999999",
      "GLIBC_TUNABLES=glibc.malloc.trim_threshold=x:a=b",
  };
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
    read_from(entries[i], NULL, NULL);
    ck_assert_msg(said.calls == 2, "%s: %s", entries[i], said.text);
    ck_assert_ptr_nonnull(strstr(said.text, " is not a number of bytes; keeping the default mark"));
    expect_defaults();
  }
}
END_TEST

static bool sets_glibc(const char *one, const char *two) {
  char *environment[] = {(char *)(uintptr_t) "PATH=/bin", (char *)(uintptr_t)one,
                         (char *)(uintptr_t)two, NULL};
  return wr_options_sets_glibc(environment);
}

START_TEST(each_threshold_of_glibc_is_seen) {
  static const char *const entries[] = {
      "MALLOC_MMAP_THRESHOLD_=1",
      "MALLOC_TRIM_THRESHOLD_=-1",
      "MALLOC_TOP_PAD_=",
      "MALLOC_MMAP_MAX_=0",
      "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=1",
      "GLIBC_TUNABLES=glibc.malloc.trim_threshold=",
      "GLIBC_TUNABLES=glibc.malloc.check=3:glibc.malloc.top_pad=0x10",
      "GLIBC_TUNABLES=::glibc.malloc.mmap_max=0:glibc.malloc.check=3",
  };
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
    ck_assert_msg(sets_glibc(entries[i], NULL), "%s", entries[i]);
    ck_assert_msg(sets_glibc("LANG=C", entries[i]), "%s", entries[i]);
  }
}
END_TEST

START_TEST(other_names_are_not_taken_for_thresholds) {
  static const char *const entries[] = {
      "MALLOC_MMAP_THRESHOLD=1",
      "MALLOC_MMAP_THRESHOLD_X=1",
      "XMALLOC_TOP_PAD_=1",
      "MALLOC_ARENA_MAX=1",
      "WEIR_RETAIN=1M",
      "GLIBC_TUNABLES=",
      "GLIBC_TUNABLES=glibc.malloc.top_pad",
      "GLIBC_TUNABLES=glibc.malloc.top_pad:glibc.malloc.arena_max=1",
      "GLIBC_TUNABLES=glibc.malloc.mmap_max_size=1",
      "GLIBC_TUNABLES=xglibc.malloc.mmap_max=1:glibc.malloc.check=glibc.malloc.top_pad=1",
      "XGLIBC_TUNABLES=glibc.malloc.top_pad=1",
  };
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
    ck_assert_msg(!sets_glibc(entries[i], NULL), "%s", entries[i]);
  ck_assert(!sets_glibc(NULL, NULL));
  ck_assert(!wr_options_sets_glibc(NULL));
}
END_TEST

UNIT_SUITE(options, without_an_environment_all_is_default, good_values_are_taken_and_printed,
           sinks_are_told_apart, bad_values_are_named_and_not_taken, one_bad_value_spoils_no_other,
           unknown_names_are_told_one_by_one, long_values_leave_room_for_what_is_said,
           the_c_librarys_threshold_is_the_mark, the_first_of_the_marks_counts,
           bad_thresholds_are_named, each_threshold_of_glibc_is_seen,
           other_names_are_not_taken_for_thresholds)
