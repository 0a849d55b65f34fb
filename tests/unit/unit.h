/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the unit tests share: how a file becomes a suite, seeded random numbers, children whose end
 * and last words are looked at, and a sink that keeps what it gets. Children must not use Check's
 * assertions: they say what they found by their exit status.
 */
#ifndef UNIT_H
#define UNIT_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Defines the suite NAME of the tests that follow it. */
#define UNIT_SUITE(name, ...) \
  Suite *suite_##name(void); \
  Suite *suite_##name(void) { \
    return unit_suite(#name, (const TTest *[]){__VA_ARGS__, NULL}); \
  }

Suite *unit_suite(const char *name, const TTest **tests);

/* The next number of a sequence that its seed decides; the seed is not 0. */
uint64_t unit_random(uint64_t *state);
/* From 0 to below `limit`. */
size_t unit_below(uint64_t *state, size_t limit);

/* Runs `what` in a child and returns its wait status; what it wrote to standard error is in
 * `text`. */
int unit_child(void (*what)(void *argument), void *argument, char *text, size_t room);
/* The same for what must end with SIGABRT and this text. */
void unit_expect_abort(void (*what)(void *argument), void *argument, const char *text);
/* The same for a misuse of the kind that the line about `address` names. */
void unit_expect_misuse(void (*what)(void *argument), void *argument, const char *kind,
                        const void *address);
/* Runs a child whose exit status must be 0. */
void unit_expect_success(void (*what)(void *argument), void *argument);

/* Runs this program again, without a test, in an environment of these entries. Returns the process
 * id it had; what it wrote to standard error is in `text`. */
int unit_again(char *const environment[], char *text, size_t room);

/* Keeps what it gets as one string. */
struct unit_sink {
  char text[16384];
  size_t used;
  size_t calls;
  size_t fail_at; /* the call that fails, counted from 1; 0 is none */
  int error;
};

/* A wr_text_sink; `context` is a struct unit_sink. */
int unit_sink(void *context, const char *bytes, size_t length);

#endif
