/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving retained memory back to the kernel: what is over the mark, what a limit leaves no room
 * for, and what somebody asks for. Which goes first is retain.h's business; what the kernel is
 * asked and told is done here, outside the lock.
 */
#ifndef WR_SETTLE_H
#define WR_SETTLE_H

#include "keep.h"

/* Gives retained memory back, coldest first, until at most `target` bytes are left; with a target
 * of 0, the address space of all that is retained too. Returns how many bytes left. Purges outside
 * the lock. */
size_t wr_settle_to(struct wr_spans *spans, size_t target);
/* Gives the excess over the mark back to the kernel, if there is any. */
void wr_settle(struct wr_spans *spans);
/* Gives as much of what is retained back, whatever the mark, that the limit allows `bytes` more;
 * not if all of it would not do. Waits for what other threads are giving back, if that is needed.
 * Whether there is room now. */
bool wr_settle_make_room(struct wr_spans *spans, size_t bytes);
/* Sets the mark and gives the excess back. */
void wr_settle_set_mark(struct wr_spans *spans, size_t mark);

/* Held while memory that counts as committed is given back to the kernel: what the limit does not
 * allow yet is waited for. Before the lock, which may be taken meanwhile. */
void wr_settle_begin_giving(struct wr_spans *spans);
void wr_settle_end_giving(struct wr_spans *spans);
/* Counts what purging a range came to; returns whether the kernel took it. No lock. */
bool wr_settle_count_purge(struct wr_spans *spans, size_t bytes, int error);

#endif
