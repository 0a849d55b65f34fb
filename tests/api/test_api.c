/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir.h as its users see it, linked with libweir beside the libc's malloc: the blocks, the mark,
 * trimming, and statistics that are compared with an exact count of what the test itself holds.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/weir.h>

#define MIB ((size_t)1 << 20)
#define DEFAULT_MARK (64 * MIB)

/* The last classes are of blocks that begin with a page. */
enum { CLASSES = 49, ALIGNED = 44, PAGE = 4096 };

static bool all_are(const unsigned char *bytes, unsigned char value, size_t count) {
  size_t i;

  for (i = 0; i < count; i++) {
    if (bytes[i] != value)
      return false;
  }
  return true;
}

static weir_stats_t now(void) {
  weir_stats_t stats;

  memset(&stats, 0xee, sizeof stats);
  weir_stats(&stats, sizeof stats);
  return stats;
}

static void touch(void *block, size_t size) {
  volatile char *bytes = block;
  size_t i;

  for (i = 0; i < size; i += 4096)
    bytes[i] = 1;
}

/* The resident set, exact to the page. */
static size_t resident(void) {
  FILE *file = fopen("/proc/self/smaps_rollup", "r");
  char line[256];
  size_t kib = 0;

  ck_assert_ptr_nonnull(file);
  while (fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "Rss: %zu", &kib) == 1)
      break;
  }
  fclose(file);
  return kib << 10;
}

START_TEST(version_has_three_numbers) {
  int major, minor, patch;
  char rest;

  ck_assert_int_eq(sscanf(weir_version(), "%d.%d.%d%c", &major, &minor, &patch, &rest), 3);
  ck_assert_ptr_eq(weir_version(), weir_version());
}
END_TEST

START_TEST(libc_malloc_is_untouched) {
  weir_stats_t before = now();
  void *block = malloc(1000);

  ck_assert_uint_eq(now().live, before.live);
  free(block);
}
END_TEST

START_TEST(blocks_follow_the_contract) {
  static const size_t sizes[] = {0, 1, 16, 17, 1000, 4096, 65536, 65537, 1000000, 9437184};
  size_t i;

  for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    unsigned char *block;
    errno = 99;
    block = weir_malloc(sizes[i]);
    ck_assert_ptr_nonnull(block);
    ck_assert_uint_eq((uintptr_t)block % 16, 0);
    ck_assert_uint_ge(weir_usable_size(block), sizes[i]);
    memset(block, 0x5a, weir_usable_size(block));
    block = weir_realloc(block, sizes[i] * 2 + 1);
    ck_assert_ptr_nonnull(block);
    ck_assert(all_are(block, 0x5a, sizes[i]));
    weir_free(block);
    block = weir_calloc(1, sizes[i]);
    ck_assert(all_are(block, 0, sizes[i]));
    weir_free(block);
    ck_assert_int_eq(errno, 99);
  }
  weir_free(NULL);
  ck_assert_uint_eq(weir_usable_size(NULL), 0);
}
END_TEST

START_TEST(failures_set_errno_and_keep_the_block) {
  volatile size_t much = (size_t)PTRDIFF_MAX + 1;
  char *block = weir_malloc(10);

  strcpy(block, "kept");
  errno = 0;
  ck_assert_ptr_null(weir_malloc(much));
  ck_assert_int_eq(errno, ENOMEM);
  errno = 0;
  ck_assert_ptr_null(weir_calloc(much, 2));
  ck_assert_int_eq(errno, ENOMEM);
  errno = 0;
  ck_assert_ptr_null(weir_realloc(block, much));
  ck_assert_int_eq(errno, ENOMEM);
  errno = 0;
  ck_assert_ptr_null(weir_reallocarray(block, much, 2));
  ck_assert_int_eq(errno, ENOMEM);
  errno = 0;
  ck_assert_ptr_null(weir_aligned_alloc(48, 10));
  ck_assert_int_eq(errno, EINVAL);
  errno = 0;
  ck_assert_ptr_null(weir_aligned_alloc(0, 10));
  ck_assert_int_eq(errno, EINVAL);
  errno = 0;
  ck_assert_ptr_null(weir_aligned_alloc(4096, much));
  ck_assert_int_eq(errno, ENOMEM);
  ck_assert_str_eq(block, "kept");
  ck_assert_uint_ge(now().out_of_memory, 1);
  ck_assert_ptr_null(weir_realloc(block, 0));
  block = weir_realloc(NULL, 0);
  ck_assert_ptr_nonnull(block);
  weir_free(block);
}
END_TEST

START_TEST(alignment_is_kept) {
  size_t alignment;

  for (alignment = 1; alignment <= 16 * MIB; alignment *= 2) {
    void *one = weir_aligned_alloc(alignment, 1);
    void *many = weir_aligned_alloc(alignment, alignment + 1);
    ck_assert_ptr_nonnull(one);
    ck_assert_ptr_nonnull(many);
    ck_assert_uint_eq((uintptr_t)one % alignment, 0);
    ck_assert_uint_eq((uintptr_t)many % alignment, 0);
    weir_free(one);
    weir_free(many);
  }
}
END_TEST

START_TEST(live_is_exact) {
  enum { COUNT = 3000 };
  static void *blocks[COUNT];
  weir_stats_t before = now();
  uint64_t live = 0;
  size_t i;

  for (i = 0; i < COUNT; i++) {
    blocks[i] = weir_malloc(i % 100 == 0 ? i * 100 : i % 5000);
    live += weir_usable_size(blocks[i]);
    if (i % 500 == 0)
      ck_assert_uint_eq(now().live, before.live + live);
  }
  for (i = 0; i < COUNT; i += 2) {
    live -= weir_usable_size(blocks[i]);
    weir_free(blocks[i]);
  }
  ck_assert_uint_eq(now().live, before.live + live);
  ck_assert_uint_le(now().live, now().committed);
  ck_assert_uint_le(now().committed, now().reserved);
  ck_assert_uint_ge(now().peak_committed, now().committed);
  ck_assert_uint_ge(now().peak_active, now().active);
  ck_assert_uint_ge(now().active, now().live);
  ck_assert_uint_gt(now().fragmented, 0);
  ck_assert_uint_gt(now().meta, 0);
  for (i = 1; i < COUNT; i += 2)
    weir_free(blocks[i]);
  ck_assert_uint_eq(now().live, before.live);
}
END_TEST

static void *take_hundred(void *argument) {
  void **blocks = argument;
  size_t i;

  for (i = 0; i < 100; i++)
    blocks[i] = weir_malloc(1000);
  return NULL;
}

START_TEST(other_threads_are_counted) {
  void *blocks[100];
  pthread_t thread;
  weir_stats_t before = now();
  size_t i;

  ck_assert_int_eq(pthread_create(&thread, NULL, take_hundred, blocks), 0);
  pthread_join(thread, NULL);
  ck_assert_uint_eq(now().live, before.live + 100 * weir_usable_size(blocks[0]));
  for (i = 0; i < 100; i++)
    weir_free(blocks[i]);
  /* Freed by another thread, and perhaps not yet seen by their owner: not live all the same. */
  ck_assert_uint_eq(now().live, before.live);
  ck_assert_uint_ge(now().heaps, 1);
}
END_TEST

START_TEST(classes_are_counted) {
  weir_class_stats_t before[CLASSES], after[CLASSES];
  void *blocks[CLASSES];
  size_t i;

  ck_assert_uint_eq(weir_class_stats(NULL, 0), CLASSES);
  ck_assert_uint_eq(weir_class_stats(before, CLASSES), CLASSES);
  ck_assert_uint_eq(before[0].block, 16);
  ck_assert_uint_eq(before[ALIGNED - 1].block, 65536);
  ck_assert_uint_eq(before[ALIGNED].block, PAGE);
  ck_assert_uint_eq(before[CLASSES - 1].block, 65536);
  for (i = 0; i < CLASSES; i++) {
    size_t size = (size_t)before[i].block;
    if (i > 0 && i != ALIGNED)
      ck_assert_uint_gt(before[i].block, before[i - 1].block);
    blocks[i] = i < ALIGNED ? weir_malloc(size) : weir_aligned_alloc(PAGE, size);
    ck_assert_uint_eq(weir_usable_size(blocks[i]), before[i].block);
  }
  weir_class_stats(after, CLASSES);
  for (i = 0; i < CLASSES; i++) {
    ck_assert_uint_eq(after[i].live, before[i].live + 1);
    ck_assert_uint_ge(after[i].slabs, 1);
    weir_free(blocks[i]);
  }
  weir_class_stats(after, CLASSES);
  for (i = 0; i < CLASSES; i++)
    ck_assert_uint_eq(after[i].live, before[i].live);
  /* A short array is filled as far as it goes. */
  memset(after, 0xaa, sizeof after);
  ck_assert_uint_eq(weir_class_stats(after, 2), CLASSES);
  ck_assert_uint_eq(after[1].block, 32);
  ck_assert_uint_eq(after[2].block, 0xaaaaaaaaaaaaaaaau);
}
END_TEST

/* An older program's structure is shorter, a newer one's longer than the library's. */
START_TEST(stats_of_another_size) {
  struct {
    weir_stats_t stats;
    uint64_t more[4];
  } longer;
  weir_stats_t shorter;

  memset(&shorter, 0xee, sizeof shorter);
  weir_stats(&shorter, 2 * sizeof(uint64_t));
  ck_assert_uint_ne(shorter.retained, 0xeeeeeeeeeeeeeeeeu);
  ck_assert_uint_eq(shorter.fragmented, 0xeeeeeeeeeeeeeeeeu);
  memset(&longer, 0xee, sizeof longer);
  weir_stats(&longer.stats, sizeof longer);
  ck_assert_uint_eq(longer.stats.mark, weir_retain());
  ck_assert_uint_eq(longer.more[0], 0);
  ck_assert_uint_eq(longer.more[3], 0);
}
END_TEST

static void retain_payload(size_t count) {
  void *blocks[64];
  size_t i;

  for (i = 0; i < count; i++) {
    blocks[i] = weir_malloc(MIB);
    touch(blocks[i], MIB);
  }
  for (i = 0; i < count; i++)
    weir_free(blocks[i]);
}

START_TEST(the_mark_moves) {
  weir_stats_t stats;

  ck_assert_uint_eq(weir_retain(), DEFAULT_MARK);
  retain_payload(32);
  stats = now();
  ck_assert_uint_ge(stats.retained, 32 * MIB);
  ck_assert_uint_le(stats.retained, DEFAULT_MARK);
  ck_assert_uint_eq(stats.mark, DEFAULT_MARK);
  weir_set_retain(8 * MIB);
  ck_assert_uint_eq(weir_retain(), 8 * MIB);
  ck_assert_uint_le(now().retained, 8 * MIB);
  ck_assert_uint_ge(now().purged_bytes, stats.purged_bytes + 24 * MIB);
  ck_assert_uint_gt(now().sys_purge, stats.sys_purge);
  weir_set_retain(0);
  ck_assert_uint_eq(now().retained, 0);
  retain_payload(4);
  ck_assert_uint_eq(now().retained, 0);
  weir_set_retain(WEIR_RETAIN_UNLIMITED);
  ck_assert_uint_eq(weir_retain(), WEIR_RETAIN_UNLIMITED);
  ck_assert_uint_eq(now().mark, UINT64_MAX);
  retain_payload(64);
  retain_payload(64);
  ck_assert_uint_ge(now().retained, 64 * MIB);
  weir_set_retain(DEFAULT_MARK);
  ck_assert_uint_le(now().retained, DEFAULT_MARK);
  ck_assert_uint_eq(now().purge_failures, 0);
}
END_TEST

START_TEST(trim_returns_what_it_gave_back) {
  size_t before, given;

  weir_trim(0);
  retain_payload(32);
  before = resident();
  ck_assert_uint_eq(weir_trim(64 * MIB), 0);
  given = weir_trim(8 * MIB);
  ck_assert_uint_ge(given, 24 * MIB);
  ck_assert_uint_le(given, 25 * MIB);
  ck_assert_uint_le(now().retained, 8 * MIB);
  ck_assert_uint_le(resident(), before - 23 * MIB);
  given = weir_trim(0);
  ck_assert_uint_ge(given, 7 * MIB);
  ck_assert_uint_le(now().retained, 64 << 10);
  ck_assert_uint_eq(weir_trim(0), 0);
  ck_assert_uint_eq(weir_retain(), DEFAULT_MARK);
}
END_TEST

START_TEST(reuse_makes_no_calls) {
  weir_stats_t before;
  size_t i;

  retain_payload(16);
  retain_payload(16);
  before = now();
  for (i = 0; i < 20; i++)
    retain_payload(16);
  ck_assert_uint_eq(now().fresh_commits, before.fresh_commits);
  ck_assert_uint_eq(now().sys_map, before.sys_map);
  ck_assert_uint_eq(now().sys_unmap, before.sys_unmap);
  ck_assert_uint_eq(now().sys_purge, before.sys_purge);
  ck_assert_uint_eq(now().sys_probe, before.sys_probe);
  ck_assert_uint_eq(now().span_hits, before.span_hits + 20 * 16);
}
END_TEST

static size_t report(weir_format_t format, char *text, size_t room) {
  int pipes[2];
  size_t length = 0;
  ssize_t got;
  uint64_t live;

  ck_assert_int_eq(pipe(pipes), 0);
  live = now().live;
  ck_assert_int_eq(weir_report(pipes[1], format), 0);
  ck_assert_uint_eq(now().live, live);
  close(pipes[1]);
  while ((got = read(pipes[0], text + length, room - 1 - length)) > 0)
    length += (size_t)got;
  close(pipes[0]);
  text[length] = '\0';
  return length;
}

START_TEST(report_is_json) {
  static char text[65536];
  size_t length = report(WEIR_JSON, text, sizeof text);
  weir_class_stats_t classes[CLASSES];
  json_error_t error;
  json_t *root, *list;
  weir_stats_t stats = now();
  size_t i;

  ck_assert_uint_gt(length, 100);
  ck_assert_ptr_eq(strchr(text, '\n'), text + length - 1);
  root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
  ck_assert_msg(root != NULL, "line %d: %s", error.line, error.text);
  ck_assert_str_eq(json_string_value(json_object_get(root, "weir")), weir_version());
  ck_assert_int_eq(json_integer_value(json_object_get(root, "pid")), getpid());
#define WEIR_STAT(name, kind, text) \
  ck_assert_msg(json_is_integer(json_object_get(root, #name)), "no " #name);
#include <weir/counters.def>
#undef WEIR_STAT
  ck_assert_uint_eq((uint64_t)json_integer_value(json_object_get(root, "live")), stats.live);
  ck_assert_uint_eq((uint64_t)json_integer_value(json_object_get(root, "mark")), stats.mark);
  ck_assert_uint_eq((uint64_t)json_integer_value(json_object_get(root, "retained")),
                    stats.retained);
  list = json_object_get(root, "classes");
  ck_assert(json_is_array(list));
  weir_class_stats(classes, CLASSES);
  for (i = 0; i < json_array_size(list); i++) {
    json_t *one = json_array_get(list, i);
    uint64_t block = (uint64_t)json_integer_value(json_object_get(one, "block"));
    size_t j;
    for (j = 0; j < CLASSES && classes[j].block != block; j++)
      continue;
    ck_assert_uint_lt(j, CLASSES);
    ck_assert_uint_eq((uint64_t)json_integer_value(json_object_get(one, "live")), classes[j].live);
    ck_assert_uint_eq((uint64_t)json_integer_value(json_object_get(one, "slabs")),
                      classes[j].slabs);
    ck_assert(json_is_integer(json_object_get(one, "free")));
  }
  json_decref(root);
}
END_TEST

START_TEST(report_is_text) {
  static char text[65536];

  ck_assert_uint_gt(report(WEIR_TEXT, text, sizeof text), 100);
#define WEIR_STAT(name, kind, help) ck_assert_msg(strstr(text, #name) != NULL, "no " #name);
#include <weir/counters.def>
#undef WEIR_STAT
}
END_TEST

START_TEST(report_tells_errors) {
  int full = open("/dev/full", O_WRONLY);

  ck_assert_int_eq(weir_report(-1, WEIR_TEXT), EBADF);
  ck_assert_int_eq(weir_report(-1, WEIR_JSON), EBADF);
  if (full < 0)
    return;
  ck_assert_int_eq(weir_report(full, WEIR_JSON), ENOSPC);
  close(full);
}
END_TEST

static Suite *api_suite(void) {
  Suite *suite = suite_create("api");
  TCase *tests = tcase_create("weir.h");

  /* Each test starts in a fresh child, with nothing retained but what came before main. */
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, version_has_three_numbers);
  tcase_add_test(tests, libc_malloc_is_untouched);
  tcase_add_test(tests, blocks_follow_the_contract);
  tcase_add_test(tests, failures_set_errno_and_keep_the_block);
  tcase_add_test(tests, alignment_is_kept);
  tcase_add_test(tests, live_is_exact);
  tcase_add_test(tests, other_threads_are_counted);
  tcase_add_test(tests, classes_are_counted);
  tcase_add_test(tests, stats_of_another_size);
  tcase_add_test(tests, the_mark_moves);
  tcase_add_test(tests, trim_returns_what_it_gave_back);
  tcase_add_test(tests, reuse_makes_no_calls);
  tcase_add_test(tests, report_is_json);
  tcase_add_test(tests, report_is_text);
  tcase_add_test(tests, report_tells_errors);
  suite_add_tcase(suite, tests);
  return suite;
}

int main(void) {
  SRunner *runner = srunner_create(api_suite());
  int failed;

  srunner_run_all(runner, CK_NORMAL);
  failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
