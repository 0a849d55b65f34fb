/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking a block: a small one from the thread's heap, else a payload of its own span. When memory
 * is out, this layer gives back what is retained and tries once more; no other does.
 */
#ifndef WR_ALLOC_H
#define WR_ALLOC_H

#include "heap.h"

/* The functions here return NULL and set errno to ENOMEM when memory is out or the size is over
 * PTRDIFF_MAX, and leave errno alone otherwise. */

void *wr_alloc_slow(size_t size);

/* As wr_alloc_take, but memory that is out is the caller's business: NULL, errno as it was. *stale
 * is how many of the block's first bytes may be other than 0, and the memory of a payload of which
 * that is 0 is not resident yet. */
void *wr_alloc_try(size_t size, size_t *stale);

/* Every byte 0. */
void *wr_alloc_zeroed(size_t size);

/* At a multiple of `alignment`, a power of two. */
void *wr_alloc_aligned(size_t alignment, size_t size);

/* NULL, with errno set and the request counted. */
void *wr_alloc_refuse(void);

WR_INLINE void *wr_alloc_take(size_t size) {
  void *block;
  /* The small sizes come first: one comparison fewer for what is allocated most. */
  if (WR_LIKELY(size <= WR_SIZECLASS_FINE_MAX))
    block = wr_heap_take(wr_heap_self, wr_sizeclass_fine[(size + 15) / 16]);
  else if (size <= WR_BLOCK_MAX)
    block = wr_heap_take(wr_heap_self, wr_sizeclass_of(size));
  else
    return wr_alloc_slow(size);
  return WR_LIKELY(block != NULL) ? block : wr_alloc_slow(size);
}

#endif
