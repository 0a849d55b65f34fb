/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic on sizes against the slow and obvious way, at the edges and at random.
 */
#include "bits.h"

#include "unit.h"

START_TEST(powers_of_two) {
  size_t found = 0;
  ck_assert(!wr_bits_is_pow2(0));
  for (unsigned i = 0; i < sizeof(size_t) * 8; i++)
    ck_assert(wr_bits_is_pow2((size_t)1 << i));
  for (size_t n = 0; n <= 65536; n++)
    found += wr_bits_is_pow2(n);
  ck_assert_uint_eq(found, 17);
  ck_assert(!wr_bits_is_pow2(SIZE_MAX));
}
END_TEST

START_TEST(rounding) {
  for (size_t unit = 1; unit <= 4096; unit *= 2)
    for (size_t n = 0; n <= 9000; n++) {
      if (wr_bits_down(n, unit) != n / unit * unit ||
          wr_bits_up(n, unit) != (n + unit - 1) / unit * unit)
        ck_abort_msg("%zu in units of %zu", n, unit);
    }
  ck_assert_uint_eq(wr_bits_down(SIZE_MAX, 65536), SIZE_MAX - 65535);
  ck_assert_uint_eq(wr_bits_up(SIZE_MAX - 65535, 65536), SIZE_MAX - 65535);
}
END_TEST

START_TEST(logarithms) {
  for (unsigned i = 0; i < sizeof(size_t) * 8; i++) {
    size_t power = (size_t)1 << i;
    ck_assert_uint_eq(wr_bits_log2(power), i);
    ck_assert_uint_eq(wr_bits_log2(power | (power - 1)), i);
    ck_assert_uint_eq(wr_bits_lowest(power), i);
    ck_assert_uint_eq(wr_bits_lowest(power | SIZE_MAX << i), i);
  }
}
END_TEST

START_TEST(smaller_and_larger) {
  ck_assert_uint_eq(wr_bits_min(1, 2), 1);
  ck_assert_uint_eq(wr_bits_min(SIZE_MAX, 0), 0);
  ck_assert_uint_eq(wr_bits_max(1, 2), 2);
  ck_assert_uint_eq(wr_bits_max(SIZE_MAX, 0), SIZE_MAX);
}
END_TEST

START_TEST(products) {
  uint64_t seed = 11;
  size_t product = 0;
  ck_assert(wr_bits_product(0, SIZE_MAX, &product));
  ck_assert_uint_eq(product, 0);
  ck_assert(wr_bits_product(SIZE_MAX, 1, &product));
  ck_assert_uint_eq(product, SIZE_MAX);
  ck_assert(!wr_bits_product(SIZE_MAX, 2, &product));
  ck_assert(!wr_bits_product((size_t)1 << 32, (size_t)1 << (sizeof(size_t) * 8 - 32), &product));
  for (int i = 0; i < 100000; i++) {
    size_t a = (size_t)unit_random(&seed) >> unit_below(&seed, sizeof(size_t) * 8);
    size_t b = (size_t)unit_random(&seed) >> unit_below(&seed, sizeof(size_t) * 8);
    bool fits = a == 0 || b <= SIZE_MAX / a;
    if (wr_bits_product(a, b, &product) != fits || (fits && product != a * b))
      ck_abort_msg("%zu times %zu", a, b);
  }
}
END_TEST

START_TEST(rotation) {
  ck_assert_uint_eq(wr_bits_rotate_right(1, 0), 1);
  ck_assert_uint_eq(wr_bits_rotate_right(1, 1), (uint64_t)1 << 63);
  for (unsigned by = 0; by < 64; by++) {
    uint64_t n = UINT64_C(0x0123456789abcdef);
    for (unsigned i = 0; i < by; i++)
      n = n >> 1 | (n & 1) << 63;
    ck_assert_uint_eq(wr_bits_rotate_right(UINT64_C(0x0123456789abcdef), by), n);
  }
}
END_TEST

START_TEST(sets) {
  uint64_t set[3] = {0};
  bool in[192] = {false};
  uint64_t seed = 5;
  for (int i = 0; i < 2000; i++) {
    size_t number = unit_below(&seed, 192);
    in[number] = unit_below(&seed, 2) != 0;
    if (in[number])
      wr_bits_include(set, number);
    else
      wr_bits_exclude(set, number);
    for (size_t other = 0; other < 192; other++)
      ck_assert(wr_bits_has(set, other) == in[other]);
  }
}
END_TEST

UNIT_SUITE(bits, powers_of_two, rounding, logarithms, smaller_and_larger, products, rotation, sets)
