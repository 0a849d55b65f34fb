/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow half of free: other threads' blocks, full slabs, payloads, and misuse.
 */
#include "free.h"

static uintptr_t owner_of(const struct wr_span *span) {
  /* Acquire: as in wr_free_give. */
  return atomic_load_explicit(&span->owner, memory_order_acquire);
}

/* Stops the program: `block` is not the start of a live block of `span`. */
static WR_COLD _Noreturn void stop(const void *block, const struct wr_span *span) {
  uintptr_t owner = owner_of(span);
  size_t offset = (uintptr_t)block - (uintptr_t)span->base;
  bool free = owner == WR_OWNER_RETAINED || owner == WR_OWNER_LEAVING ||
              ((owner == WR_OWNER_FREE || owner == WR_OWNER_NONE) && span->user == block);
  /* An address in a span that is free was handed out and given back, or never was a block; the
   * former happens more. */
  wr_misuse_stop(
      free && offset < wr_extent_length(span) ? WR_MISUSE_DOUBLE_FREE : WR_MISUSE_POINTER, block);
}

WR_COLD void wr_free_suspect(void *block, struct wr_span *slab) {
  struct wr_heap *heap = wr_heap_of(owner_of(slab));
  if (!wr_slab_holds(slab, block))
    wr_misuse_stop(WR_MISUSE_POINTER, block);
  /* The program may have written what looks like the mark of a free block. */
  if (wr_heap_is_free(heap, slab, block))
    wr_misuse_stop(WR_MISUSE_DOUBLE_FREE, block);
  wr_heap_give_slow(heap, slab, block);
}

static void give_block(void *block, struct wr_span *slab, struct wr_heap *owner) {
#if WR_CHECK_CHEAP
  if (!wr_slab_holds(slab, block))
    wr_misuse_stop(WR_MISUSE_POINTER, block);
  if (owner == wr_heap_self && wr_slab_is_marked(slab, block)) {
    wr_free_suspect(block, slab);
    return;
  }
  /* The list of another thread's slab cannot be searched; the mark alone must do. */
  if (wr_slab_is_marked(slab, block))
    wr_misuse_stop(WR_MISUSE_DOUBLE_FREE, block);
#endif
  if (owner == wr_heap_self) {
    wr_heap_give_slow(owner, slab, block);
  } else if (wr_heap_is_attended(owner) || !wr_heap_give_unattended(owner, slab, block)) {
    ((struct wr_block *)block)->mark = wr_slab_mark(slab);
    if (WR_UNLIKELY(wr_remote_give(&owner->remote, block, slab->block) >
                    wr_counter_read(&owner->patience)))
      wr_heap_help(owner);
  }
}

WR_HOT WR_NOINLINE void wr_free_slow(void *block, struct wr_span *span) {
  uintptr_t owner;
  if (block == NULL)
    return;
  if (span == NULL)
    wr_misuse_stop(WR_MISUSE_POINTER, block);
  owner = owner_of(span);
  if (owner >= WR_OWNER_HEAP)
    give_block(block, span, wr_heap_of(owner));
  else if (!wr_span_give(span, block))
    stop(block, span);
}

struct wr_span *wr_free_find(const void *block, size_t *usable) {
  struct wr_span *span = wr_pagemap_find(block);
  uintptr_t owner;
  if (span == NULL)
    wr_misuse_stop(WR_MISUSE_POINTER, block);
  owner = owner_of(span);
  if (owner >= WR_OWNER_HEAP) {
    if (!wr_slab_holds(span, block))
      wr_misuse_stop(WR_MISUSE_POINTER, block);
    if (wr_slab_is_marked(span, block))
      wr_misuse_stop(WR_MISUSE_DOUBLE_FREE, block);
    *usable = span->block;
    return span;
  }
  if (owner != WR_OWNER_PAYLOAD || span->user != block)
    stop(block, span);
  *usable = span->usable;
  return span;
}
