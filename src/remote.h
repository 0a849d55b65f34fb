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

struct wr_remote {
  _Atomic(struct wr_block *) top;
};

WR_INLINE bool wr_remote_is_empty(const struct wr_remote *remote) {
  return atomic_load_explicit(&remote->top, memory_order_relaxed) == NULL;
}

/* Any thread. The caller must not touch the block or its slab afterwards. */
WR_INLINE void wr_remote_give(struct wr_remote *remote, struct wr_block *block) {
  struct wr_block *top = atomic_load_explicit(&remote->top, memory_order_relaxed);
  do {
    block->next = top;
    /* Release: pairs with the acquire of wr_remote_take_all. */
  } while (!atomic_compare_exchange_weak_explicit(&remote->top, &top, block, memory_order_release,
                                                  memory_order_relaxed));
}

/* The whole stack, linked by `next`. */
WR_INLINE struct wr_block *wr_remote_take_all(struct wr_remote *remote) {
  /* Acquire: pairs with the release of wr_remote_give. */
  return atomic_exchange_explicit(&remote->top, NULL, memory_order_acquire);
}

/* The stack as it is; only for a caller whose lock keeps others from taking it. */
WR_INLINE struct wr_block *wr_remote_peek(const struct wr_remote *remote) {
  /* Acquire: pairs with the release of wr_remote_give. */
  return atomic_load_explicit(&remote->top, memory_order_acquire);
}

#endif
