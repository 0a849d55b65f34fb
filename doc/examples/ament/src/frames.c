/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena of the frames, made at the first call. (A program with threads makes it at start.)
 */
#include <weir_example/frames.h>

#include <weir/rcutils.h>

static weir_arena_t *arena;

static weir_arena_t *frames_arena(void) {
  weir_arena_options_t options = WEIR_ARENA_OPTIONS_INIT;

  if (arena == NULL) {
    options.name = "frames";
    options.limit = 16 << 20;
    arena = weir_arena_create(&options);
  }
  return arena;
}

rcutils_allocator_t frames_allocator(void) {
  return weir_rcutils_allocator(frames_arena());
}

void *frames_take(size_t size) {
  return weir_arena_alloc(frames_arena(), size);
}

size_t frames_live(void) {
  weir_stats_t stats;

  weir_arena_stats(frames_arena(), &stats, sizeof stats);
  return stats.live;
}
