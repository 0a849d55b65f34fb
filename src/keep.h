/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retained spans: free, in LIFO lists of their class, eight classes a doubling, and neither joined
 * nor split while what they are is wanted, so that a program that repeats its requests finds every
 * span again. Which goes first is retain.h's business, and giving it back to the kernel settle.h's.
 */
#ifndef WR_KEEP_H
#define WR_KEEP_H

#include "extent.h"

#define WR_KEEP_OF_MEMBER(m) WR_LIST_MEMBER(m, struct wr_span, member)

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

/* How many payloads of an arena that shrank may have a tail at once. */
#define WR_KEEP_TAILS 1

/*
 * Makes the address range of a payload `units` units long, if it is longer, or can be by what was
 * cut off when it shrank before. What is cut off, its tail, is retained, the last one of its class
 * to be taken; when the payload is given back, the two are one span again if nobody has taken the
 * tail, so that a loop which shrinks what it has allocated finds that again.
 *
 * Changes nothing when there are WR_KEEP_TAILS already: a program that keeps several of what it
 * shrank begins with a fresh span each time, where one that copies goes on with the same; nor when
 * the tail would be over three eighths of the mark, for then two of such spans do not fit below it;
 * nor where memory is bounded, which short payloads in the place of long ones would fragment; nor
 * without a descriptor. Under the lock, and after wr_keep_count_active.
 */
void wr_keep_shorten(struct wr_spans *spans, struct wr_span *span, size_t units);

/* Lists a retained span as the first of its class, or the last, to be taken again; wr_retain_add or
 * wr_retain_return goes with it. Under the lock. */
WR_INLINE void wr_keep_list(struct wr_spans *spans, struct wr_span *span, bool last) {
  unsigned kind = span->kind;
  if (!span->probed)
    wr_list_add(&spans->doubtful, &span->doubt, last);
  wr_extent_set_owner(span, WR_OWNER_RETAINED);
  wr_list_add(&spans->retained[kind], &span->link, last);
  if (!wr_bits_has(spans->retained_bits, kind))
    wr_bits_include(spans->retained_bits, kind);
}

/* Takes a span out of all lists. Under the lock. */
WR_INLINE void wr_keep_unlist(struct wr_spans *spans, struct wr_span *span) {
  wr_list_remove(&spans->retained[span->kind], &span->link);
  if (!span->probed)
    wr_list_remove(&spans->doubtful, &span->doubt);
  wr_retain_remove(&spans->retain, &span->member, wr_extent_touched(span));
}

/* Puts a part that was cut off a span back: to the next to go, or to the free address space. Under
 * the lock. */
void wr_keep_leave(struct wr_spans *spans, struct wr_span *part);

/* Sets how many bytes of a payload, or of a span that is or will be retained, may be resident.
 * Under the lock. */
void wr_keep_set_touched(struct wr_spans *spans, struct wr_span *span, size_t bytes);

/* Touched bytes of payloads and slabs (and of what is just leaving). No lock. */
size_t wr_keep_active(const struct wr_spans *spans);
/* Called before the active bytes get fewer, and before the peak is read: so it is exact. */
void wr_keep_count_active(struct wr_spans *spans);
/* The same for the committed bytes. Both under the lock. */
void wr_keep_count_committed(struct wr_spans *spans);

#endif
