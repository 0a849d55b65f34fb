/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for weir's own structures: taken from the source in chunks, handed out in order, never
 * given back, so that a structure read without a lock can at worst be stale, never unmapped.
 * Guarded by its own lock. A zeroed wr_meta needs only its source.
 */
#ifndef WR_META_H
#define WR_META_H

#include <stddef.h>

#include "counters.h"
#include "lock.h"
#include "source.h"

struct wr_meta {
  struct wr_lock lock;
  struct wr_source *source;
  char *next; /* the first byte not handed out; guarded by the lock */
  char *end;
  wr_counter used; /* bytes handed out */
};

/* Takes zeroed memory at a multiple of `alignment` (a power of two up to 4 KiB). NULL when the
 * source gives none. One lock; at most one mmap. */
void *wr_meta_take(struct wr_meta *meta, size_t size, size_t alignment);

#endif
