/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slabs: a span cut into equal blocks of one size class, with one free list. A slab belongs to one
 * heap, and everything here is called by that heap's thread or under its lock.
 *
 * A free block holds the link to the next one and a mark, from which a second free of the block is
 * known. Blocks are carved a page at a time, so that memory is not touched before it is needed.
 *
 * The order of stores matters where it says so: fork can copy the process between any two of them,
 * and the child then frees blocks of a slab whose thread it does not have. At each point the count
 * of used blocks is at least the true one, so that a block can be lost there, but none is handed
 * out twice and no slab with a live block counts as empty.
 */
#ifndef WR_SLAB_H
#define WR_SLAB_H

#include "check.h"
#include "misuse.h"
#include "sizeclass.h"
#include "span.h"

struct wr_block {
  struct wr_block *next;
  uintptr_t mark; /* while free, wr_slab_mark of it; 0 when handed out */
};

/*
 * What marks a free block of the slab: made of the address of what no program knows of, a value
 * that it does not write by chance; and of the block's own address, so that a mark that was left
 * in memory is none any more where a program copies what it never wrote.
 */
WR_INLINE uintptr_t wr_slab_mark(const struct wr_span *slab, const void *block) {
  return (uintptr_t)slab + (uintptr_t)block;
}

/*
 * Whether `address` is that of a carved block of the slab. A multiplication by the inverse of the
 * odd part of the step and a rotation by its power of two map exactly the multiples of the step to
 * their quotients, modulo 2^64 (Granlund and Montgomery, PLDI 1994, section 9).
 */
WR_INLINE bool wr_slab_holds(const struct wr_span *slab, const void *address) {
  uint64_t offset = (uint64_t)((uintptr_t)address - (uintptr_t)slab->base);
  return wr_bits_rotate_right(offset * slab->inverse, slab->shift) <
         atomic_load_explicit(&slab->count, memory_order_relaxed);
}

/*
 * wr_span.use: how many blocks are used, in the low 16 bits, and how many were ever taken, above
 * them. Equal words at two moments, with no block used, say that no block was used in between.
 */
#define WR_SLAB_USED ((size_t)0xffff)
#define WR_SLAB_TAKEN ((size_t)0x10001)

WR_INLINE size_t wr_slab_use(const struct wr_span *slab) {
  return atomic_load_explicit(&slab->use, memory_order_relaxed);
}

/* Blocks handed out, and those on their way back. */
WR_INLINE size_t wr_slab_used(const struct wr_span *slab) {
  return wr_slab_use(slab) & WR_SLAB_USED;
}

WR_INLINE struct wr_block *wr_slab_free(const struct wr_span *slab) {
  return atomic_load_explicit(&slab->free, memory_order_relaxed);
}

WR_INLINE void wr_slab_set_free(struct wr_span *slab, struct wr_block *block) {
  atomic_store_explicit(&slab->free, block, memory_order_relaxed);
}

/*
 * Takes the block given back last; NULL when there is none, or when the link to it was overwritten:
 * wr_slab_verify tells. The use is counted before the list is read, so that wr_slab_steal, which
 * empties the list before it reads the count, knows of every taker.
 */
WR_INLINE void *wr_slab_pop(struct wr_span *slab) {
  size_t use = wr_slab_use(slab);
  struct wr_block *block, *next;
  atomic_store_explicit(&slab->use, use + WR_SLAB_TAKEN, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
  block = wr_slab_free(slab);
#if WR_CHECK_CHEAP
  /* One comparison finds both an empty list and a link that leads out of the slab. */
  if (WR_UNLIKELY((uintptr_t)block - (uintptr_t)slab->start >= slab->extent)) {
#else
  if (WR_UNLIKELY(block == NULL)) {
#endif
    atomic_store_explicit(&slab->use, use, memory_order_relaxed);
    return NULL;
  }
  next = block->next;
  /* The next take reads and writes there; where many blocks are live, it is in no near cache. */
  __builtin_prefetch(next);
  wr_slab_set_free(slab, next);
  block->mark = 0;
  return block;
}

/* Gives a block of the slab back; returns how many are used still. */
WR_INLINE size_t wr_slab_push(struct wr_span *slab, void *address) {
  struct wr_block *block = address;
  size_t use = wr_slab_use(slab) - 1;
  block->next = wr_slab_free(slab);
  block->mark = wr_slab_mark(slab, block);
  atomic_signal_fence(memory_order_seq_cst);
  wr_slab_set_free(slab, block);
  /* Release: pairs with the acquires of release_empty in heap.c. */
  atomic_store_explicit(&slab->use, use, memory_order_release);
  return use & WR_SLAB_USED;
}

/* Whether the block's mark says that it is free. */
WR_INLINE bool wr_slab_is_marked(const struct wr_span *slab, const void *address) {
  return WR_UNLIKELY(((const struct wr_block *)address)->mark == wr_slab_mark(slab, address));
}

/* The bytes from one block of the slab to the next. */
WR_INLINE size_t wr_slab_step(const struct wr_span *slab) {
  return slab->block + wr_sizeclass_spacing(slab->class, slab->spans->shift);
}

/* The bytes before the first block. */
WR_INLINE size_t wr_slab_lead(const struct wr_span *slab) {
  return (uintptr_t)slab->base & (uintptr_t)4095;
}

/* Makes a slab of `class` for `owner`. No block is carved. NULL when memory is out. */
struct wr_span *wr_slab_make(struct wr_spans *spans, unsigned class, struct wr_heap *owner);

/* Puts the blocks of one more page on the free list, or one block where a page holds less than
 * two; of memory that was touched before, 16 KiB. False when all are carved, or when the limit does
 * not allow more. */
bool wr_slab_carve(struct wr_span *slab);

/* Whether all blocks are carved. */
WR_INLINE bool wr_slab_is_carved(const struct wr_span *slab) {
  return (size_t)(slab->bump - slab->start) >= slab->extent;
}

/* How many bytes of a block that is not carved yet may be other than 0, its link and mark apart. */
WR_INLINE size_t wr_slab_stale(const struct wr_span *slab, const void *block) {
  size_t from = (size_t)((const char *)block - wr_extent_base(slab));
  size_t touched = wr_extent_touched(slab);
  return touched > from ? touched - from : 0;
}

/* Stops the program if the free list's next link leads out of the slab. */
void wr_slab_verify(const struct wr_span *slab);

/* Whether the block is on the slab's free list. Time in proportion to the list. */
bool wr_slab_is_free(const struct wr_span *slab, const void *address);

/*
 * Takes the free list of a slab that has no block in use away from its owner, who may be about to
 * take a block without a lock. True when that worked: then the owner finds no block and does not
 * touch the slab without the lock any more. False when the owner was faster: then the list is left
 * in wr_span.rest, and belongs behind the blocks given back since, unless the owner had it in hand
 * when it was taken away; wr_slab_reopen tells. The caller holds the heap's lock.
 */
bool wr_slab_steal(struct wr_span *slab);

/* The end of a list that was taken away: in no slab, so that wr_slab_pop finds no block there. */
#define WR_SLAB_CLOSED ((struct wr_block *)1)

/* When the list has run out: puts back what a failed theft left. For the owner, under the lock. */
WR_INLINE void wr_slab_reopen(struct wr_span *slab) {
  if (wr_slab_free(slab) == WR_SLAB_CLOSED)
    wr_slab_set_free(slab, slab->rest);
  else if (wr_slab_free(slab) != NULL)
    return;
  /* Put back just now; or its own end was reached, so the owner had it in hand and used it up. */
  slab->rest = NULL;
}

/* Leaves a stolen slab, which is in no list, as if just made, and gives its memory back to the
 * kernel if that is to be asked. False if it was asked and refused. With what
 * wr_settle_begin_giving takes, and no other lock. */
bool wr_slab_purge(struct wr_span *slab, bool ask);

/* For a slab whose used blocks are all in the caller's hands, and whose owner cannot be using it:
 * counts them as given back. */
WR_INLINE void wr_slab_forget(struct wr_span *slab) {
  atomic_store_explicit(&slab->use, wr_slab_use(slab) & ~WR_SLAB_USED, memory_order_relaxed);
}

/* Gives an empty slab's span back. */
void wr_slab_retire(struct wr_span *slab);

#endif
