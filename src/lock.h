/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock of one word whose waiters lend their priority to its holder. The word is 0, or the
 * holder's thread identity, with the kernel's bit for "someone waits" above it: the format of
 * futex(2)'s FUTEX_LOCK_PI. Taking and releasing it uncontended is one atomic exchange each. Zero
 * is a free lock. Not recursive.
 */
#ifndef WR_LOCK_H
#define WR_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "attr.h"
#include "os.h"

struct wr_lock {
  _Atomic(uint32_t) word;
};

/* The calling thread's identity, read from the system once; 0 before. */
extern WR_TLS uint32_t wr_lock_self;

void wr_lock_wait(struct wr_lock *lock);
void wr_lock_wake(struct wr_lock *lock);
/*
 * Fork. Between wr_lock_forking and wr_lock_forked the calling thread may take and give again a
 * lock that it holds by wr_lock_hold: handlers of other libraries may run while fork holds the
 * locks, and allocate. `child`: the thread has a new identity, and locks are re-initialised one by
 * one.
 */
void wr_lock_forking(void);
void wr_lock_hold(struct wr_lock *lock);
void wr_lock_forked(bool child);

WR_INLINE void wr_lock_init(struct wr_lock *lock) {
  atomic_store_explicit(&lock->word, 0, memory_order_relaxed);
}

/*
 * In a process with one thread a plain store does, and saves a wait: a locked instruction has to
 * wait until all that the program wrote before has left the store buffer.
 */
#define WR_LOCK_ALONE 1u /* init, which takes no lock of a process other than its own */

WR_INLINE bool wr_lock_alone(void) {
  return WR_OS_ALONE;
}

WR_INLINE void wr_lock_take(struct wr_lock *lock) {
  uint32_t free = 0;
  if (wr_lock_alone()) {
    atomic_store_explicit(&lock->word, WR_LOCK_ALONE, memory_order_relaxed);
    return;
  }
  /* Acquire: pairs with the release of wr_lock_give. */
  if (WR_UNLIKELY(wr_lock_self == 0 || !atomic_compare_exchange_strong_explicit(
                                           &lock->word, &free, wr_lock_self, memory_order_acquire,
                                           memory_order_relaxed)))
    wr_lock_wait(lock);
}

WR_INLINE void wr_lock_give(struct wr_lock *lock) {
  uint32_t self = wr_lock_self;
  if (wr_lock_alone()) {
    atomic_store_explicit(&lock->word, 0, memory_order_relaxed);
    return;
  }
  /* Release: pairs with the acquire of wr_lock_take and wr_lock_wait. */
  if (WR_UNLIKELY(!atomic_compare_exchange_strong_explicit(
          &lock->word, &self, 0, memory_order_release, memory_order_relaxed)))
    wr_lock_wake(lock);
}

#endif
