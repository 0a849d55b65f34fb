/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/arena.h sentence by sentence, for arenas whose memory comes from the kernel: options and
 * names, the blocks, which arena a block is in, reset, destroy, statistics and reports. Limits and
 * marks, buffers, and random use have files of their own.
 */
#include "arenas.h"

#include <jansson.h>
#include <signal.h>

static const size_t sizes[] = {
    0,     1,     16,     17,     100,     1000,     4096,           10000,  40000,
    65536, 65537, 100000, 262144, 1000000, 1u << 20, (1u << 20) + 1, 9437184};

START_TEST(null_is_the_default_arena) {
  weir_stats_t before = now(NULL), plain;
  unsigned char *block = weir_arena_alloc(NULL, 1000);

  ck_assert_ptr_nonnull(block);
  ck_assert_ptr_null(weir_arena_of(block));
  weir_stats(&plain, sizeof plain);
  ck_assert_uint_eq(plain.live, before.live + weir_usable_size(block));
  ck_assert_uint_eq(now(NULL).live, plain.live);
  ck_assert_str_eq(weir_arena_name(NULL), "");
  memset(block, 7, 1000);
  /* Both are ignored: the block is still there. */
  weir_arena_reset(NULL);
  weir_arena_destroy(NULL);
  block = weir_arena_realloc(NULL, block, 200000);
  ck_assert(all_are(block, 7, 1000));
  ck_assert_ptr_null(weir_arena_of(block));
  weir_arena_free(NULL, block);
  block = weir_arena_realloc(NULL, NULL, 10);
  ck_assert_uint_eq(weir_arena_usable_size(NULL, block), weir_usable_size(block));
  weir_free(block);
  block = weir_arena_zalloc(NULL, 10, 10);
  ck_assert(all_are(block, 0, 100));
  weir_arena_free(NULL, block);
  block = weir_arena_aligned_alloc(NULL, 8192, 10);
  ck_assert_uint_eq((uintptr_t)block % 8192, 0);
  weir_arena_free(NULL, block);
  weir_arena_free(NULL, NULL);
  ck_assert_uint_eq(now(NULL).live, before.live);
  weir_arena_set_retain(NULL, 3 * MIB);
  ck_assert_uint_eq(weir_retain(), 3 * MIB);
  ck_assert_uint_eq(weir_arena_retain(NULL), 3 * MIB);
  block = weir_malloc(2 * MIB);
  touch(block, 2 * MIB);
  weir_free(block);
  ck_assert_uint_ge(weir_arena_trim(NULL, 0), 2 * MIB);
}
END_TEST

START_TEST(no_options_are_the_defaults) {
  weir_arena_t *arena = weir_arena_create(NULL);
  weir_arena_options_t same = options();
  weir_arena_t *other = weir_arena_create(&same);

  ck_assert_ptr_nonnull(arena);
  ck_assert_ptr_nonnull(other);
  ck_assert_ptr_ne(arena, other);
  ck_assert_str_eq(weir_arena_name(arena), "");
  ck_assert_str_eq(weir_arena_name(other), "");
  ck_assert_uint_eq(weir_arena_retain(arena), weir_retain());
  ck_assert_uint_eq(weir_arena_retain(other), weir_retain());
  ck_assert_uint_eq(now(arena).limit, 0);
  ck_assert_uint_eq(now(arena).live, 0);
  weir_arena_destroy(arena);
  weir_arena_destroy(other);
}
END_TEST

START_TEST(options_of_an_unknown_size_are_refused) {
  static const size_t wrong[] = {0,
                                 1,
                                 sizeof(weir_arena_options_t) - 1,
                                 sizeof(weir_arena_options_t) + 1,
                                 sizeof(weir_arena_options_t) + 64,
                                 SIZE_MAX};
  static char buffer[100 << 10];
  size_t i;

  for (i = 0; i < LENGTH(wrong); i++) {
    weir_arena_options_t wanted = options();
    wanted.size = wrong[i];
    errno = 0;
    ck_assert_ptr_null(weir_arena_create(&wanted));
    ck_assert_int_eq(errno, EINVAL);
    errno = 0;
    ck_assert_ptr_null(weir_arena_create_in(buffer, sizeof buffer, &wanted));
    ck_assert_int_eq(errno, EINVAL);
  }
}
END_TEST

/* The report as JSON, which jansson takes with numbers of up to 63 bits only. */
static json_t *parsed_report(weir_arena_t *arena) {
  static char text[65536];
  json_error_t error;
  json_t *root;
  int pipes[2];
  size_t length = 0;
  ssize_t got;

  ck_assert_int_eq(pipe(pipes), 0);
  ck_assert_int_eq(weir_arena_report(arena, pipes[1], WEIR_JSON), 0);
  close(pipes[1]);
  while ((got = read(pipes[0], text + length, sizeof text - 1 - length)) > 0)
    length += (size_t)got;
  close(pipes[0]);
  text[length] = '\0';
  ck_assert_ptr_eq(strchr(text, '\n'), text + length - 1);
  root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
  ck_assert_msg(root != NULL, "%s in %s", error.text, text);
  return root;
}

/* What of the name is kept, in weir_arena_name as in the report. */
static void check_name(const char *given, const char *kept) {
  weir_arena_options_t wanted = options();
  char copy[256];
  weir_arena_t *arena;
  json_t *root;

  strcpy(copy, given);
  wanted.name = copy;
  arena = weir_arena_create(&wanted);
  ck_assert_ptr_nonnull(arena);
  /* The caller's is the caller's again. */
  memset(copy, 'X', sizeof copy - 1);
  ck_assert_str_eq(weir_arena_name(arena), kept);
  ck_assert_ptr_eq(weir_arena_name(arena), weir_arena_name(arena));
  root = parsed_report(arena);
  ck_assert_str_eq(json_string_value(json_object_get(root, "arena")), kept);
  json_decref(root);
  weir_arena_destroy(arena);
}

START_TEST(names_are_copied_and_cut) {
  check_name("", "");
  check_name("camera", "camera");
  check_name("1234567890123456789012345678901", "1234567890123456789012345678901");
  check_name("12345678901234567890123456789012", "1234567890123456789012345678901");
  check_name("1234567890123456789012345678901234567890", "1234567890123456789012345678901");
  check_name("a \"quoted\" \\ /name/", "a \"quoted\" \\ /name/");
}
END_TEST

/* A character of several bytes is kept whole or not at all. */
START_TEST(names_are_cut_between_characters) {
  static const char *characters[] = {"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x90\xa2"};
  size_t i, before;

  for (i = 0; i < LENGTH(characters); i++) {
    size_t width = strlen(characters[i]);
    for (before = 24; before < 36; before++) {
      char given[64], kept[64];
      memset(given, 'n', before);
      strcpy(given + before, characters[i]);
      strcpy(kept, given);
      strcat(given, "more");
      if (before + width > WEIR_ARENA_NAME_MAX - 1) {
        kept[before < WEIR_ARENA_NAME_MAX ? before : WEIR_ARENA_NAME_MAX - 1] = '\0';
      } else {
        strncat(kept, "more", WEIR_ARENA_NAME_MAX - 1 - before - width);
      }
      check_name(given, kept);
    }
  }
}
END_TEST

/* Each byte that is part of no character becomes a question mark, as do control characters. */
START_TEST(names_that_are_no_text) {
  static const char *const names[][2] = {
      {"\xff", "?"},
      {"a\xffz", "a?z"},
      {"\xc3", "?"},
      {"\xc3(", "?("},
      {"\xe2\x82", "??"},
      {"\xf0\x9f\x90z", "???z"},
      {"\x80\x80", "??"},
      {"caf\xe9", "caf?"},
      {"\xed\xa0\x80", "???"},
      {"\xf5\x80\x80\x80", "????"},
      {"\xc0\x80", "??"},
      {"\xe0\x80\x80", "???"},
      {"\xf4\x90\x80\x80", "????"},
      {"a\tb\nc\x01", "a?b?c?"},
      {"\x7f", "?"},
      {"\x1b[1m", "?[1m"},
      {"\xf4\x8f\xbf\xbf\xff", "\xf4\x8f\xbf\xbf?"},
  };
  size_t i;

  for (i = 0; i < LENGTH(names); i++)
    check_name(names[i][0], names[i][1]);
}
END_TEST

START_TEST(blocks_follow_the_contract) {
  weir_arena_t *arena = make_plain();
  size_t i, round;

  for (round = 0; round < 2; round++) {
    for (i = 0; i < LENGTH(sizes); i++) {
      unsigned char *block;
      errno = 99;
      block = weir_arena_alloc(arena, sizes[i]);
      ck_assert_ptr_nonnull(block);
      ck_assert_uint_eq((uintptr_t)block % 16, 0);
      ck_assert_uint_ge(weir_arena_usable_size(arena, block), sizes[i]);
      ck_assert_uint_eq(weir_arena_usable_size(arena, block), weir_usable_size(block));
      ck_assert_ptr_eq(weir_arena_of(block), arena);
      memset(block, 0x5a, weir_usable_size(block));
      block = weir_arena_realloc(arena, block, sizes[i] * 2 + 1);
      ck_assert_ptr_nonnull(block);
      ck_assert(all_are(block, 0x5a, sizes[i]));
      memset(block, 0x5a, weir_usable_size(block));
      weir_arena_free(arena, block);
      block = weir_arena_zalloc(arena, 1, sizes[i]);
      ck_assert_ptr_nonnull(block);
      ck_assert(all_are(block, 0, sizes[i]));
      memset(block, 0x5a, weir_usable_size(block));
      weir_arena_free(arena, block);
      ck_assert_int_eq(errno, 99);
    }
  }
  weir_arena_free(arena, NULL);
  ck_assert_uint_eq(weir_arena_usable_size(arena, NULL), 0);
  ck_assert_uint_eq(now(arena).live, 0);
  weir_arena_destroy(arena);
}
END_TEST

START_TEST(blocks_of_no_size_are_distinct) {
  weir_arena_t *arena = make_plain();
  void *one = weir_arena_alloc(arena, 0), *other = weir_arena_zalloc(arena, 0, 10);
  void *third = weir_arena_realloc(arena, NULL, 0);

  ck_assert_ptr_nonnull(one);
  ck_assert_ptr_nonnull(other);
  ck_assert_ptr_nonnull(third);
  ck_assert_ptr_ne(one, other);
  ck_assert_ptr_ne(one, third);
  ck_assert_ptr_ne(other, third);
  /* As weir_realloc: no size frees. */
  ck_assert_ptr_null(weir_arena_realloc(arena, third, 0));
  weir_arena_free(arena, one);
  weir_arena_free(arena, other);
  ck_assert_uint_eq(now(arena).live, 0);
  weir_arena_destroy(arena);
}
END_TEST

START_TEST(failures_set_errno_and_keep_the_block) {
  volatile size_t much = (size_t)PTRDIFF_MAX + 1, half = SIZE_MAX / 2;
  weir_arena_t *arena = make_plain();
  char *block = weir_arena_alloc(arena, 10);
  uint64_t failures = now(arena).out_of_memory;

  strcpy(block, "kept");
  errno = 0;
  ck_assert_ptr_null(weir_arena_alloc(arena, much));
  ck_assert_int_eq(errno, ENOMEM);
  errno = 0;
  ck_assert_ptr_null(weir_arena_zalloc(arena, much, 2));
  ck_assert_int_eq(errno, ENOMEM);
  errno = 0;
  ck_assert_ptr_null(weir_arena_zalloc(arena, 3, half));
  ck_assert_int_eq(errno, ENOMEM);
  errno = 0;
  ck_assert_ptr_null(weir_arena_realloc(arena, block, much));
  ck_assert_int_eq(errno, ENOMEM);
  errno = 0;
  ck_assert_ptr_null(weir_arena_aligned_alloc(arena, 48, 10));
  ck_assert_int_eq(errno, EINVAL);
  errno = 0;
  ck_assert_ptr_null(weir_arena_aligned_alloc(arena, 0, 10));
  ck_assert_int_eq(errno, EINVAL);
  errno = 0;
  ck_assert_ptr_null(weir_arena_aligned_alloc(arena, 4096, much));
  ck_assert_int_eq(errno, ENOMEM);
  ck_assert_str_eq(block, "kept");
  ck_assert_uint_gt(now(arena).out_of_memory, failures);
  ck_assert_uint_eq(now(arena).over_limit, 0);
  weir_arena_destroy(arena);
}
END_TEST

START_TEST(alignment_is_kept) {
  weir_arena_t *arena = make_plain();
  size_t alignment;

  for (alignment = 1; alignment <= 16 * MIB; alignment *= 2) {
    void *one = weir_arena_aligned_alloc(arena, alignment, 1);
    void *many = weir_arena_aligned_alloc(arena, alignment, alignment + 1);
    ck_assert_ptr_nonnull(one);
    ck_assert_ptr_nonnull(many);
    ck_assert_uint_eq((uintptr_t)one % alignment, 0);
    ck_assert_uint_eq((uintptr_t)many % alignment, 0);
    ck_assert_ptr_eq(weir_arena_of(one), arena);
    ck_assert_ptr_eq(weir_arena_of(many), arena);
    weir_arena_free(arena, one);
    weir_free(many);
  }
  ck_assert_uint_eq(now(arena).live, 0);
  weir_arena_destroy(arena);
}
END_TEST

static void *free_it(void *block) {
  weir_free(block);
  return NULL;
}

static void *grow_it(void *block) {
  return weir_realloc(block, 3 * weir_usable_size(block));
}

/* Four arenas, one of them the default one and one a buffer; any may be named in vain. */
START_TEST(blocks_go_to_any_function) {
  static char buffer[1 << 20];
  weir_arena_t *arenas[4] = {NULL, make_plain(), make_plain(), make_in(buffer, sizeof buffer)};
  uint64_t before = now(NULL).live;
  size_t i, j, k;

  for (i = 0; i < LENGTH(arenas); i++) {
    for (j = 0; j < LENGTH(arenas); j++) {
      for (k = 0; k < LENGTH(sizes) && sizes[k] <= 100000; k++) {
        unsigned char *block = weir_arena_alloc(arenas[i], sizes[k]);
        size_t usable = weir_arena_usable_size(arenas[i], block);
        ck_assert_ptr_nonnull(block);
        memset(block, (int)k, usable);
        ck_assert_uint_eq(weir_arena_usable_size(arenas[j], block), usable);
        block = weir_arena_realloc(arenas[j], block, usable + 1);
        ck_assert_ptr_nonnull(block);
        ck_assert_ptr_eq(weir_arena_of(block), arenas[i]);
        ck_assert(all_are(block, (unsigned char)k, usable));
        block = elsewhere(grow_it, block);
        ck_assert_ptr_nonnull(block);
        ck_assert_ptr_eq(weir_arena_of(block), arenas[i]);
        ck_assert(all_are(block, (unsigned char)k, usable));
        if (k % 3 == 0) {
          weir_arena_free(arenas[j], block);
        } else if (k % 3 == 1) {
          weir_free(block);
        } else {
          elsewhere(free_it, block);
        }
      }
      ck_assert_uint_eq(now(arenas[i]).live, i == 0 ? before : 0);
    }
  }
  for (i = 0; i < LENGTH(arenas); i++)
    weir_arena_destroy(arenas[i]);
}
END_TEST

START_TEST(realloc_stays_in_the_arena) {
  static const size_t steps[] = {15,       16,     17,       500, 480,    70000, 69000, 65536,
                                 1u << 20, 900000, 5u << 20, 100, 200000, 64,    3};
  static char buffer[16 << 20];
  weir_arena_t *arenas[2] = {make_plain(), make_in(buffer, sizeof buffer)};
  weir_arena_t *decoy = make_plain();
  size_t i, k;

  for (i = 0; i < 2; i++) {
    size_t before = 0;
    unsigned char *block = weir_arena_realloc(arenas[i], NULL, 15);
    for (k = 0; k < LENGTH(steps); k++) {
      void *behind = weir_arena_alloc(arenas[i], steps[k]);
      size_t usable = weir_usable_size(block);
      unsigned char *moved = k % 2 == 0 ? weir_arena_realloc(decoy, block, steps[k])
                                        : weir_reallocarray(block, steps[k], 1);
      ck_assert_ptr_nonnull(moved);
      /* In place where its own room allows: always when it grows within what may be used. */
      if (steps[k] >= before && steps[k] <= usable)
        ck_assert_ptr_eq(moved, block);
      block = moved;
      ck_assert_ptr_eq(weir_arena_of(block), arenas[i]);
      ck_assert(holds(block, before < steps[k] ? before : steps[k], before, 5));
      fill(block, steps[k], 5);
      before = steps[k];
      weir_arena_free(arenas[i], behind);
    }
    weir_free(block);
    ck_assert_uint_eq(now(arenas[i]).live, 0);
  }
  ck_assert_uint_eq(now(decoy).live, 0);
  for (i = 0; i < 2; i++)
    weir_arena_destroy(arenas[i]);
  weir_arena_destroy(decoy);
}
END_TEST

/* The block freed last is the next one, at every size. */
START_TEST(last_in_first_out) {
  weir_arena_t *arena = make_plain();
  size_t i;

  for (i = 0; i < LENGTH(sizes); i++) {
    void *first = weir_arena_alloc(arena, sizes[i]), *second = weir_arena_alloc(arena, sizes[i]);
    weir_arena_free(arena, first);
    ck_assert_ptr_eq(weir_arena_alloc(arena, sizes[i]), first);
    weir_free(first);
    weir_arena_free(arena, second);
    ck_assert_ptr_eq(weir_arena_alloc(arena, sizes[i]), second);
    weir_arena_free(arena, second);
  }
  weir_arena_destroy(arena);
}
END_TEST

static volatile uintptr_t hidden;

static const void *at(const void *block, size_t offset) {
  hidden = (uintptr_t)block + offset;
  return (const void *)hidden;
}

START_TEST(arena_of_a_foreign_address) {
  static char foreign[64];
  weir_arena_of(at(foreign, 16));
}
END_TEST

START_TEST(arena_of_a_freed_block) {
  weir_arena_t *arena = make_plain();
  void *block = weir_arena_alloc(arena, _i);
  const void *same = at(block, 0);

  weir_arena_free(arena, block);
  weir_arena_of(same);
}
END_TEST

START_TEST(arena_of_the_middle_of_a_block) {
  weir_arena_of(at(weir_arena_alloc(make_plain(), _i), 16));
}
END_TEST

START_TEST(statistics_are_each_arenas_own) {
  enum { COUNT = 3000 };
  static void *blocks[COUNT];
  weir_arena_t *arena = make_plain(), *other = make_plain();
  weir_stats_t others = now(other), stats, global;
  uint64_t live = 0;
  size_t i;

  global = now(NULL);
  for (i = 0; i < COUNT; i++) {
    blocks[i] = weir_arena_alloc(arena, i % 100 == 0 ? i * 100 : i % 5000);
    live += weir_usable_size(blocks[i]);
    if (i % 500 == 0)
      ck_assert_uint_eq(now(arena).live, live);
  }
  for (i = 0; i < COUNT; i += 2) {
    live -= weir_usable_size(blocks[i]);
    weir_free(blocks[i]);
  }
  stats = now(arena);
  ck_assert_uint_eq(stats.live, live);
  ck_assert_uint_eq(stats.committed, stats.live + stats.retained + stats.fragmented + stats.meta);
  ck_assert_uint_le(stats.committed, stats.reserved + stats.meta);
  ck_assert_uint_ge(stats.peak_committed, stats.committed);
  ck_assert_uint_ge(stats.active, stats.live);
  ck_assert_uint_ge(stats.peak_active, stats.active);
  ck_assert_uint_gt(stats.fragmented, 0);
  ck_assert_uint_gt(stats.meta, 0);
  ck_assert_uint_gt(stats.sys_map, 0);
  /* Neither of the other two saw anything of it. */
  stats = now(other);
  ck_assert_mem_eq(&stats, &others, sizeof stats);
  stats = now(NULL);
  ck_assert_uint_eq(stats.live, global.live);
  ck_assert_uint_eq(stats.retained, global.retained);
  ck_assert_uint_eq(stats.active, global.active);
  weir_arena_destroy(arena);
  weir_arena_destroy(other);
}
END_TEST

START_TEST(statistics_of_another_size) {
  struct {
    weir_stats_t stats;
    uint64_t more[4];
  } longer;
  weir_arena_t *arena = make(5 * MIB, WEIR_LIMIT_NONE, 0);
  weir_stats_t shorter;

  memset(&shorter, 0xee, sizeof shorter);
  weir_arena_stats(arena, &shorter, 2 * sizeof(uint64_t));
  ck_assert_uint_ne(shorter.retained, 0xeeeeeeeeeeeeeeeeu);
  ck_assert_uint_eq(shorter.fragmented, 0xeeeeeeeeeeeeeeeeu);
  memset(&longer, 0xee, sizeof longer);
  weir_arena_stats(arena, &longer.stats, sizeof longer);
  ck_assert_uint_eq(longer.stats.mark, 5 * MIB);
  ck_assert_uint_eq(longer.more[0], 0);
  ck_assert_uint_eq(longer.more[3], 0);
  weir_arena_destroy(arena);
}
END_TEST

START_TEST(report_as_json) {
  weir_arena_t *arena = make(5 * MIB, 100 * MIB, 0);
  void *block = weir_arena_alloc(arena, 1000);
  size_t usable = weir_usable_size(block), i;
  json_t *root = parsed_report(arena), *list = json_object_get(root, "classes");
  weir_stats_t stats = now(arena);

  ck_assert_str_eq(json_string_value(json_object_get(root, "weir")), weir_version());
  ck_assert_str_eq(json_string_value(json_object_get(root, "arena")), "test");
  ck_assert_int_eq((int)json_integer_value(json_object_get(root, "pid")), getpid());
#define WEIR_STAT(name, kind, text) \
  ck_assert_msg(json_is_integer(json_object_get(root, #name)), "no " #name); \
  ck_assert_msg((uint64_t)json_integer_value(json_object_get(root, #name)) == stats.name, \
                #name " is not that of weir_arena_stats");
#include <weir/counters.def>
#undef WEIR_STAT
  ck_assert_uint_eq(stats.mark, 5 * MIB);
  ck_assert_uint_eq(stats.limit, 100 * MIB);
  ck_assert_uint_eq(json_array_size(list), 1);
  for (i = 0; i < json_array_size(list); i++) {
    json_t *one = json_array_get(list, i);
    ck_assert_uint_eq((size_t)json_integer_value(json_object_get(one, "block")), usable);
    ck_assert_uint_eq((size_t)json_integer_value(json_object_get(one, "live")), 1);
    ck_assert_uint_eq((size_t)json_integer_value(json_object_get(one, "slabs")), 1);
  }
  json_decref(root);
  weir_arena_set_retain(arena, WEIR_RETAIN_UNLIMITED);
  root = parsed_report(arena);
  ck_assert(json_integer_value(json_object_get(root, "mark")) == INT64_MAX);
  json_decref(root);
  weir_arena_destroy(arena);
}
END_TEST

START_TEST(report_as_text) {
  static char text[65536];
  weir_arena_t *arena = make_plain();
  FILE *file = tmpfile();
  size_t length;

  ck_assert_ptr_nonnull(file);
  ck_assert_int_eq(weir_arena_report(arena, fileno(file), WEIR_TEXT), 0);
  rewind(file);
  length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  ck_assert_uint_gt(length, 100);
  ck_assert_ptr_nonnull(strstr(text, "arena test\n"));
#define WEIR_STAT(name, kind, help) ck_assert_msg(strstr(text, #name) != NULL, "no " #name);
#include <weir/counters.def>
#undef WEIR_STAT
  ck_assert_int_eq(weir_arena_report(arena, -1, WEIR_TEXT), EBADF);
  ck_assert_int_eq(weir_arena_report(arena, -1, WEIR_JSON), EBADF);
  weir_arena_destroy(arena);
}
END_TEST

static Suite *arena_suite(void) {
  static const int block_sizes[] = {100, 40000, 1 << 20};
  Suite *suite = suite_create("arena");
  TCase *tests = tcase_create("weir/arena.h");
  size_t i;

  /* Each test starts in a fresh child. */
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, null_is_the_default_arena);
  tcase_add_test(tests, no_options_are_the_defaults);
  tcase_add_test(tests, options_of_an_unknown_size_are_refused);
  tcase_add_test(tests, names_are_copied_and_cut);
  tcase_add_test(tests, names_are_cut_between_characters);
  tcase_add_test(tests, names_that_are_no_text);
  tcase_add_test(tests, blocks_follow_the_contract);
  tcase_add_test(tests, blocks_of_no_size_are_distinct);
  tcase_add_test(tests, failures_set_errno_and_keep_the_block);
  tcase_add_test(tests, alignment_is_kept);
  tcase_add_test(tests, blocks_go_to_any_function);
  tcase_add_test(tests, realloc_stays_in_the_arena);
  tcase_add_test(tests, last_in_first_out);
  tcase_add_test_raise_signal(tests, arena_of_a_foreign_address, SIGABRT);
  for (i = 0; i < LENGTH(block_sizes); i++) {
    int size = block_sizes[i];
    tcase_add_loop_test_raise_signal(tests, arena_of_a_freed_block, SIGABRT, size, size + 1);
    tcase_add_loop_test_raise_signal(tests, arena_of_the_middle_of_a_block, SIGABRT, size,
                                     size + 1);
  }
  tcase_add_test(tests, statistics_are_each_arenas_own);
  tcase_add_test(tests, statistics_of_another_size);
  tcase_add_test(tests, report_as_json);
  tcase_add_test(tests, report_as_text);
  suite_add_tcase(suite, tests);
  return suite;
}

int main(void) {
  return run_suite(arena_suite());
}
