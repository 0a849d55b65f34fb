/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic on sizes and bits: rounding, logarithms, checked products, sets of numbers. No state.
 */
#ifndef WR_BITS_H
#define WR_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attr.h"

WR_INLINE bool wr_bits_is_pow2(size_t n) {
  return n != 0 && (n & (n - 1)) == 0;
}

/* `unit` is a power of two; the sum must not overflow. */
WR_INLINE size_t wr_bits_up(size_t n, size_t unit) {
  return (n + unit - 1) & ~(unit - 1);
}

WR_INLINE size_t wr_bits_down(size_t n, size_t unit) {
  return n & ~(unit - 1);
}

/* Floor of the binary logarithm; n > 0. */
WR_INLINE unsigned wr_bits_log2(size_t n) {
  return (unsigned)(sizeof(long) * 8 - 1) - (unsigned)__builtin_clzl(n);
}

/* Number of the lowest bit that is set; n > 0. */
WR_INLINE unsigned wr_bits_lowest(uint64_t n) {
  return (unsigned)__builtin_ctzll(n);
}

WR_INLINE size_t wr_bits_min(size_t a, size_t b) {
  return a < b ? a : b;
}

WR_INLINE size_t wr_bits_max(size_t a, size_t b) {
  return a > b ? a : b;
}

/* Whether a * b fits in *product. */
WR_INLINE bool wr_bits_product(size_t a, size_t b, size_t *product) {
  return !__builtin_mul_overflow(a, b, product);
}

WR_INLINE uint64_t wr_bits_rotate_right(uint64_t n, unsigned by) {
  return (n >> (by & 63)) | (n << (-by & 63));
}

/* Sets of small numbers, a bit each, in an array of words. */
WR_INLINE bool wr_bits_has(const uint64_t *set, size_t number) {
  return (set[number / 64] >> number % 64 & 1) != 0;
}

WR_INLINE void wr_bits_include(uint64_t *set, size_t number) {
  set[number / 64] |= (uint64_t)1 << number % 64;
}

WR_INLINE void wr_bits_exclude(uint64_t *set, size_t number) {
  set[number / 64] &= ~((uint64_t)1 << number % 64);
}

#endif
