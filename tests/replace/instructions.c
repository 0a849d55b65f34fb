/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What instructions.sh counts: one operation, so many times, after a few to warm up. None that
 * calls memset or memcpy, of which libc has one for each processor. Prints the operations' names
 * when it is not told which.
 */
#include <weir/arena.h>

#include "expect.h"

/* Found in the library that is preloaded. */
#pragma weak weir_malloc
#pragma weak weir_free
#pragma weak weir_arena_create
#pragma weak weir_arena_create_in
#pragma weak weir_arena_alloc
#pragma weak weir_arena_free

static char room[1 << 20];
static void *block;
static weir_arena_t *arena, *in_buffer;

static void pair(size_t size) {
  void *taken = expect_hide(malloc(size));
  free(taken);
}

static void pair_weir(size_t size) {
  void *taken = expect_hide(weir_malloc(size));
  weir_free(taken);
}

static void pair_arena(size_t size) {
  void *taken = expect_hide(weir_arena_alloc(arena, size));
  weir_arena_free(arena, taken);
}

static void pair_buffer(size_t size) {
  void *taken = expect_hide(weir_arena_alloc(in_buffer, size));
  weir_arena_free(in_buffer, taken);
}

static void pair_arena_free(size_t size) {
  void *taken = expect_hide(weir_arena_alloc(arena, size));
  weir_free(taken);
}

static void aligned(size_t size) {
  void *taken = expect_hide(memalign(64, size));
  free(taken);
}

/* Back and forth within the block's class. */
static void resize(size_t size) {
  block = expect_hide(realloc(block, size));
  block = expect_hide(realloc(block, size - 8));
}

/* A hundred are live at once: all but the first and the last do not empty their slab. */
static void hundred(size_t size) {
  void *taken[100];
  size_t i;

  for (i = 0; i < 100; i++)
    taken[i] = expect_hide(malloc(size));
  for (i = 0; i < 100; i++)
    free(taken[i]);
}

static const struct operation {
  const char *name;
  void (*run)(size_t size);
  size_t size;
} operations[] = {
    {"pair-16", pair, 16},          {"pair-64", pair, 64},
    {"pair-1K", pair, 1024},        {"pair-4K", pair, 4096},
    {"pair-64K", pair, 65536},      {"pair-256K", pair, 262144},
    {"pair-1M", pair, EXPECT_MIB},  {"weir-64", pair_weir, 64},
    {"arena-64", pair_arena, 64},   {"arena-1K", pair_arena, 1024},
    {"arena-4K", pair_arena, 4096}, {"arena-256K", pair_arena, 262144},
    {"buffer-64", pair_buffer, 64}, {"arena-weir_free-64", pair_arena_free, 64},
    {"memalign-64", aligned, 1000}, {"realloc-in-place", resize, 1000},
    {"hundred-64", hundred, 64},    {"hundred-1K", hundred, 1024},
};

int main(int argc, char **argv) {
  long count = argc > 2 ? atol(argv[2]) : 0;
  size_t i;

  expect_start();
  /* As in any process, the default arena comes first. */
  free(expect_hide(malloc(1)));
  if (weir_arena_create != NULL)
    arena = weir_arena_create(NULL);
  if (weir_arena_create_in != NULL)
    in_buffer = weir_arena_create_in(room, sizeof room, NULL);
  if (argc < 3)
    for (i = 0; i < EXPECT_COUNT(operations); i++)
      puts(operations[i].name);
  for (i = 0; argc >= 3 && i < EXPECT_COUNT(operations); i++) {
    if (strcmp(argv[1], operations[i].name) != 0)
      continue;
    for (count += 10; count > 0; count--)
      operations[i].run(expect_hide_size(operations[i].size));
  }
  return 0;
}
