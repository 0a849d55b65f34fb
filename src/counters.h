/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters that any thread may add to and any may read: relaxed, because a count orders nothing.
 * Their names and meanings stand in include/weir/counters.def.
 */
#ifndef WR_COUNTERS_H
#define WR_COUNTERS_H

#include <stdatomic.h>
#include <stddef.h>

#include "attr.h"

typedef _Atomic(size_t) wr_counter;

WR_INLINE void wr_counter_add(wr_counter *counter, size_t n) {
  atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

WR_INLINE void wr_counter_sub(wr_counter *counter, size_t n) {
  atomic_fetch_sub_explicit(counter, n, memory_order_relaxed);
}

WR_INLINE size_t wr_counter_read(const wr_counter *counter) {
  return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Adds without a locked instruction: for a counter that only one thread at a time writes. */
WR_INLINE void wr_counter_bump(wr_counter *counter, size_t n) {
  atomic_store_explicit(counter, wr_counter_read(counter) + n, memory_order_relaxed);
}

WR_INLINE void wr_counter_set(wr_counter *counter, size_t n) {
  atomic_store_explicit(counter, n, memory_order_relaxed);
}

/* Raises a peak to `n`; for a counter whose writers hold one lock. */
WR_INLINE void wr_counter_peak(wr_counter *counter, size_t n) {
  if (n > wr_counter_read(counter))
    wr_counter_set(counter, n);
}

#endif
