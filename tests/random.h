/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers for tests that stand outside of the unit tests: the same on every machine, and
 * decided by their seed (splitmix64: Steele, Lea and Flood, OOPSLA 2014).
 */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/** The next number of a sequence. */
static inline uint64_t next_random(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/** A size up to `most`, small ones as likely as large ones. */
static inline size_t next_random_size(uint64_t *state, size_t most) {
  unsigned bits = (unsigned)(next_random(state) % 40);
  size_t size = (size_t)(next_random(state) & (((uint64_t)1 << bits) - 1));

  return most == SIZE_MAX ? size : size % (most + 1);
}

#endif
