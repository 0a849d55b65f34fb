/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow half of the lock: first use by a thread, and contention.
 */
#include "lock.h"

#define SPINS 64
/* A lock for which a thread sleeps in the kernel is handed over to that thread, and until it runs
 * nobody else can take it: where more threads are ready to run than there are processors, every
 * one of them soon sleeps for every turn. With 20 threads on two processors that made a message
 * cost thirty times as much. So a waiter lets others run first; but only so often, because a thread
 * of a real-time class that waits for one of a lower priority must lend it its own. */
#define YIELDS 16

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

/* The kernel's bit for "someone waits", and the identity below it (futex(2)). */
#define WAITERS ((uint32_t)1 << 31)
#define IDENTITY (((uint32_t)1 << 30) - 1)

/* The thread that holds all locks to fork, and how often it has taken one of them again. */
static WR_RESIDENT _Atomic(uint32_t) forking;
static WR_RESIDENT uint32_t nested;

static uint32_t holder(const struct wr_lock *lock) {
  return atomic_load_explicit(&lock->word, memory_order_relaxed) & IDENTITY;
}

/* Whether the caller is between wr_lock_forking and wr_lock_forked: in the child, where the forking
 * thread goes on under a new identity, too. */
static bool is_forking(void) {
  uint32_t thread = atomic_load_explicit(&forking, memory_order_relaxed);
  return thread != 0 && (thread == wr_lock_self || !wr_os_is_thread(thread));
}

WR_COLD void wr_lock_wait(struct wr_lock *lock) {
  /* Each time, because a child that clone made runs no handler and has the parent's variables. */
  wr_lock_self = wr_os_thread();
  if (holder(lock) == atomic_load_explicit(&forking, memory_order_relaxed) && is_forking()) {
    nested++;
    return;
  }
  /* A holder that runs is done within tens of nanoseconds: less than the system call takes. */
  for (int i = 0; i < SPINS; i++) {
    if (try_take(lock))
      return;
    pause_briefly();
  }
  for (int i = 0; i < YIELDS; i++) {
    wr_os_yield();
    if (try_take(lock))
      return;
  }
  for (;;) {
    /* Only for a thread that can give the lock to us: a holder with another process's identity
     * gives it by a plain store. */
    if (wr_os_is_thread(holder(lock)) && wr_os_lock_wait(&lock->word) == 0) {
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
  if (nested > 0 && is_forking()) {
    nested--;
    return;
  }
  /* Taken while the process had one thread, by a thread that then made another. */
  if (holder(lock) == WR_LOCK_ALONE) {
    atomic_store_explicit(&lock->word, 0, memory_order_release);
    return;
  }
  /* Release: pairs with the acquire fence of wr_lock_wait. */
  atomic_thread_fence(memory_order_release);
  wr_os_lock_wake(&lock->word);
}

void wr_lock_forking(void) {
  if (wr_lock_self == 0)
    wr_lock_self = wr_os_thread();
  nested = 0;
  atomic_store_explicit(&forking, wr_lock_self, memory_order_relaxed);
}

void wr_lock_hold(struct wr_lock *lock) {
  wr_lock_take(lock);
  /* So that giving it back takes the slow path, which knows of nested taking. */
  atomic_fetch_or_explicit(&lock->word, WAITERS, memory_order_relaxed);
}

void wr_lock_forked(bool child) {
  atomic_store_explicit(&forking, 0, memory_order_relaxed);
  if (child)
    wr_lock_self = wr_os_thread();
}
