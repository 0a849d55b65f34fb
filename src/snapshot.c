/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics: see snapshot.h.
 */
#include "snapshot.h"

#include <string.h>

static void visit_slab(struct wr_snapshot *snapshot, const struct wr_span *slab) {
  weir_class_stats_t *class = &snapshot->classes[slab->class];
  size_t used = wr_slab_used(slab);
  size_t touched = wr_counter_read(&slab->touched);
  size_t step = wr_slab_step(slab), lead = wr_slab_lead(slab);
  size_t end = wr_bits_max(touched + step - slab->block, lead);
  size_t room = wr_bits_min(end - lead, slab->extent) / step;
  size_t bytes = used * slab->block;
  class->slabs++;
  class->live += used;
  class->free += room > used ? room - used : 0;
  snapshot->stats.live += bytes;
  if (used == 0)
    snapshot->stats.retained += touched;
  else if (touched > bytes)
    snapshot->stats.fragmented += touched - bytes;
}

static void visit_span(void *context, const struct wr_span *span) {
  struct wr_snapshot *snapshot = context;
  if (atomic_load_explicit(&span->owner, memory_order_relaxed) == WR_OWNER_PAYLOAD) {
    snapshot->stats.live += span->usable;
    /* What an earlier or larger use of the span has touched beside the block. Of one whose pages
     * have just been moved away, nothing is. */
    snapshot->stats.fragmented +=
        wr_extent_touched(span) > span->usable ? wr_extent_touched(span) - span->usable : 0;
  } else {
    visit_slab(snapshot, span);
  }
}

/* A block that another thread has freed is not live, though its slab counts it as used. */
static void move(uint64_t *from, uint64_t *to, uint64_t amount) {
  amount = amount < *from ? amount : *from;
  *from -= amount;
  *to += amount;
}

static void visit_pending(void *context, const struct wr_span *slab) {
  struct wr_snapshot *snapshot = context;
  weir_class_stats_t *class = &snapshot->classes[slab->class];
  /* Other threads go on meanwhile: a block may be pending that was not yet used when its slab was
   * visited. */
  move(&class->live, &class->free, 1);
  move(&snapshot->stats.live, &snapshot->stats.fragmented, slab->block);
}

static void sum_spans(const struct wr_spans *spans, weir_stats_t *stats) {
  stats->retained += wr_counter_read(&spans->retain.total);
  stats->mark = wr_counter_read(&spans->retain.mark);
  stats->active = wr_keep_active(spans);
  stats->peak_active = wr_counter_read(&spans->peak_active);
  stats->peak_retained = wr_counter_read(&spans->retain.peak);
  stats->peak_committed = wr_counter_read(&spans->peak_committed);
  stats->fresh_commits =
      wr_counter_read(&spans->fresh_commits) + wr_counter_read(&spans->slab_fresh_commits);
  stats->fresh_bytes =
      wr_counter_read(&spans->fresh_bytes) + wr_counter_read(&spans->slab_fresh_bytes);
  stats->span_hits = wr_counter_read(&spans->hits);
  stats->purges = wr_counter_read(&spans->purges);
  stats->purged_bytes = wr_counter_read(&spans->purged_bytes);
  stats->purge_failures = wr_counter_read(&spans->purge_failures);
}

void wr_snapshot_take(struct wr_arena *arena, struct wr_snapshot *snapshot) {
  weir_stats_t *stats = &snapshot->stats;
  memset(snapshot, 0, sizeof *snapshot);
  memcpy(snapshot->name, arena->name, sizeof snapshot->name);
  for (unsigned class = 0; class < WR_CLASSES; class ++)
    snapshot->classes[class].block = wr_sizeclass_block(class);
  stats->committed = wr_spans_committed(&arena->spans);
  wr_spans_each(&arena->spans, visit_span, snapshot);
  for (struct wr_heap *heap = wr_arena_heaps(arena); heap != NULL; heap = heap->next) {
    wr_heap_each_pending(heap, visit_pending, snapshot);
    stats->remote_frees += wr_counter_read(&heap->remote_frees);
  }
  sum_spans(&arena->spans, stats);
  stats->meta = wr_counter_read(&arena->meta.used);
  stats->reserved = wr_counter_read(&arena->source.mapped);
  stats->heaps = wr_counter_read(&arena->heap_count);
  stats->out_of_memory = wr_counter_read(&arena->out_of_memory);
  stats->limit = arena->spans.limit != SIZE_MAX ? arena->spans.limit : 0;
  stats->over_limit = wr_counter_read(&arena->over_limit);
  /* A buffer is cut up by calls of weir's own. */
  if (arena->buffer != NULL)
    return;
  stats->sys_map = wr_counter_read(&arena->source.maps);
  stats->sys_unmap = wr_counter_read(&arena->source.unmaps);
  stats->sys_purge = wr_counter_read(&arena->source.purges);
  stats->sys_advise = wr_counter_read(&arena->source.advices);
  stats->sys_probe = wr_counter_read(&arena->source.probes);
  stats->sys_move = wr_counter_read(&arena->source.moves);
}

void wr_snapshot_stats(struct wr_arena *arena, weir_stats_t *stats, size_t size) {
  struct wr_snapshot snapshot;
  wr_snapshot_take(arena, &snapshot);
  memset(stats, 0, size);
  memcpy(stats, &snapshot.stats, wr_bits_min(size, sizeof snapshot.stats));
}
