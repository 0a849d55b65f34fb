/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks freed by other threads on their way back to the heap that owns them: a stack that any
 * thread pushes on with one compare-and-swap and whose owner takes all of it at once (Treiber's
 * stack; because nobody takes a single block, a block that comes back meanwhile does no harm).
 */
#ifndef WR_REMOTE_H
#define WR_REMOTE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "slab.h"

/*
 * The address of the block on top, and above its 48 bits (the page map covers no more) how much
 * there is on the stack, in units of 64 bytes, as far as 16 bits tell; so that whoever pushes knows
 * when the owner has not come for long. Without those bits on 32-bit systems.
 */
struct wr_remote {
  _Atomic(uintptr_t) top;
};

#if UINTPTR_MAX > UINT32_MAX
#define WR_REMOTE_SHIFT 48
#define WR_REMOTE_AMOUNT(top) ((size_t)((top) >> WR_REMOTE_SHIFT))
#define WR_REMOTE_TOP(block, amount) ((uintptr_t)(block) | (uintptr_t)(amount) << WR_REMOTE_SHIFT)
#else
#define WR_REMOTE_AMOUNT(top) ((size_t)0)
#define WR_REMOTE_TOP(block, amount) ((void)(amount), (uintptr_t)(block))
#endif
#define WR_REMOTE_UNIT_SHIFT 6
#define WR_REMOTE_AMOUNT_MAX ((size_t)0xffff)

WR_INLINE struct wr_block *wr_remote_block(uintptr_t top) {
#if UINTPTR_MAX > UINT32_MAX
  top &= ((uintptr_t)1 << WR_REMOTE_SHIFT) - 1;
#endif
  return (struct wr_block *)top;
}

WR_INLINE bool wr_remote_is_empty(const struct wr_remote *remote) {
  return atomic_load_explicit(&remote->top, memory_order_relaxed) == 0;
}

/* Pushes a block of `size` bytes; any thread. The caller must not touch the block or its slab
 * afterwards. Returns about how many units of 64 bytes there are on the stack now. */
WR_INLINE size_t wr_remote_give(struct wr_remote *remote, struct wr_block *block, size_t size) {
  uintptr_t top = atomic_load_explicit(&remote->top, memory_order_relaxed);
  size_t amount;
  do {
    block->next = wr_remote_block(top);
    amount = wr_bits_min(WR_REMOTE_AMOUNT(top) + wr_bits_max(size >> WR_REMOTE_UNIT_SHIFT, 1),
                         WR_REMOTE_AMOUNT_MAX);
    /* Release: pairs with the acquire of wr_remote_take_all. */
  } while (!atomic_compare_exchange_weak_explicit(&remote->top, &top, WR_REMOTE_TOP(block, amount),
                                                  memory_order_release, memory_order_relaxed));
  return amount;
}

/* The whole stack, linked by `next`. */
WR_INLINE struct wr_block *wr_remote_take_all(struct wr_remote *remote) {
  /* Acquire: pairs with the release of wr_remote_give. */
  return wr_remote_block(atomic_exchange_explicit(&remote->top, 0, memory_order_acquire));
}

/* The stack as it is; only for a caller whose lock keeps others from taking it. */
WR_INLINE struct wr_block *wr_remote_peek(const struct wr_remote *remote) {
  /* Acquire: pairs with the release of wr_remote_give. */
  return wr_remote_block(atomic_load_explicit(&remote->top, memory_order_acquire));
}

#endif
