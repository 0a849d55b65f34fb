/* SPDX-License-Identifier: Apache-2.0 */
/*
 * realloc: see realloc.h.
 */
#include "realloc.h"

#include <string.h>

#include "alloc.h"
#include "free.h"

/* Whether a block of `usable` bytes serves `size` without wasting more than half of itself. */
static bool fits(size_t usable, size_t size) {
  return size <= usable && size >= usable / 2;
}

static bool resize_in_place(struct wr_span *span, size_t usable, size_t size) {
  bool payload = usable > WR_BLOCK_MAX && size > WR_BLOCK_MAX;
  if (fits(usable, size))
    return !payload || wr_span_resize(span, size);
  return payload && size > usable && wr_span_resize(span, size);
}

void *wr_realloc_resize(void *block, size_t size) {
  struct wr_span *span;
  size_t usable;
  void *moved;
  if (block == NULL)
    return wr_alloc_take(size);
  if (size > PTRDIFF_MAX)
    return wr_alloc_refuse();
  span = wr_free_find(block, &usable);
  if (resize_in_place(span, usable, size))
    return block;
  moved = wr_alloc_try(size);
  /* If it cannot get smaller, it serves as it is. */
  if (moved == NULL)
    return size > usable ? wr_alloc_refuse() : block;
  memcpy(moved, block, wr_bits_min(usable, size));
  wr_free_give(block);
  return moved;
}
