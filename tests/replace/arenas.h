/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For test programs that use arenas beside libc's names: the functions of weir/arena.h, looked up
 * where weir is preloaded, as `arenas.create` and so on.
 */
#ifndef ARENAS_H
#define ARENAS_H

#include "expect.h"

#include <weir/arena.h>

#define ARENA_FUNCTIONS(use) \
  use(create) use(create_in) use(buffer_min) use(destroy) use(reset) use(name) use(of) use(alloc) \
      use(zalloc) use(aligned_alloc) use(realloc) use(free) use(usable_size) use(trim) use(stats)

static struct {
#define ARENA_MEMBER(function) __typeof__(&weir_arena_##function) function;
  ARENA_FUNCTIONS(ARENA_MEMBER)
#undef ARENA_MEMBER
} arenas;

/** Look them up; without weir the program is skipped. */
static inline void arenas_start(void) {
  expect_start();
  if (!expect_weir())
    exit(EXPECT_SKIP);
#define ARENA_FIND(function) \
  arenas.function = EXPECT_FN(weir_arena_##function); \
  REQUIRE(arenas.function != NULL, "no weir_arena_" #function);
  ARENA_FUNCTIONS(ARENA_FIND)
#undef ARENA_FIND
}

static inline weir_arena_t *arena_make(void) {
  weir_arena_t *arena = arenas.create(NULL);

  REQUIRE(arena != NULL, "weir_arena_create: %s", strerror(errno));
  return arena;
}

static inline weir_arena_t *arena_make_in(void *buffer, size_t size) {
  weir_arena_t *arena = arenas.create_in(buffer, size, NULL);

  REQUIRE(arena != NULL, "weir_arena_create_in: %s", strerror(errno));
  return arena;
}

static inline weir_stats_t arena_now(weir_arena_t *arena) {
  weir_stats_t stats;

  arenas.stats(arena, &stats, sizeof stats);
  return stats;
}

#endif
