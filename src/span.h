/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking and giving spans: for payloads, and for slabs. A taker looks, in this order, for a
 * retained span of its class, for one of up to twice the size or, to split it, of more that nothing
 * has come back for yet, for free address space, and for new address space. Only the last makes a
 * system call, outside the lock.
 */
#ifndef WR_SPAN_H
#define WR_SPAN_H

#include "settle.h"

/*
 * A payload begins at a multiple of this in its first page, behind a part of what its last page
 * would have left over, so that it costs no memory; and each span's elsewhere, as the blocks of
 * slabs do (wr_sizeclass_spacing, which says why).
 */
#define WR_SPAN_SKEW ((size_t)64)

/* Where a span that has `left` bytes to spare may begin: a multiple of WR_SPAN_SKEW, at most `left`
 * and at most 4 KiB. Descriptors that follow one another, as those of buffers that are live at once
 * will, are far apart in this: 39 is 64 times the golden ratio. */
WR_INLINE size_t wr_span_skew(const struct wr_span *span, size_t left) {
  size_t places = wr_bits_min(left, 4096) / WR_SPAN_SKEW;
  size_t turn = (uintptr_t)span / sizeof *span * 39 % 64;
  return places > 0 ? (turn * places / 64 + 1) * WR_SPAN_SKEW : 0;
}

/* The largest payload. */
#define WR_SPAN_MAX ((size_t)1 << (sizeof(size_t) == 8 ? 46 : 30))

void wr_spans_init(struct wr_spans *spans, struct wr_source *source, struct wr_meta *meta,
                   size_t mark);

/*
 * Takes a span for a payload of `size` bytes at a multiple of `alignment`, or of 64; size is above
 * 0 and at most WR_SPAN_MAX, alignment a power of two up to WR_SPAN_MAX. Sets span->user and
 * usable. *stale is how many bytes from the user's address may be other than zero, if fresh memory
 * is zero. NULL when memory is out, or the limit reached. One lock; one mmap when no address space
 * fits.
 */
struct wr_span *wr_span_take(struct wr_spans *spans, size_t size, size_t alignment, size_t *stale);

/* Gives a payload back; `user` is its address. False when it is none (any more), as when another
 * thread has given it back. Gives the excess over the mark back to the kernel before it returns. */
bool wr_span_give(struct wr_span *span, const void *user);

/* Takes a span of at least `units` units for a slab, recorded for each unit. Where blocks lie
 * `spacing` bytes apart, the first one begins behind a part of what they leave over, each span's
 * elsewhere; with no spacing, at the span's first byte. The caller fills the slab's fields in and
 * then sets the owner, with release. */
struct wr_span *wr_span_take_slab(struct wr_spans *spans, unsigned units, size_t block,
                                  size_t spacing);
/* Gives a slab's span back, with wr_span.touched up to date. The excess over the mark stays until
 * the caller has given up its own locks and calls wr_settle. */
void wr_span_give_slab(struct wr_span *span);
/* Gives the memory of a slab without blocks back to the kernel; the span stays in use. False if the
 * kernel refused. With what wr_settle_begin_giving takes. */
bool wr_span_purge_slab(struct wr_span *span);
/* Notes that a slab's memory is touched up to `end` bytes from its base; false, and nothing is
 * noted, when the limit does not allow that. */
bool wr_span_touch_slab(struct wr_span *span, size_t end);

/*
 * Makes the usable size of a payload `size` in place, if its address range has room or can be
 * lengthened: by free address space behind it, by retained memory there that nothing has come back
 * for, or, where it ends what is mapped, by mapping more. False when not. At most one mmap.
 */
bool wr_span_resize(struct wr_span *span, size_t size);

/*
 * Makes the usable size of a payload `size`, which is less, in place, and retains what is behind
 * it; when the payload is given back, it is one span with that again (wr_keep_shorten). False, and
 * nothing has changed, when it would get no shorter, or when wr_keep_shorten does not cut it.
 * Gives the excess over the mark back to the kernel before it returns.
 */
bool wr_span_shrink(struct wr_span *span, size_t size);

/*
 * When a payload cannot grow to `size` for the part of its first page that lies before it: makes it
 * begin with its page, and its usable size `size`, if that is enough. Its address then, with the
 * contents moved; NULL when not. No system call; time in proportion to the contents.
 */
void *wr_span_slide(struct wr_span *span, size_t size);

/*
 * Moves the pages of a payload into another, of `size` bytes, that is larger and was never touched,
 * as its first bytes, instead of their being copied: 20 us for a mebibyte and 60 for 64 where
 * copying into memory that is not resident takes 750 and 70,000. The other may have another address
 * after that, moved or not, because it begins at the same place in its page. 0; an errno value when
 * they have to be copied; ENOTRECOVERABLE when `to` is lost, too. Not where the process locks its
 * memory, which would end with the move; and at most a thousand times in a process, because each
 * time leaves up to two mappings more, of which it may have 65,530.
 */
int wr_span_move(struct wr_span *from, struct wr_span *to, size_t size);

/* Takes a span for a structure of weir's own, for good: zeroed memory at a multiple of the unit.
 * NULL when memory is out. */
void *wr_span_take_own(struct wr_spans *spans, size_t size);

/* Gives every payload and slab back. The heaps must forget their slabs, and nobody may use the
 * spans meanwhile. The excess over the mark goes back to the kernel. */
void wr_spans_reset(struct wr_spans *spans);

/* Forgets all address space in the page map, so that nothing finds a descriptor any more. With the
 * lock of the list of arenas. */
void wr_spans_forget(struct wr_spans *spans);
/* After that: unmaps all of it. Of the structures, only the source is good then. */
void wr_spans_unmap(struct wr_spans *spans);

/* The bytes that may be resident, of one moment. Brings the peaks up to date, for a reader. */
size_t wr_spans_committed(struct wr_spans *spans);

/* Calls `visit` for every payload and slab while the lock is held. */
void wr_spans_each(struct wr_spans *spans, void (*visit)(void *context, const struct wr_span *span),
                   void *context);

/* Walks every structure and traps on the first that is inconsistent. For tests; takes the lock. */
void wr_span_check(struct wr_spans *spans);

#endif
