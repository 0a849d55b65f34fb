/* SPDX-License-Identifier: Apache-2.0 */
/*
 * realloc: see realloc.h.
 */
#include "realloc.h"

#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "free.h"

/* From this size on the pages are moved, not copied, into memory that is not resident. */
#define MOVE_MIN ((size_t)256 << 10)

/* Whether a block of `usable` bytes serves `size` without wasting more than half of itself; the
 * smallest block serves any size it holds. */
static bool fits(size_t usable, size_t size) {
  return size <= usable && size + WR_BLOCK_MIN / 2 >= usable / 2;
}

/* Whether a small block would get no smaller one of its own: where its class is a guest. */
static bool is_guest(const struct wr_span *span, size_t usable, size_t size) {
  return usable <= WR_BLOCK_MAX && size <= usable &&
         wr_sizeclass_may_host(span->class, wr_sizeclass_of(size));
}

static bool resize_in_place(struct wr_span *span, size_t usable, size_t size) {
  bool payload = usable > WR_BLOCK_MAX && size > WR_BLOCK_MAX;
  if (fits(usable, size) || is_guest(span, usable, size))
    return !payload || wr_span_resize(span, size);
  return payload && (size > usable ? wr_span_resize(span, size) : wr_span_shrink(span, size));
}

/* What to ask for when a block of `usable` bytes grows to `size`: what has grown will often grow
 * again, so a small block gets a quarter more at least, and is copied half as often for it. */
static size_t grown(size_t usable, size_t size) {
  size_t more = usable + usable / 4;
  return size > usable && more <= WR_BLOCK_MAX ? wr_bits_max(size, more) : size;
}

/* Another block of `size` bytes with the contents of this one; NULL, and *why as wr_alloc_try's
 * *stale, when there is none. */
static void *copy(struct wr_span *span, const void *block, size_t usable, size_t size,
                  size_t *why) {
  size_t stale;
  size_t more = grown(usable, size);
  struct wr_arena *arena = wr_arena_of(span);
  void *other = wr_alloc_try(arena, more, &stale);
  if (other == NULL && more > size)
    other = wr_alloc_try(arena, size, &stale);
  *why = stale;
  if (other == NULL)
    return NULL;
  if (stale == 0 && usable >= MOVE_MIN && size > usable) {
    struct wr_span *to = wr_extent_at(&arena->spans, other);
    int error = wr_span_move(span, to, size);
    other = error == ENOTRECOVERABLE ? wr_alloc_try(arena, size, &stale) : to->user;
    if (error == 0 || other == NULL)
      return other;
  }
  return memcpy(other, block, wr_bits_min(usable, size));
}

void *wr_realloc_resize(void *block, size_t size) {
  size_t usable, why = 0;
  struct wr_span *span = wr_free_find(block, &usable);
  void *moved;
  if (size > PTRDIFF_MAX)
    return wr_alloc_refuse(wr_arena_of(span), 0);
  if (resize_in_place(span, usable, size))
    return block;
  if (usable > WR_BLOCK_MAX && size > usable && (moved = wr_span_slide(span, size)) != NULL)
    return moved;
  moved = copy(span, block, usable, size, &why);
  /* If it cannot get smaller, it serves as it is. */
  if (moved == NULL)
    return size > usable ? wr_alloc_refuse(wr_arena_of(span), why) : block;
  if (WR_LIKELY(wr_arena_of(span) == &wr_arena_default))
    wr_free_give(block);
  else
    wr_free_give_in(wr_arena_of(span), block);
  return moved;
}
