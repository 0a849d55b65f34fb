/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena: see arena.h. Lock order: that of ends, the list's, the heaps', giving, growing, the
 * spans', the meta memory's; that of the list of buffers is taken last.
 */
#include "arena.h"

#define ARENA_OF(link) WR_LIST_MEMBER(link, struct wr_arena, listed)

WR_ALIGNED(4096) struct wr_arena wr_arena_default;

struct wr_lock wr_arena_ends_lock;
struct wr_lock wr_arena_list_lock;
static struct wr_list arenas; /* but the default one */

static struct wr_lock buffers_lock;
static struct wr_list buffers;
/* How many arenas stand in that list, so that a process that has none need not look. */
static WR_RESIDENT wr_counter buffer_count;

void wr_arena_init(struct wr_arena *arena, size_t mark, void *hint) {
  arena->meta.source = &arena->source;
  wr_spans_init(&arena->spans, &arena->source, &arena->meta, mark);
  arena->spans.end = hint;
}

void wr_arena_enlist(struct wr_arena *arena) {
  struct wr_link *before = NULL;
  size_t slot = WR_ARENA_SLOT_FIRST;
  wr_lock_take(&wr_arena_list_lock);
  for (struct wr_link *at = arenas.front; at != NULL && ARENA_OF(at)->slot == slot;
       at = at->older) {
    before = at;
    slot += WR_ARENA_SLOT_BYTES;
  }
  arena->slot = slot;
  wr_list_add_behind(&arenas, before, &arena->listed);
  wr_lock_give(&wr_arena_list_lock);
  if (arena->buffer == NULL)
    return;
  wr_lock_take(&buffers_lock);
  wr_list_add_front(&buffers, &arena->buffers);
  wr_counter_add(&buffer_count, 1);
  wr_lock_give(&buffers_lock);
}

void wr_arena_delist(struct wr_arena *arena) {
  if (arena->buffer != NULL) {
    wr_lock_take(&buffers_lock);
    wr_list_remove(&buffers, &arena->buffers);
    wr_counter_sub(&buffer_count, 1);
    wr_lock_give(&buffers_lock);
  }
  wr_lock_take(&wr_arena_list_lock);
  wr_list_remove(&arenas, &arena->listed);
  wr_lock_give(&wr_arena_list_lock);
}

void wr_arena_outwait(void) {
  wr_lock_take(&wr_arena_list_lock);
  for (struct wr_arena *other = &wr_arena_default; other != NULL; other = wr_arena_after(other)) {
    /* They look with this lock held. */
    wr_lock_take(&other->spans.lock);
    wr_lock_give(&other->spans.lock);
  }
  wr_lock_give(&wr_arena_list_lock);
}

struct wr_arena *wr_arena_after(struct wr_arena *arena) {
  struct wr_link *link = arena == &wr_arena_default ? arenas.front : arena->listed.older;
  return link != NULL ? ARENA_OF(link) : NULL;
}

struct wr_arena *wr_arena_next(size_t slot) {
  struct wr_arena *arena;
  wr_lock_take(&wr_arena_list_lock);
  for (arena = wr_arena_after(&wr_arena_default); arena != NULL && arena->slot <= slot;
       arena = wr_arena_after(arena))
    continue;
  wr_lock_give(&wr_arena_list_lock);
  return arena;
}

struct wr_arena *wr_arena_in_buffer(const void *address) {
  struct wr_arena *found = NULL;
  if (wr_counter_read(&buffer_count) == 0)
    return NULL;
  wr_lock_take(&buffers_lock);
  for (struct wr_link *link = buffers.front; link != NULL; link = link->older) {
    struct wr_arena *arena = WR_LIST_MEMBER(link, struct wr_arena, buffers);
    /* Not its own structures, at whose start a live block of another may begin. */
    if (!wr_pagemap_range_holds(&arena->range, address))
      continue;
    /* The buffer may be a block of another such arena: the innermost is meant, and it was made
     * after the other, so it comes first. */
    found = arena;
    break;
  }
  wr_lock_give(&buffers_lock);
  return found;
}

void wr_arena_lock_all(struct wr_arena *arena) {
  wr_lock_hold(&arena->spans.giving);
  wr_lock_hold(&arena->spans.growing);
  wr_lock_hold(&arena->spans.lock);
  wr_lock_hold(&arena->meta.lock);
}

void wr_arena_unlock_all(struct wr_arena *arena) {
  wr_lock_give(&arena->meta.lock);
  wr_lock_give(&arena->spans.lock);
  wr_lock_give(&arena->spans.growing);
  wr_lock_give(&arena->spans.giving);
}

void wr_arena_forked(struct wr_arena *arena) {
  wr_lock_init(&arena->meta.lock);
  wr_lock_init(&arena->spans.lock);
  wr_lock_init(&arena->spans.growing);
  wr_lock_init(&arena->spans.giving);
  /* Whoever held it is not in this process. */
  arena->spans.pending = arena->spans.leaving = 0;
}

void wr_arena_lock_lists(void) {
  wr_lock_hold(&wr_arena_ends_lock);
  wr_lock_hold(&wr_arena_list_lock);
  /* Nobody who has another lock takes this one, nor another who has this one. */
  wr_lock_hold(&buffers_lock);
}

void wr_arena_unlock_lists(void) {
  wr_lock_give(&buffers_lock);
  wr_lock_give(&wr_arena_list_lock);
  wr_lock_give(&wr_arena_ends_lock);
}

void wr_arena_forked_lists(void) {
  wr_lock_init(&buffers_lock);
  wr_lock_init(&wr_arena_list_lock);
  wr_lock_init(&wr_arena_ends_lock);
}
