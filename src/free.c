/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow half of free: other threads' blocks, those of other arenas, full slabs, payloads, and
 * misuse.
 *
 * Arenas in buffers are not in the page map, because a buffer may be a block of weir's, whose own
 * entries stand there. What the page map says of an address inside is somebody else's, or out of
 * date, and never makes it a live block; so they are looked up when nothing else is left.
 */
#include "free.h"

static uintptr_t owner_of(const struct wr_span *span) {
  /* Acquire: as in wr_free_quick. */
  return atomic_load_explicit(&span->owner, memory_order_acquire);
}

/* Stops the program: `block` is not the start of a live block of `span`, or lies in no span. */
static WR_COLD _Noreturn void stop(const void *block, const struct wr_span *span) {
  uintptr_t owner = span != NULL ? owner_of(span) : WR_OWNER_NONE;
  size_t offset = span != NULL ? (uintptr_t)block - (uintptr_t)wr_extent_base(span) : 0;
  bool free =
      owner == WR_OWNER_RETAINED || owner == WR_OWNER_LEAVING ||
      (span != NULL && (owner == WR_OWNER_FREE || owner == WR_OWNER_NONE) && span->user == block);
  /* An address in a span that is free was handed out and given back, or never was a block; the
   * former happens more. */
  wr_misuse_stop(
      free && offset < wr_extent_length(span) ? WR_MISUSE_DOUBLE_FREE : WR_MISUSE_POINTER, block);
}

/* The span that an address inside an arena in a buffer leads to, or NULL. */
static struct wr_span *find_in_buffer(const void *block) {
  struct wr_arena *arena = wr_arena_in_buffer(block);
  return arena != NULL ? wr_extent_at(&arena->spans, block) : NULL;
}

static void give_remote(struct wr_heap *owner, struct wr_span *slab, void *block) {
  if (!wr_heap_is_attended(owner) && wr_heap_give_unattended(owner, slab, block))
    return;
  ((struct wr_block *)block)->mark = wr_slab_mark(slab, block);
  if (WR_UNLIKELY(wr_remote_give(&owner->remote, block, slab->block) >
                  wr_counter_read(&owner->patience)))
    wr_heap_help(owner);
}

static void give_own(struct wr_heap *heap, struct wr_span *slab, void *block) {
  if (WR_CHECK_CHEAP && wr_slab_is_marked(slab, block))
    wr_free_suspect(block, slab);
  else if (owner_of(slab) == (uintptr_t)heap)
    wr_heap_give(heap, slab, block);
  else
    wr_heap_give_slow(heap, slab, block);
}

/*
 * Whether a block whose mark says that it is free really is: the program may have written what
 * looks like a mark, or copied one. The list of another thread's slab cannot be searched; there the
 * mark alone must do.
 */
static WR_COLD bool is_free(struct wr_span *slab, const void *block) {
  struct wr_heap *heap = wr_heap_of(owner_of(slab));
  return !wr_heap_is_own(heap) || wr_heap_is_free(heap, slab, block);
}

/* Gives a block of a slab back; false when there is no block at that address. */
static bool give_block(void *block, struct wr_span *slab, struct wr_heap *owner) {
#if WR_CHECK_CHEAP
  if (!wr_slab_holds(slab, block))
    return false;
#endif
  if (wr_heap_is_own(owner)) {
    give_own(owner, slab, block);
    return true;
  }
#if WR_CHECK_CHEAP
  if (wr_slab_is_marked(slab, block) && is_free(slab, block))
    wr_misuse_stop(WR_MISUSE_DOUBLE_FREE, block);
#endif
  give_remote(owner, slab, block);
  return true;
}

/* Gives a live block of the span back; false when there is none at that address. */
WR_INLINE bool give(void *block, struct wr_span *span) {
  uintptr_t owner = owner_of(span);
  if (owner >= WR_OWNER_HEAP)
    return give_block(block, span, wr_heap_of(owner));
  return wr_span_give(span, block);
}

static WR_NOINLINE void give_in_buffer(void *block, const struct wr_span *span) {
  struct wr_span *inner = find_in_buffer(block);
  if (inner == NULL || !give(block, inner))
    stop(block, inner != NULL ? inner : span);
}

WR_COLD void wr_free_suspect(void *block, struct wr_span *slab) {
  struct wr_heap *heap = wr_heap_of(owner_of(slab));
  if (!wr_slab_holds(slab, block)) {
    give_in_buffer(block, slab);
    return;
  }
  if (is_free(slab, block))
    wr_misuse_stop(WR_MISUSE_DOUBLE_FREE, block);
  wr_heap_give_slow(heap, slab, block);
}

WR_HOT WR_NOINLINE void wr_free_slow(void *block, struct wr_span *span) {
  if (block == NULL)
    return;
  if (WR_UNLIKELY(span == NULL || !give(block, span)))
    give_in_buffer(block, span);
}

WR_HOT WR_NOINLINE void wr_free_slow_in(struct wr_arena *arena, void *block, struct wr_span *span) {
  /* It may be of this arena and lie elsewhere, or be another's. */
  if (WR_UNLIKELY(span == NULL)) {
    span = wr_pagemap_find(block);
    if (wr_free_quick(wr_heap_in(arena), span, block))
      return;
  }
  wr_free_slow(block, span);
}

/* Whether a live block of the span surely begins at the address, and how many bytes of it may be
 * used. A block whose mark says that it is free is not sure. */
WR_INLINE bool look(const void *block, const struct wr_span *span, size_t *usable) {
  uintptr_t owner = owner_of(span);
  if (owner >= WR_OWNER_HEAP) {
    *usable = span->block;
    return wr_slab_holds(span, block) && !wr_slab_is_marked(span, block);
  }
  *usable = span->usable;
  return owner == WR_OWNER_PAYLOAD && span->user == block;
}

/* The same for what was not sure at first sight. */
static bool look_closely(const void *block, struct wr_span *span, size_t *usable) {
  if (look(block, span, usable))
    return true;
  if (owner_of(span) < WR_OWNER_HEAP || !wr_slab_holds(span, block))
    return false;
  if (is_free(span, block))
    wr_misuse_stop(WR_MISUSE_DOUBLE_FREE, block);
  return true;
}

static WR_NOINLINE struct wr_span *find_closely(const void *block, struct wr_span *span,
                                                size_t *usable) {
  struct wr_span *inner;
  if (span != NULL && look_closely(block, span, usable))
    return span;
  inner = find_in_buffer(block);
  if (inner == NULL || !look_closely(block, inner, usable))
    stop(block, inner != NULL ? inner : span);
  return inner;
}

struct wr_span *wr_free_find(const void *block, size_t *usable) {
  struct wr_span *span = wr_pagemap_find(block);
  if (WR_LIKELY(span != NULL) && WR_LIKELY(look(block, span, usable)))
    return span;
  return find_closely(block, span, usable);
}
