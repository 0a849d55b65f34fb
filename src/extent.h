/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address space in spans: runs of units (64 KiB, or less in a buffer), each with a descriptor. A
 * span is a payload block, a slab, retained (free, and its memory may be resident), or free address
 * space whose memory is not resident. Here are the descriptors of all of them, and the free address
 * space: joined with its neighbours, cut, mapped when there is too little, unmapped when there is
 * too much.
 *
 * One lock, wr_spans.lock, guards the lists; it is never held across a system call. "Under the
 * lock" means that one. Descriptors are unmapped only with their arena, and never change it, so
 * that a stale pointer to one can be read.
 */
#ifndef WR_EXTENT_H
#define WR_EXTENT_H

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

/* What wr_span.due may say. */
#define WR_DUE_LOAN 1 /* it is lent */
#define WR_DUE_TAIL 2 /* it shrank, and joins what was cut off again */

struct wr_block;
struct wr_heap;
struct wr_spans;

/*
 * The first 64 bytes are read by every thread that frees a block, the others are written by the
 * owner at every operation: on one cache line, the threads would fight over it.
 */
struct wr_span {
  _Atomic(uintptr_t) owner;
  char *base;             /* a multiple of the unit; of a slab, its first block, in the first 4 KiB
                             from there. Constant while the span is in use */
  struct wr_spans *spans; /* constant */
  union {
    struct wr_link doubt; /* retained, while not probed: in wr_spans.doubtful */
    struct {              /* a payload with WR_DUE_TAIL; guarded by the arena's lock */
      uint32_t whole;     /* `units` before it shrank */
      uint32_t tail;      /* wr_retain_member.stamp of what was cut off then */
      uint8_t whole_kind; /* `kind` before */
    };
    struct {
      uint64_t inverse;        /* slab: of the odd part of wr_slab_step, modulo 2^64 */
      _Atomic(uint32_t) count; /* slab: how many blocks are carved */
      uint32_t block;          /* slab: bytes in a block */
    };
  };
  uint32_t units; /* length of the address range */
  uint8_t kind;   /* the span class it serves, at most the largest that its length does */
  uint8_t class;  /* slab: size class */
  uint8_t shift;  /* slab: the power of two in wr_slab_step */
  bool served;    /* was served from retained memory */
  bool probed;    /* retained: the kernel was asked how far it is resident */
  bool dying;     /* slab: about to go, with blocks that are still in a list */
  union {
    uint16_t deferred; /* slab: how many of its blocks are in wr_heap.deferred */
    struct {
      uint8_t due;      /* a payload: what there is to do when it comes back, WR_DUE_... */
      uint8_t borrower; /* with WR_DUE_LOAN: the class that has it, which is not its kind */
    };
  };
  uint16_t seen;      /* slab: of `use`, when it was found without a free block last */
  bool dry;           /* slab: listed without a free block, as was seen */
  bool refused;       /* not a slab: the kernel did not take its memory back when it was asked */
  wr_counter touched; /* bytes from the base that may be resident */

  union {
    struct { /* not a slab; guarded by the arena's lock, but for a payload's, which are its own */
      WR_ALIGNED(64) struct wr_link link; /* in the list of the span class, or of the bin */
      struct wr_retain_member member;
      char *user;    /* the block's address */
      size_t usable; /* bytes that may be used there */
      size_t dirty;  /* bytes from the base that may be other than zero: `touched` or more, because
                        memory that was swapped out is not resident, and not zero */
    };
    struct {                                          /* a slab; guarded by its heap */
      WR_ALIGNED(64) _Atomic(struct wr_block *) free; /* blocks given back, last first */
      char *start;   /* the first block, for the check of a free one */
      size_t extent; /* bytes from there that hold blocks */
      char *bump;    /* the first block never handed out */
      struct wr_link listed;
      _Atomic(size_t) use;   /* see slab.h */
      struct wr_block *rest; /* see wr_slab_steal; guarded by the heap's lock */
    };
  };
};

/* Descriptors are made a page at a time. */
#define WR_SPAN_BATCH 31

struct wr_span_batch {
  struct wr_span_batch *next;
  WR_ALIGNED(128) struct wr_span span[WR_SPAN_BATCH];
};

/* What every take and give of a payload uses comes first, so that it lies on one page: buffers of
 * megabytes push most other pages out of the TLB. */
struct wr_spans {
  struct wr_lock lock;
  struct wr_lock growing; /* one thread at a time maps address space */
  struct wr_lock giving;  /* below a limit: held while memory is given back to the kernel, so that
                             who needs the room can wait for it */
  struct wr_retain retain;
  size_t page;         /* bytes in a page of the source */
  size_t limit;        /* of the committed bytes; SIZE_MAX is none. Constant */
  unsigned shift;      /* a unit is 1 << shift bytes; constant */
  bool mortal;         /* of an arena that comes and goes: the descriptors may be unmapped some day,
                          and the address space lies where place.h says; constant */
  wr_counter resident; /* touched bytes of payloads and retained spans. Like those below,
                          written under the lock */
  wr_counter peak_active;
  wr_counter peak_committed;
  wr_counter hits;
  wr_counter fresh_commits;
  wr_counter fresh_bytes;
  wr_counter mapped;      /* bytes of address space */
  wr_counter slab_active; /* touched bytes of slabs. Like those below, written by any thread */
  wr_counter slab_fresh_commits;
  wr_counter slab_fresh_bytes;
  wr_counter purges;
  wr_counter purged_bytes;
  wr_counter purge_failures;
  struct wr_source *source;
  struct wr_meta *meta;
  struct wr_list doubtful; /* retained spans that the kernel was not asked about, oldest last */
  struct wr_list spare;    /* descriptors not in use */
  wr_counter spares;       /* how many */
  struct wr_span_batch *batches;
  char *end;                            /* behind the last range mapped; guarded by `growing` */
  size_t pending;                       /* bytes about to be taken for weir's own structures */
  size_t leaving;                       /* retained bytes that are being given back */
  unsigned tails;                       /* payloads with WR_DUE_TAIL. Under the lock */
  struct wr_retain_aside aside;         /* retained spans that the kernel refuses; under the lock */
  struct wr_meta *map_meta;             /* memory for the page map */
  const struct wr_pagemap_range *range; /* what resolves addresses; NULL: the page map */
  uint64_t retained_bits[WR_RETAIN_WORDS]; /* which lists of `retained` may have members */
  uint64_t bin_bits[WR_RETAIN_WORDS];
  struct wr_list retained[WR_RETAIN_CLASSES]; /* by span class, last freed in front */
  struct wr_list bins[WR_RETAIN_CLASSES];     /* free address space by largest class it serves */
};

#define WR_SPAN_OF_LINK(l) WR_LIST_MEMBER(l, struct wr_span, link)
#define WR_SLAB_OF_LINK(l) WR_LIST_MEMBER(l, struct wr_span, listed)

/* Acquire: pairs with the release of wr_slab_make, for wr_spans_each. */
WR_INLINE uintptr_t wr_extent_owner(const struct wr_span *span) {
  return atomic_load_explicit(&span->owner, memory_order_acquire);
}

/* Release: a thread that reads the owner in wr_free_give with acquire sees the span's fields. */
WR_INLINE void wr_extent_set_owner(struct wr_span *span, uintptr_t owner) {
  atomic_store_explicit(&span->owner, owner, memory_order_release);
}

WR_INLINE size_t wr_extent_touched(const struct wr_span *span) {
  return wr_counter_read(&span->touched);
}

WR_INLINE size_t wr_extent_unit(const struct wr_spans *spans) {
  return (size_t)1 << spans->shift;
}

/* The first byte of a span, which may be a slab. */
WR_INLINE char *wr_extent_base(const struct wr_span *span) {
  return (char *)((uintptr_t)span->base & -(uintptr_t)4096);
}

/* How many units hold `bytes` bytes. */
WR_INLINE size_t wr_extent_units(const struct wr_spans *spans, size_t bytes) {
  return (bytes + wr_extent_unit(spans) - 1) >> spans->shift;
}

/* Bytes of address space in a span. */
WR_INLINE size_t wr_extent_length(const struct wr_span *span) {
  return (size_t)span->units << span->spans->shift;
}

/* The span recorded for the unit of an address, or NULL; see wr_pagemap_find. */
WR_INLINE struct wr_span *wr_extent_at(const struct wr_spans *spans, const void *address) {
  if (WR_LIKELY(spans->range == NULL))
    return wr_pagemap_find(address);
  return wr_pagemap_range_holds(spans->range, address)
             ? wr_pagemap_range_find(spans->range, address)
             : NULL;
}

/* Records `span` for every unit of a part of its arena's address space. */
void wr_extent_record(const struct wr_spans *spans, const void *address, size_t length,
                      struct wr_span *span);

/* Bytes that may be resident: blocks, free memory that is kept, and weir's own. No lock. */
size_t wr_extent_committed(const struct wr_spans *spans);

/* Whether the limit allows `bytes` more. Under the lock. */
WR_INLINE bool wr_extent_allows(const struct wr_spans *spans, size_t bytes) {
  return WR_LIKELY(spans->limit == SIZE_MAX) ||
         wr_extent_committed(spans) + spans->pending + bytes <= spans->limit;
}

/* As wr_meta_take, for the arena's own structures, as far as the limit allows. Without the lock. */
void *wr_extent_take_own(struct wr_spans *spans, size_t size, size_t alignment);

/* The class of a span of at least `units` units; *rounded is that class's length in units. */
WR_INLINE unsigned wr_extent_class(size_t units, size_t *rounded) {
  unsigned shift = units > 8 ? wr_bits_log2(units - 1) - 3 : 0;
  size_t steps = ((units - 1) >> shift) + 1;
  *rounded = steps << shift;
  return shift * 8 + (unsigned)steps - 1;
}

/* Descriptors that are there when it begins: more than one operation uses. */
#define WR_EXTENT_SPARES 4

/* Makes sure that an operation under the lock finds descriptors. False when memory is out. Without
 * the lock. */
bool wr_extent_stock(struct wr_spans *spans);
/* The same for so many operations. */
bool wr_extent_stock_up(struct wr_spans *spans, size_t count);

/* The first class from `class` on whose list has members, or WR_RETAIN_CLASSES. A bit is cleared
 * here, when its list is found empty, because a list that empties fills again soon. */
unsigned wr_extent_next_class(const struct wr_list *lists, uint64_t *bits, unsigned class);

/* Takes a free range of `class`, `units` units long, cut to that if longer; NULL when there is
 * none, or no descriptor for the rest. Its owner is WR_OWNER_LEAVING. Under the lock. */
struct wr_span *wr_extent_take(struct wr_spans *spans, unsigned class, size_t units);

/* Makes `span`, which is in no list and of which nothing is resident or dirty, free address space,
 * joined with what is free beside it. Under the lock. */
void wr_extent_join(struct wr_spans *spans, struct wr_span *span);

/* Cuts `units` units off the front of a span that is in no list, for each part to go its own way:
 * returns the rest, or NULL when descriptors ran out. Under the lock. */
struct wr_span *wr_extent_cut(struct wr_spans *spans, struct wr_span *span, size_t units);

/* Maps new address space and makes it free, `units` units or what is missing of them (`all` or
 * not). False when the system gives none. Without the lock, and with `growing`. */
bool wr_extent_grow(struct wr_spans *spans, size_t units, bool all);

/* The span that begins at `address`, or NULL. Under the lock. */
struct wr_span *wr_extent_find(const struct wr_spans *spans, const char *address);

/* Whether nothing but free address space lies between the end of a span and the end of what is
 * mapped. Without the lock, and with `growing`. */
bool wr_extent_is_last(struct wr_spans *spans, const struct wr_span *span);

/* Takes a span out of the free address space. Under the lock. */
void wr_extent_remove(struct wr_spans *spans, struct wr_span *span);

/* Lengthens a span that is in no list by the one behind it, which is in none and was not touched.
 * Under the lock. */
void wr_extent_append(struct wr_spans *spans, struct wr_span *span, struct wr_span *next);

/* Unmaps a span that is in no list; makes it free address space when the system refuses, and
 * returns false. Without the lock. */
bool wr_extent_unmap(struct wr_spans *spans, struct wr_span *span);

/* Forgets a span that is in no list and whose memory is lost. Under the lock. */
void wr_extent_forget(struct wr_spans *spans, struct wr_span *span);

/* Unmaps every free range of at least `units` units. Without the lock. */
void wr_extent_unmap_free(struct wr_spans *spans, size_t units);

#endif
