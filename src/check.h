/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check levels, chosen by --enable-checks: 0 (no) trusts the program, 1 (cheap, the default) finds
 * a bad free and a corrupted free list for a few instructions a call, 2 (full) also asserts weir's
 * own invariants. What the checks at level 1 are is written where they stand.
 */
#ifndef WR_CHECK_H
#define WR_CHECK_H

#include <stdbool.h>

#include "attr.h"

#ifndef WR_CHECKS
#define WR_CHECKS 1
#endif

#define WR_CHECK_CHEAP (WR_CHECKS >= 1)
#define WR_CHECK_FULL (WR_CHECKS >= 2)

/* An invariant of weir's own: broken only by a bug of weir or by a stray write of the program. */
#if WR_CHECK_FULL
#define WR_ASSERT(condition) ((condition) ? (void)0 : __builtin_trap())
#else
#define WR_ASSERT(condition) ((void)sizeof(condition))
#endif

/* For the functions that walk a whole structure, in every build. */
WR_INLINE void wr_check_require(bool condition) {
  if (!condition)
    __builtin_trap();
}

#endif
