/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text without stdio: what each function writes, how it reaches the sink, and how sizes are read.
 */
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

static struct unit_sink sink;
static struct wr_text text;

static void begin(void) {
  memset(&sink, 0, sizeof sink);
  wr_text_begin(&text, unit_sink, &sink);
}

static void expect(const char *want) {
  ck_assert_int_eq(wr_text_end(&text), 0);
  ck_assert_str_eq(sink.text, want);
  begin();
}

START_TEST(strings_and_bytes) {
  begin();
  wr_text_string(&text, "");
  expect("");
  wr_text_string(&text, "one ");
  wr_text_bytes(&text, "two three", 3);
  expect("one two");
}
END_TEST

START_TEST(numbers) {
  uint64_t seed = 5;
  begin();
  wr_text_number(&text, 0);
  expect("0");
  wr_text_number(&text, UINT64_MAX);
  expect("18446744073709551615");
  wr_text_hex(&text, 0);
  expect("0x0");
  wr_text_hex(&text, UINTPTR_MAX);
  expect(sizeof(uintptr_t) == 8 ? "0xffffffffffffffff" : "0xffffffff");
  for (int i = 0; i < 1000; i++) {
    uint64_t n = unit_random(&seed) >> unit_below(&seed, 64);
    char want[64];
    snprintf(want, sizeof want, "%" PRIu64 " 0x%" PRIxPTR, n, (uintptr_t)n);
    wr_text_number(&text, n);
    wr_text_string(&text, " ");
    wr_text_hex(&text, (uintptr_t)n);
    expect(want);
  }
}
END_TEST

START_TEST(padding) {
  begin();
  wr_text_left(&text, "ab", 5);
  wr_text_string(&text, "|");
  expect("ab   |");
  wr_text_left(&text, "abcdef", 5);
  expect("abcdef");
  wr_text_right(&text, 42, 5);
  expect("   42");
  wr_text_right(&text, 123456, 5);
  expect("123456");
  wr_text_right(&text, UINT64_MAX, 22);
  expect("  18446744073709551615");
}
END_TEST

START_TEST(sizes) {
  static const struct {
    size_t size;
    const char *want;
  } cases[] = {
      {0, "0"},
      {1, "1"},
      {1023, "1023"},
      {1024, "1K"},
      {1025, "1025"},
      {1536, "1536"},
      {65536, "64K"},
      {(size_t)1 << 20, "1M"},
      {3 << 19, "1536K"},
      {(size_t)64 << 20, "64M"},
      {1 << 30, "1G"},
      {((size_t)1 << 30) + 1, "1073741825"},
      {SIZE_MAX, "unlimited"},
  };
  begin();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    wr_text_size(&text, cases[i].size);
    expect(cases[i].want);
  }
}
END_TEST

START_TEST(json_strings) {
  begin();
  wr_text_json(&text, "plain");
  expect("plain");
  wr_text_json(&text, "a\"b\\c\n\x01\x1f d\x7f\xc3\xa9");
  expect("a\\\"b\\\\c\\u000a\\u0001\\u001f d\x7f\xc3\xa9");
}
END_TEST

START_TEST(long_text_reaches_the_sink_whole) {
  char want[4001];
  begin();
  for (int i = 0; i < 4000; i++)
    want[i] = (char)('a' + i % 26);
  want[4000] = '\0';
  wr_text_string(&text, want);
  ck_assert_uint_gt(sink.calls, 0);
  expect(want);
  for (int i = 0; i < 4000; i++)
    wr_text_bytes(&text, &want[i], 1);
  expect(want);
  want[sizeof text.buffer] = '\0';
  wr_text_string(&text, want);
  expect(want);
}
END_TEST

START_TEST(a_failed_sink_is_left_alone) {
  begin();
  sink.fail_at = 2;
  sink.error = ENOSPC;
  for (int i = 0; i < 4000; i++)
    wr_text_string(&text, "x");
  ck_assert_uint_eq(sink.calls, 2);
  ck_assert_uint_eq(sink.used, sizeof text.buffer);
  ck_assert_int_eq(wr_text_end(&text), ENOSPC);
  ck_assert_int_eq(text.error, ENOSPC);
  ck_assert_uint_eq(sink.calls, 2);

  begin();
  sink.fail_at = 1;
  sink.error = EPIPE;
  wr_text_string(&text, "only at the end");
  ck_assert_uint_eq(sink.calls, 0);
  ck_assert_int_eq(wr_text_end(&text), EPIPE);
  ck_assert_uint_eq(sink.calls, 1);
}
END_TEST

START_TEST(without_a_sink_what_does_not_fit_is_dropped) {
  wr_text_begin(&text, NULL, NULL);
  for (size_t i = 0; i < 3 * sizeof text.buffer; i++)
    wr_text_bytes(&text, i < sizeof text.buffer ? "a" : "b", 1);
  ck_assert_uint_eq(text.used, sizeof text.buffer);
  for (size_t i = 0; i < sizeof text.buffer; i++)
    ck_assert_int_eq(text.buffer[i], 'a');
  ck_assert_int_eq(wr_text_end(&text), 0);
  wr_text_begin(&text, NULL, NULL);
  wr_text_string(&text, "kept");
  ck_assert_int_eq(wr_text_end(&text), 0);
  ck_assert_uint_eq(text.used, 4);
  ck_assert_int_eq(memcmp(text.buffer, "kept", 4), 0);
}
END_TEST

START_TEST(good_sizes_are_read) {
  static const struct {
    const char *string;
    size_t size;
  } cases[] = {
    {"0", 0},
    {"1", 1},
    {"007", 7},
    {"4096", 4096},
    {"1k", 1024},
    {"1K", 1024},
    {"64m", (size_t)64 << 20},
    {"64M", (size_t)64 << 20},
    {"2g", (size_t)2 << 30},
    {"2G", (size_t)2 << 30},
    {"0G", 0},
    {"unlimited", SIZE_MAX},
#if SIZE_MAX > UINT32_MAX
    {"18446744073709551615", SIZE_MAX},
    {"18014398509481983K", SIZE_MAX - 1023},
#endif
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    size_t size = 77;
    ck_assert_msg(wr_text_parse_size(cases[i].string, &size), "%s", cases[i].string);
    ck_assert_uint_eq(size, cases[i].size);
  }
}
END_TEST

START_TEST(bad_sizes_are_refused) {
  static const char *const cases[] = {
      "",
      " ",
      "K",
      "-1",
      "+1",
      " 1",
      "1 ",
      "1KB",
      "1 K",
      "1KK",
      "0x10",
      "1.5M",
      "abc",
      "1T",
      "1e3",
      "unlimite",
      "1,0",
      "unlimitedK",
      "Unlimited",
      "18446744073709551616",
      "18014398509481984K",
      "17592186044416M",
      "17179869184G",
      "99999999999999999999999999",
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    size_t size = 77;
    ck_assert_msg(!wr_text_parse_size(cases[i], &size), "\"%s\"", cases[i]);
    ck_assert_uint_eq(size, 77);
  }
}
END_TEST

START_TEST(what_is_written_is_read_as_the_same_size) {
  uint64_t seed = 3;
  for (int i = 0; i < 2000; i++) {
    size_t size = (size_t)(unit_random(&seed) >> unit_below(&seed, 64)) << unit_below(&seed, 40);
    size_t got = ~size;
    begin();
    wr_text_size(&text, size);
    ck_assert_int_eq(wr_text_end(&text), 0);
    ck_assert(wr_text_parse_size(sink.text, &got));
    ck_assert_uint_eq(got, size);
  }
}
END_TEST

/* Every sequence of up to three bytes, and of four with any of the last two, against a decoder that
 * goes by what a character means. */
static size_t character(const unsigned char *byte) {
  static const uint32_t least[] = {0, 0x20, 0x80, 0x800, 0x10000};
  size_t length = byte[0] < 0x80 ? 1 : byte[0] >> 5 == 6 ? 2 : byte[0] >> 4 == 14 ? 3 : 4;
  uint32_t value = length == 1 ? byte[0] : byte[0] & (0x7fU >> length);
  if (length == 4 && byte[0] >> 3 != 30)
    return 0;
  for (size_t i = 1; i < length; i++) {
    if (byte[i] >> 6 != 2)
      return 0;
    value = value << 6 | (byte[i] & 0x3f);
  }
  return value >= least[length] && value <= 0x10ffff && value != 0x7f && value >> 11 != 27 ? length
                                                                                           : 0;
}

START_TEST(characters_are_told_from_what_is_none) {
  for (uint32_t bytes = 0; bytes < 1U << 24; bytes++) {
    unsigned char string[5] = {(unsigned char)(bytes >> 16), (unsigned char)(bytes >> 8),
                               (unsigned char)bytes, (unsigned char)(bytes * 7), 0};
    if (wr_text_character((const char *)string) != character(string))
      ck_abort_msg("%02x %02x %02x %02x", string[0], string[1], string[2], string[3]);
  }
}
END_TEST

UNIT_SUITE(text, characters_are_told_from_what_is_none, strings_and_bytes, numbers, padding, sizes,
           json_strings, long_text_reaches_the_sink_whole, a_failed_sink_is_left_alone,
           without_a_sink_what_does_not_fit_is_dropped, good_sizes_are_read, bad_sizes_are_refused,
           what_is_written_is_read_as_the_same_size)
