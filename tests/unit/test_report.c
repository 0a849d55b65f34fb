/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports: every counter and every class in each form, as the snapshot has them, and the errors of
 * the sink.
 */
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"
#include "weir.h"

#ifdef HAVE_JANSSON
#include <jansson.h>
#endif

static struct wr_snapshot snapshot;
static struct unit_sink sink;

/* Every number is another one, the largest included. */
static void begin(void) {
  uint64_t number = UINT64_C(1) << 40;
  memset(&snapshot, 0, sizeof snapshot);
  memset(&sink, 0, sizeof sink);
#define WEIR_STAT(name, kind, text) snapshot.stats.name = number++;
#include <weir/counters.def>
#undef WEIR_STAT
  snapshot.stats.mark = UINT64_MAX;
  strcpy(snapshot.name, "\"left\" \\camera");
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    snapshot.classes[class].block = wr_sizeclass_block(class);
    snapshot.classes[class].slabs = class % 3;
    snapshot.classes[class].live = 1000 + class;
    snapshot.classes[class].free = 2000 + class;
  }
}

static void expect_in(const char *want) {
  ck_assert_msg(strstr(sink.text, want) != NULL, "no \"%s\" in:\n%s", want, sink.text);
}

static void expect_number(const char *before, uint64_t number, const char *after) {
  char want[200];
  snprintf(want, sizeof want, "%s%" PRIu64 "%s", before, number, after);
  expect_in(want);
}

START_TEST(json_has_every_counter_and_every_used_class) {
  begin();
  ck_assert_int_eq(wr_report_json(&snapshot, unit_sink, &sink), 0);
  ck_assert_ptr_eq(strchr(sink.text, '\n'), sink.text + sink.used - 1);
  ck_assert_int_eq(strncmp(sink.text, "{\"weir\":\"", 9), 0);
  expect_number("\"pid\":", (uint64_t)getpid(), ",");
#define WEIR_STAT(name, kind, text) \
  expect_number( \
      "\"" #name "\":", snapshot.stats.name < INT64_MAX ? snapshot.stats.name : INT64_MAX, ",");
#include <weir/counters.def>
#undef WEIR_STAT
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    const weir_class_stats_t *one = &snapshot.classes[class];
    char want[200];
    snprintf(want, sizeof want,
             "{\"block\":%" PRIu64 ",\"slabs\":%" PRIu64 ",\"live\":%" PRIu64 ",\"free\":%" PRIu64
             "}",
             one->block, one->slabs, one->live, one->free);
    ck_assert((strstr(sink.text, want) != NULL) == (one->slabs > 0));
  }
}
END_TEST

START_TEST(json_without_classes) {
  memset(&snapshot, 0, sizeof snapshot);
  memset(&sink, 0, sizeof sink);
  ck_assert_int_eq(wr_report_json(&snapshot, unit_sink, &sink), 0);
  expect_in(",\"classes\":[]}\n");
}
END_TEST

#ifdef HAVE_JANSSON
START_TEST(json_is_well_formed) {
  json_error_t error;
  json_t *root, *classes, *one;
  size_t index, used = 0, counters = 0;
  begin();
  /* Jansson has no numbers above this. */
  ck_assert_int_eq(wr_report_json(&snapshot, unit_sink, &sink), 0);
  root = json_loads(sink.text, JSON_REJECT_DUPLICATES, &error);
  ck_assert_msg(root != NULL, "%s", error.text);
  ck_assert_str_eq(json_string_value(json_object_get(root, "weir")), weir_version());
  ck_assert_int_eq(json_integer_value(json_object_get(root, "pid")), getpid());
#define WEIR_STAT(name, kind, text) \
  ck_assert(json_is_integer(json_object_get(root, #name))); \
  ck_assert_uint_eq((uint64_t)json_integer_value(json_object_get(root, #name)), \
                    snapshot.stats.name < INT64_MAX ? snapshot.stats.name : INT64_MAX); \
  counters++;
#include <weir/counters.def>
#undef WEIR_STAT
  classes = json_object_get(root, "classes");
  ck_assert_uint_eq(json_object_size(root), counters + 4);
  ck_assert_str_eq(json_string_value(json_object_get(root, "arena")), snapshot.name);
  json_array_foreach(classes, index, one) {
    while (snapshot.classes[used].slabs == 0)
      used++;
    ck_assert_uint_eq((uint64_t)json_integer_value(json_object_get(one, "block")),
                      snapshot.classes[used].block);
    ck_assert_uint_eq((uint64_t)json_integer_value(json_object_get(one, "live")),
                      snapshot.classes[used].live);
    ck_assert_uint_eq(json_object_size(one), 4);
    used++;
  }
  ck_assert_uint_eq(json_array_size(classes), WR_CLASSES - (WR_CLASSES + 2) / 3);
  json_decref(root);
}
END_TEST
#endif

START_TEST(text_has_a_line_for_each) {
  size_t lines = 0, want = 2;
  begin();
  ck_assert_int_eq(wr_report_text(&snapshot, unit_sink, &sink), 0);
  expect_number(", process ", (uint64_t)getpid(), ", arena \"left\" \\camera\n");
  for (const char *at = sink.text; (at = strchr(at, '\n')) != NULL; at++)
    lines++;
#define WEIR_STAT(name, kind, text) \
  expect_number("", snapshot.stats.name, "  " text "\n"); \
  expect_in("\n  " #name " "); \
  want++;
#include <weir/counters.def>
#undef WEIR_STAT
  for (unsigned class = 0; class < WR_CLASSES; class ++)
    want += snapshot.classes[class].slabs > 0;
  ck_assert_uint_eq(lines, want);
  expect_number(" ", snapshot.classes[1].free, "\n");
}
END_TEST

START_TEST(xml_has_what_the_c_librarys_has) {
  begin();
  ck_assert_int_eq(wr_report_xml(&snapshot, unit_sink, &sink), 0);
  ck_assert_int_eq(strncmp(sink.text, "<malloc version=\"1\">\n", 21), 0);
  ck_assert_str_eq(sink.text + sink.used - 10, "</malloc>\n");
  expect_number("<system type=\"current\" size=\"", snapshot.stats.committed, "\"/>");
  expect_number("<system type=\"max\" size=\"", snapshot.stats.peak_committed, "\"/>");
  expect_number("<aspace type=\"total\" size=\"", snapshot.stats.reserved, "\"/>");
  expect_in("<size from=\"17\" to=\"32\" total=\"64032\" count=\"2001\"/>");
#define WEIR_STAT(name, kind, text) \
  expect_number("<weir name=\"" #name "\" value=\"", snapshot.stats.name, "\"/>");
#include <weir/counters.def>
#undef WEIR_STAT
}
END_TEST

typedef int (*report)(const struct wr_snapshot *snapshot, wr_text_sink sink, void *context);

START_TEST(the_sinks_error_comes_back) {
  static const report reports[] = {wr_report_text, wr_report_json, wr_report_xml};
  for (size_t i = 0; i < 3; i++) {
    size_t calls;
    begin();
    ck_assert_int_eq(reports[i](&snapshot, unit_sink, &sink), 0);
    calls = sink.calls;
    ck_assert_uint_gt(calls, 1);
    for (size_t n = 1; n <= calls; n++) {
      memset(&sink, 0, sizeof sink);
      sink.fail_at = n;
      sink.error = n % 2 == 0 ? ENOSPC : EPIPE;
      ck_assert_int_eq(reports[i](&snapshot, unit_sink, &sink), sink.error);
      ck_assert_uint_eq(sink.calls, n);
    }
  }
}
END_TEST

/* What weir_report writes to a file. */
static char *write_to_file(weir_format_t format) {
  static char text[32768];
  FILE *file = tmpfile();
  ssize_t got;
  ck_assert_ptr_nonnull(file);
  ck_assert_int_eq(weir_report(fileno(file), format), 0);
  got = pread(fileno(file), text, sizeof text - 1, 0);
  ck_assert_int_gt(got, 0);
  text[got] = '\0';
  fclose(file);
  return text;
}

START_TEST(the_public_function_writes_to_a_descriptor) {
  void *block = weir_malloc(100);
  char *text = write_to_file(WEIR_JSON);
  ck_assert_ptr_nonnull(strstr(text, "\"live\":112,"));
  ck_assert_ptr_nonnull(strstr(text, "{\"block\":112,\"slabs\":1,\"live\":1,"));
  text = write_to_file(WEIR_TEXT);
  ck_assert_ptr_nonnull(strstr(text, " 112  in blocks handed out"));
  weir_free(block);
}
END_TEST

START_TEST(a_bad_descriptor_is_an_error) {
  int full = open("/dev/full", O_WRONLY);
  errno = 0;
  ck_assert_int_eq(weir_report(-1, WEIR_TEXT), EBADF);
  ck_assert_int_eq(weir_report(-1, WEIR_JSON), EBADF);
  if (full >= 0) {
    ck_assert_int_eq(weir_report(full, WEIR_JSON), ENOSPC);
    close(full);
  }
  ck_assert_int_eq(errno, 0);
}
END_TEST

UNIT_SUITE(report, json_has_every_counter_and_every_used_class, json_without_classes,
#ifdef HAVE_JANSSON
           json_is_well_formed,
#endif
           text_has_a_line_for_each, xml_has_what_the_c_librarys_has, the_sinks_error_comes_back,
           the_public_function_writes_to_a_descriptor, a_bad_descriptor_is_an_error)
