/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow half of the lock: first use by a thread, and contention.
 */
#include "lock.h"

#define SPINS 64

WR_TLS uint32_t wr_lock_self;

static bool try_take(struct wr_lock *lock) {
  uint32_t free = 0;
  /* Acquire: pairs with the release of wr_lock_give. */
  return atomic_compare_exchange_strong_explicit(&lock->word, &free, wr_lock_self,
                                                 memory_order_acquire, memory_order_relaxed);
}

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ volatile("yield");
#endif
}

WR_COLD void wr_lock_wait(struct wr_lock *lock) {
  if (wr_lock_self == 0)
    wr_lock_self = wr_os_thread();
  /* A holder that runs is done within tens of nanoseconds: less than the system call takes. */
  for (int i = 0; i < SPINS; i++) {
    if (try_take(lock))
      return;
    pause_briefly();
  }
  for (;;) {
    if (wr_os_lock_wait(&lock->word) == 0) {
      /* The kernel wrote our identity; the fence pairs with the release of wr_lock_give, whose
       * exchange failed and left the hand-over to the kernel. */
      atomic_thread_fence(memory_order_acquire);
      return;
    }
    if (try_take(lock))
      return;
    wr_os_yield();
  }
}

WR_COLD void wr_lock_wake(struct wr_lock *lock) {
  uint32_t alone = WR_LOCK_ALONE;
  /* Taken while the process had one thread, by a thread that then made another. */
  if (atomic_compare_exchange_strong_explicit(&lock->word, &alone, 0, memory_order_release,
                                              memory_order_relaxed))
    return;
  /* Release: pairs with the acquire fence of wr_lock_wait. */
  atomic_thread_fence(memory_order_release);
  wr_os_lock_wake(&lock->word);
}

void wr_lock_forked(void) {
  wr_lock_self = wr_os_thread();
}
