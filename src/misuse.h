/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What weir says on standard error: the line that stops a program which misused it, and the line
 * about a bad option. No lock, no allocation.
 */
#ifndef WR_MISUSE_H
#define WR_MISUSE_H

#include <stdint.h>

/* Every kind of misuse: X(name, what the line says). */
#define WR_MISUSE_KINDS(X) \
  X(POINTER, "invalid pointer") \
  X(DOUBLE_FREE, "double free") \
  X(FREE_LIST, "corrupted free list")

enum wr_misuse_kind {
#define X(name, text) WR_MISUSE_##name,
  WR_MISUSE_KINDS(X)
#undef X
};

/* Prints "weir: KIND: 0xADDRESS" and ends the process with SIGABRT. */
_Noreturn void wr_misuse_stop(enum wr_misuse_kind kind, const volatile void *address);

/* Prints one line. */
void wr_misuse_say(const char *line);

#endif
