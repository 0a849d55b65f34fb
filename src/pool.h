/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pools of buffers as weir itself sees them: what fork and the end of an arena ask of all of
 * them at once. The rest is weir/pool.h.
 */
#ifndef WR_POOL_H
#define WR_POOL_H

#include <weir/pool.h>

/* Before fork: takes the lock of the list of pools and of each pool. After it, in the parent: gives
 * them back; in the child: makes them new. */
void wr_pool_lock_all(void);
void wr_pool_unlock_all(void);
void wr_pool_forked(void);

/* The pools that lie in `arena` are about to be no more, with all its blocks. */
void wr_pool_forget(const weir_arena_t *arena);

#endif
