/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retained spans: free, in LIFO lists of their class, eight classes a doubling, and neither joined
 * nor split while what they are is wanted, so that a program that repeats its requests finds every
 * span again; and giving back to the kernel what is over the mark. Which goes first is retain.h's
 * business; what the kernel is asked and told is done here, outside the lock.
 */
#ifndef WR_KEEP_H
#define WR_KEEP_H

#include "extent.h"

/* Retains a span that was in use and that no other thread can reach. Under the lock. */
void wr_keep_add(struct wr_spans *spans, struct wr_span *span);

/* Takes the span freed last of `class`, of which `units` is the length; when there is none, one of
 * less than twice that (an eighth more, where memory is short or the policy loose) which nothing
 * has come back for yet, and which is of `class` from now on. NULL when there is neither. Under the
 * lock. */
struct wr_span *wr_keep_take(struct wr_spans *spans, unsigned class, size_t units);

/* As wr_keep_take, but one whose base is a multiple of `alignment`, as the span of an aligned
 * payload is that was given back; looks at the eight freed last. */
struct wr_span *wr_keep_take_aligned(struct wr_spans *spans, unsigned class, size_t alignment);

/*
 * Splits a retained span that is larger than that and that nothing has come back for, so that a
 * large block which was touched once at start serves smaller ones (the preheating that real-time
 * guides advise). NULL when there is none, or no descriptor for the rest. Under the lock.
 */
struct wr_span *wr_keep_split(struct wr_spans *spans, unsigned class, size_t units);

/*
 * While the policy is loose (retain.h): takes a retained span and lengthens it to the `units` units
 * of `class` by what lies behind it, as wr_keep_extend does, so that where no two requests are
 * alike memory that is resident serves all the same. Looks at the 64 that would go first. NULL when
 * none can be lengthened. Under the lock.
 */
struct wr_span *wr_keep_join(struct wr_spans *spans, unsigned class, size_t units);

/* Whether a span that is in use should be lengthened to `units` units: not if another of that
 * length is there, or a loop that resizes would use up what other turns of it come back for. Under
 * the lock. */
bool wr_keep_may_extend(const struct wr_spans *spans, size_t units);

/*
 * Lengthens a span that is in use to `units` units, if what lies behind it is free address space or
 * retained spans that nothing has come back for; what of them is not needed stays so. Else changes
 * nothing and returns false. Looks at no more than 16 of them. Under the lock.
 */
bool wr_keep_extend(struct wr_spans *spans, struct wr_span *span, size_t units);

/* Puts a part that was cut off a span back: to the next to go, or to the free address space. Under
 * the lock. */
void wr_keep_leave(struct wr_spans *spans, struct wr_span *part);

/* Sets how many bytes of a payload, or of a span that is or will be retained, may be resident.
 * Under the lock. */
void wr_keep_set_touched(struct wr_spans *spans, struct wr_span *span, size_t bytes);

/* Gives retained memory back, coldest first, until at most `target` bytes are left; with a target
 * of 0, the address space of all that is retained too. Returns how many bytes left. Purges outside
 * the lock. */
size_t wr_keep_reduce(struct wr_spans *spans, size_t target);
/* Gives the excess over the mark back to the kernel, if there is any. */
void wr_keep_settle(struct wr_spans *spans);
/* Gives as much of what is retained back, whatever the mark, that the limit allows `bytes` more;
 * not if all of it would not do. Waits for what other threads are giving back, if that is needed.
 * Whether there is room now. */
bool wr_keep_make_room(struct wr_spans *spans, size_t bytes);
/* Sets the mark and gives the excess back. */
void wr_keep_set_mark(struct wr_spans *spans, size_t mark);

/* Touched bytes of payloads and slabs (and of what is just leaving). No lock. */
size_t wr_keep_active(const struct wr_spans *spans);
/* Called before the active bytes get fewer, and before the peak is read: so it is exact. */
void wr_keep_count_active(struct wr_spans *spans);
/* The same for the committed bytes. Both under the lock. */
void wr_keep_count_committed(struct wr_spans *spans);
/* Held while memory that counts as committed is given back to the kernel: what the limit does not
 * allow yet is waited for. Before the lock, which may be taken meanwhile. */
void wr_keep_begin_giving(struct wr_spans *spans);
void wr_keep_end_giving(struct wr_spans *spans);
/* Counts what purging a range came to; returns whether the kernel took it. No lock. */
bool wr_keep_count_purge(struct wr_spans *spans, size_t bytes, int error);

#endif
