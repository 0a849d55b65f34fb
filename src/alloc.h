/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking a block: a small one from the thread's heap, else a payload of its own span. When memory
 * is out, this layer gives back what is retained and tries once more; no other does.
 */
#ifndef WR_ALLOC_H
#define WR_ALLOC_H

#include "heap.h"

/* The functions here return NULL and set errno to ENOMEM when memory is out, the arena's limit is
 * reached, or the size is over PTRDIFF_MAX, and leave errno alone otherwise. */

/* From the default arena. */
void *wr_alloc_slow(size_t size);
/* From another. */
void *wr_alloc_slow_in(struct wr_arena *arena, size_t size);

/*
 * As wr_alloc_take_in for any arena, but memory that is out is the caller's business: NULL, errno
 * as it was, and *stale is WR_ALLOC_LIMITED if that is because of the limit, else 0. Otherwise
 * *stale is how many of the block's first bytes may be other than 0, and the memory of a payload of
 * which that is 0 is not resident yet.
 */
#define WR_ALLOC_LIMITED ((size_t)1)
void *wr_alloc_try(struct wr_arena *arena, size_t size, size_t *stale);

/* Every byte 0. */
void *wr_alloc_zeroed(struct wr_arena *arena, size_t size);

/* At a multiple of `alignment`, a power of two; from the default arena, and from another. */
void *wr_alloc_aligned(size_t alignment, size_t size);
void *wr_alloc_aligned_in(struct wr_arena *arena, size_t alignment, size_t size);

/* NULL, with errno set and the request counted; `why` as *stale above. */
void *wr_alloc_refuse(struct wr_arena *arena, size_t why);

/* From the current slab of the size's class, or NULL. */
WR_INLINE void *wr_alloc_quick(struct wr_heap *heap, size_t size) {
  /* The small sizes come first: one comparison fewer for what is allocated most. */
  if (WR_LIKELY(size <= WR_SIZECLASS_FINE_MAX))
    return wr_heap_take(heap, wr_sizeclass_fine[(size + 15) / 16]);
  if (size <= WR_BLOCK_MAX)
    return wr_heap_take(heap, wr_sizeclass_of(size));
  return NULL;
}

/* From the default arena. */
WR_INLINE void *wr_alloc_take(size_t size) {
  void *block = wr_alloc_quick(wr_heap_self, size);
  return WR_LIKELY(block != NULL) ? block : wr_alloc_slow(size);
}

/* From another. */
WR_INLINE void *wr_alloc_take_in(struct wr_arena *arena, size_t size) {
  void *block = wr_alloc_quick(wr_heap_in(arena), size);
  return WR_LIKELY(block != NULL) ? block : wr_alloc_slow_in(arena, size);
}

#endif
