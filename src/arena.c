/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena: see arena.h. Lock order: the heaps', growing, the spans', the meta memory's.
 */
#include "arena.h"

WR_ALIGNED(4096) struct wr_arena wr_arena_default;

void wr_arena_init(struct wr_arena *arena, size_t mark, void *hint) {
  arena->meta.source = &arena->source;
  wr_spans_init(&arena->spans, &arena->source, &arena->meta, mark);
  arena->spans.end = hint;
}

void wr_arena_lock_all(struct wr_arena *arena) {
  wr_lock_hold(&arena->spans.growing);
  wr_lock_hold(&arena->spans.lock);
  wr_lock_hold(&arena->meta.lock);
}

void wr_arena_unlock_all(struct wr_arena *arena) {
  wr_lock_give(&arena->meta.lock);
  wr_lock_give(&arena->spans.lock);
  wr_lock_give(&arena->spans.growing);
}

void wr_arena_forked(struct wr_arena *arena) {
  wr_lock_init(&arena->meta.lock);
  wr_lock_init(&arena->spans.lock);
  wr_lock_init(&arena->spans.growing);
}
