/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Summing the counters of an arena and walking its slabs. Takes each heap's lock and the spans' for
 * as long as the walk needs.
 */
#ifndef WR_SNAPSHOT_H
#define WR_SNAPSHOT_H

#include <weir/weir.h>

#include "heap.h"

struct wr_snapshot {
  weir_stats_t stats;
  weir_class_stats_t classes[WR_CLASSES];
  char name[WEIR_ARENA_NAME_MAX]; /* the arena's */
};

void wr_snapshot_take(struct wr_arena *arena, struct wr_snapshot *snapshot);

/* The statistics alone, as many bytes of them as the caller knows of; the rest is 0. */
void wr_snapshot_stats(struct wr_arena *arena, weir_stats_t *stats, size_t size);

#endif
