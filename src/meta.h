/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for weir's own structures: taken from the source in chunks, handed out in order, given
 * back only all at once, at the end of an arena, so that a structure read without a lock can at
 * worst be stale, never unmapped. Guarded by its own lock. A zeroed wr_meta needs only its source.
 */
#ifndef WR_META_H
#define WR_META_H

#include <stdbool.h>
#include <stddef.h>

#include "counters.h"
#include "lock.h"
#include "source.h"

/* Stands at the start of each range of address space that is mapped for a wr_meta. */
struct wr_meta_chunk {
  struct wr_meta_chunk *older;
  size_t length; /* bytes, with this */
};

struct wr_meta {
  struct wr_lock lock;
  struct wr_source *source;
  char *next; /* the first byte not handed out; guarded by the lock */
  char *end;
  struct wr_meta_chunk *chunks; /* the newest */
  wr_counter used;              /* bytes handed out */
};

/* Takes zeroed memory at a multiple of `alignment` (a power of two up to 4 KiB). NULL when the
 * source gives none. One lock; at most one mmap. */
void *wr_meta_take(struct wr_meta *meta, size_t size, size_t alignment);

/* Maps enough at once for so many bytes more. Whether memory sufficed. */
bool wr_meta_reserve(struct wr_meta *meta, size_t size);

/* Writes to what is mapped and not handed out yet, so that it is resident. */
void wr_meta_prefault(struct wr_meta *meta);

/* Unmaps all of it by `source`; nobody may use any of it any more. `meta` and `source` may lie
 * elsewhere only. */
void wr_meta_unmap(struct wr_meta *meta);

#endif
