/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans: runs of 64 KiB units of address space. A span is a payload block, a slab, retained (free,
 * and its memory may be resident), or free address space whose memory is not resident.
 *
 * Retained spans are kept in LIFO lists of their class, eight classes a doubling, and are neither
 * joined nor split while what they are is wanted, so that a program that repeats its requests finds
 * every span again. Free address space is joined with its neighbours and split at will.
 *
 * One lock guards the lists; it is never held across a system call. Descriptors are never unmapped
 * and never change their arena, so that a stale pointer to one can be read.
 */
#ifndef WR_SPAN_H
#define WR_SPAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attr.h"
#include "bits.h"
#include "list.h"
#include "lock.h"
#include "meta.h"
#include "pagemap.h"
#include "retain.h"
#include "source.h"

/* What a span is, as its owner word: one of these, or the address of the heap that owns the slab,
 * plus WR_OWNER_FULL when the slab has no free block and stands in no list. */
#define WR_OWNER_NONE ((uintptr_t)0)     /* a descriptor not in use */
#define WR_OWNER_FULL ((uintptr_t)1)     /* a tag, see above */
#define WR_OWNER_FREE ((uintptr_t)2)     /* free address space */
#define WR_OWNER_RETAINED ((uintptr_t)4) /* in the list of its class */
#define WR_OWNER_PAYLOAD ((uintptr_t)6)  /* handed out */
#define WR_OWNER_LEAVING ((uintptr_t)8)  /* taken out of the lists to be given back */
#define WR_OWNER_HEAP ((uintptr_t)64)    /* this and above: a heap */

struct wr_block;
struct wr_heap;
struct wr_spans;

/*
 * The first 64 bytes are read by every thread that frees a block, the others are written by the
 * owner at every operation: on one cache line, the threads would fight over it.
 */
struct wr_span {
  _Atomic(uintptr_t) owner;
  char *base;              /* a multiple of WR_UNIT; constant while the span is in use */
  struct wr_spans *spans;  /* constant */
  union {
    struct wr_link doubt; /* retained, while not probed: in wr_spans.doubtful */
    struct {
      uint64_t inverse;        /* slab: of the odd part of the block size, modulo 2^64 */
      _Atomic(uint32_t) count; /* slab: how many blocks are carved */
      uint32_t block;          /* slab: bytes in a block */
    };
  };
  uint32_t units;          /* length of the address range */
  uint8_t kind;            /* the largest span class that the length serves */
  uint8_t class;           /* slab: size class */
  uint8_t shift;           /* slab: the power of two in the block size */
  bool served;             /* was served from retained memory */
  bool probed;             /* retained: the kernel was asked how far it is resident */
  wr_counter touched;      /* bytes from the base that may be resident */

  union {
    struct { /* not a slab; guarded by the arena's lock, but for a payload's, which are its own */
      WR_ALIGNED(64) struct wr_link link;    /* in the list of the span class, or of the bin */
      struct wr_retain_member member;
      char *user;    /* the block's address */
      size_t usable; /* bytes that may be used there */
      size_t dirty;  /* bytes from the base that may be other than zero: `touched` or more, because
                        memory that was swapped out is not resident, and not zero */
    };
    struct { /* a slab; guarded by its heap */
      WR_ALIGNED(64) _Atomic(struct wr_block *) free; /* blocks given back, last first */
      char *start;             /* base again, for the check of a free block */
      size_t extent;           /* bytes from there that hold blocks */
      char *bump;              /* the first block never handed out */
      struct wr_link listed;
      _Atomic(size_t) use;     /* see slab.h */
      struct wr_block *rest;   /* see wr_slab_steal; guarded by the heap's lock */
    };
  };
};

struct wr_span_batch;

/* What every take and give of a payload uses comes first, so that it lies on one page: buffers of
 * megabytes push most other pages out of the TLB. */
struct wr_spans {
  struct wr_lock lock;
  struct wr_lock growing; /* one thread at a time maps address space */
  struct wr_retain retain;
  size_t page; /* bytes in a page of the source */
  wr_counter resident;      /* touched bytes of payloads and retained spans. Like those below,
                               written under the lock */
  wr_counter peak_active;
  wr_counter peak_committed;
  wr_counter hits;
  wr_counter fresh_commits;
  wr_counter fresh_bytes;
  wr_counter mapped;        /* bytes of address space */
  wr_counter slab_active;   /* touched bytes of slabs. Like those below, written by any thread */
  wr_counter slab_fresh_commits;
  wr_counter slab_fresh_bytes;
  wr_counter purges;
  wr_counter purged_bytes;
  wr_counter purge_failures;
  struct wr_source *source;
  struct wr_meta *meta;
  struct wr_list doubtful;  /* retained spans that the kernel was not asked about, oldest last */
  struct wr_list spare;     /* descriptors not in use */
  wr_counter spares;        /* how many */
  struct wr_span_batch *batches;
  char *end;                /* behind the last range mapped; guarded by `growing` */
  uint64_t retained_bits[WR_RETAIN_WORDS]; /* which lists of `retained` may have members */
  uint64_t bin_bits[WR_RETAIN_WORDS];
  struct wr_list retained[WR_RETAIN_CLASSES]; /* by span class, last freed in front */
  struct wr_list bins[WR_RETAIN_CLASSES];     /* free address space by largest class it serves */
};

/* The largest payload. */
#define WR_SPAN_MAX ((size_t)1 << (sizeof(size_t) == 8 ? 46 : 30))

void wr_spans_init(struct wr_spans *spans, struct wr_source *source, struct wr_meta *meta,
                   size_t mark);

/*
 * Takes a span for a payload of `size` bytes at a multiple of `alignment`; size is above 0 and at
 * most WR_SPAN_MAX, alignment a power of two up to WR_SPAN_MAX. Sets span->user and usable. *stale
 * is how many bytes from the user's address may be other than zero. NULL when memory is out. One
 * lock; one mmap when no address space fits.
 */
struct wr_span *wr_span_take(struct wr_spans *spans, size_t size, size_t alignment, size_t *stale);

/* Gives a payload back; `user` is its address. False when it is none (any more), as when another
 * thread has given it back. Gives the excess over the mark back to the kernel before it returns. */
bool wr_span_give(struct wr_span *span, const void *user);

/* Takes a span of at least `units` units for a slab, recorded for each unit. The caller fills the
 * slab's fields in and then sets the owner, with release. */
struct wr_span *wr_span_take_slab(struct wr_spans *spans, unsigned units);
/* Gives a slab's span back, with wr_span.touched up to date. The excess over the mark stays until
 * the caller has given up its own locks and calls wr_spans_settle. */
void wr_span_give_slab(struct wr_span *span);
/* Gives the memory of a slab without blocks back to the kernel; the span stays in use. Returns how
 * many bytes: 0 if the kernel refused. */
size_t wr_span_purge_slab(struct wr_span *span);
/* Gives the excess over the mark back to the kernel, if there is any. */
void wr_spans_settle(struct wr_spans *spans);
/* Notes that a slab's memory is touched up to `end` bytes from its base. */
void wr_span_touch_slab(struct wr_span *span, size_t end);

/* Makes the usable size of a payload `size` in place, if its address range has room. */
bool wr_span_resize(struct wr_span *span, size_t size);

/* Gives retained memory back, coldest first, until at most `target` bytes are left. Returns how
 * many bytes left. Purges outside the lock. */
size_t wr_spans_reduce(struct wr_spans *spans, size_t target);
/* Sets the mark and gives the excess back. */
void wr_spans_set_mark(struct wr_spans *spans, size_t mark);

/* Touched bytes of payloads and slabs (and of what is just leaving). No lock. */
size_t wr_spans_active(const struct wr_spans *spans);
/* Brings the peaks up to date, for a reader. */
void wr_spans_peaks(struct wr_spans *spans);

/* Calls `visit` for every payload and slab while the lock is held. */
void wr_spans_each(struct wr_spans *spans,
                   void (*visit)(void *context, const struct wr_span *span), void *context);

/* Walks every structure and traps on the first that is inconsistent. For tests; takes the lock. */
void wr_span_check(struct wr_spans *spans);

/* Bytes of address space in a span. */
WR_INLINE size_t wr_span_length(const struct wr_span *span) {
  return (size_t)span->units << WR_UNIT_SHIFT;
}

/* The class of a span of at least `units` units; *rounded is that class's length in units. */
WR_INLINE unsigned wr_span_class(size_t units, size_t *rounded) {
  unsigned shift = units > 8 ? wr_bits_log2(units - 1) - 3 : 0;
  size_t steps = ((units - 1) >> shift) + 1;
  *rounded = steps << shift;
  return shift * 8 + (unsigned)steps - 1;
}

#endif
