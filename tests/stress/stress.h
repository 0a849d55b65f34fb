/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the stress programs share: the end of a program that has found a fault, and random numbers.
 */
#ifndef TESTS_STRESS_H
#define TESTS_STRESS_H

#include <stdio.h>
#include <stdlib.h>

#include "../random.h"

#define REQUIRE(cond, ...) \
  do { \
    if (!(cond)) { \
      fprintf(stderr, "FAIL %s:%d: ", __FILE__, __LINE__); \
      fprintf(stderr, __VA_ARGS__); \
      fputc('\n', stderr); \
      exit(1); \
    } \
  } while (0)

#endif
