/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Misuse of blocks of arenas, over the kernel and in buffers: freed twice, after a reset, after the
 * arena is gone; and addresses that are in an arena and yet no block: in the middle of one, in the
 * arena's own structures, in its buffer. How the cases run, misuse.h says.
 */
#include "misuse.h"

#include "arenas.h"

#include <pthread.h>

enum { KINDS = 3, SMALL = 100, LARGE = 40000, PAYLOAD = 300000 };
static _Alignas(65536) char buffer[4 << 20];
static weir_arena_t *arena;

static void *take(size_t size) {
  void *block = expect_hide(arenas.alloc(arena, expect_hide_size(size)));

  if (block == NULL)
    _exit(3);
  memset(block, 0x11, size);
  return block;
}

static void *off(const void *block, size_t offset) {
  return (char *)(uintptr_t)block + offset;
}

/* ---- what is done with one block, of any size ---- */

static void twice(size_t size) {
  void *block = take(size);

  free(block);
  free(doomed(DOUBLE, block));
}
static void twice_by_arena(size_t size) {
  void *block = take(size);

  arenas.free(arena, block);
  arenas.free(arena, doomed(DOUBLE, block));
}
static void twice_by_another(size_t size) {
  weir_arena_t *another = arena_make();
  void *block = take(size);

  arenas.free(another, block);
  arenas.free(another, doomed(DOUBLE, block));
}
static void other_then_owner(size_t size) {
  void *kept = take(size);
  void *block = take(size);

  give_elsewhere(block);
  free(doomed(DOUBLE, block));
  free(kept);
}
static void owner_then_other(size_t size) {
  void *kept = take(size);
  void *block = take(size);

  free(block);
  give_elsewhere(doomed(DOUBLE, block));
  free(kept);
}
static void delayed(size_t size) {
  void *blocks[8];
  size_t i;

  for (i = 0; i < 8; i++)
    blocks[i] = take(size);
  for (i = 0; i < 5; i++)
    free(blocks[i]);
  free(doomed(DOUBLE, blocks[2]));
}
static void after_reset(size_t size) {
  void *block = take(size);

  arenas.reset(arena);
  free(doomed(EITHER, block));
}
static void after_trim(size_t size) {
  void *block = take(size);

  free(block);
  arenas.trim(arena, 0);
  free(doomed(EITHER, block));
}
static void after_destroy(size_t size) {
  void *block = take(size);

  arenas.destroy(arena);
  free(doomed(INVALID, block));
}
static void by_arena_after_destroy(size_t size) {
  weir_arena_t *another = arena_make();
  void *block = take(size);

  arenas.destroy(arena);
  arenas.free(another, doomed(INVALID, block));
}
static void realloc_after_destroy(size_t size) {
  void *block = take(size);

  arenas.destroy(arena);
  free(realloc(doomed(INVALID, block), 2 * size));
}
static void realloc_freed(size_t size) {
  void *block = take(size);

  free(block);
  free(realloc(doomed(EITHER, block), 2 * size));
}
static void usable_freed(size_t size) {
  void *block = take(size);

  free(block);
  if (malloc_usable_size(doomed(EITHER, block)) != 0)
    _exit(4);
}
static void of_freed(size_t size) {
  void *block = take(size);

  free(block);
  if (arenas.of(doomed(EITHER, block)) != arena)
    _exit(4);
}
static void interior(size_t size) {
  free(doomed(INVALID, off(take(size), 16)));
}
static void interior_one(size_t size) {
  free(doomed(INVALID, off(take(size), 1)));
}
static void interior_end(size_t size) {
  free(doomed(INVALID, off(take(size), size / 16 * 16 - 16)));
}
static void interior_by_arena(size_t size) {
  arenas.free(arena, doomed(INVALID, off(take(size), 32)));
}
static void interior_usable(size_t size) {
  if (arenas.usable_size(arena, doomed(INVALID, off(take(size), 16))) != 0)
    _exit(4);
}
static void foreign_by_arena(size_t size) {
  char here[256];

  take(size);
  arenas.free(arena, doomed(INVALID, here + 16));
}

/* ---- addresses in the arena that never were a block ---- */

static void the_arena(size_t size) {
  take(size);
  free(doomed(INVALID, arena));
}
static void in_the_arena(size_t size) {
  take(size);
  free(doomed(INVALID, off(arena, 16 * (size / 20))));
}
static void its_name(size_t size) {
  take(size);
  arenas.free(arena, doomed(INVALID, off(arenas.name(arena), 0)));
}

#define CASE(name) \
  { #name, name }
static const struct {
  const char *name;
  void (*run)(size_t);
} deeds[] = {
    CASE(twice),
    CASE(twice_by_arena),
    CASE(twice_by_another),
    CASE(other_then_owner),
    CASE(owner_then_other),
    CASE(delayed),
    CASE(after_reset),
    CASE(after_trim),
    CASE(after_destroy),
    CASE(by_arena_after_destroy),
    CASE(realloc_after_destroy),
    CASE(realloc_freed),
    CASE(usable_freed),
    CASE(of_freed),
    CASE(interior),
    CASE(interior_one),
    CASE(interior_end),
    CASE(interior_by_arena),
    CASE(interior_usable),
    CASE(foreign_by_arena),
    CASE(the_arena),
    CASE(in_the_arena),
    CASE(its_name),
};
enum { SIZES = 3 };
static const size_t sizes[SIZES] = {SMALL, LARGE, PAYLOAD};
static const char *const kinds[KINDS] = {"kernel", "buffer", "block"};

static weir_arena_t *make(size_t kind) {
  if (kind == 0)
    return arena_make();
  if (kind == 1)
    return arena_make_in(buffer, sizeof buffer);
  /* Not from the block's first byte, or the arena's address would be that of a live block. */
  return arena_make_in(off(expect_hide(malloc(sizeof buffer)), 64), sizeof buffer - 64);
}

/* Bytes of a buffer that no block has ever had: its first ones, its last, and all of it when the
 * arena is gone. */
static void of_a_buffer(void) {
  arena = make(1);
  take(SMALL);
  free(doomed(INVALID, buffer));
}
static void at_the_end_of_a_buffer(void) {
  arena = make(1);
  take(SMALL);
  free(doomed(INVALID, off(buffer, sizeof buffer - 16)));
}
static void behind_a_buffer(void) {
  arena = arena_make_in(buffer, sizeof buffer / 2);
  take(SMALL);
  free(doomed(INVALID, off(buffer, sizeof buffer / 2)));
}
static void of_a_buffer_that_was(void) {
  arena = make(1);
  arenas.destroy(arena);
  free(doomed(INVALID, buffer));
}
/* The buffer's own block is alive as long as the arena is: only once it may be freed. */
static void buffer_twice(void) {
  void *block = expect_hide(malloc(sizeof buffer));

  arena = arena_make_in(block, sizeof buffer);
  take(SMALL);
  arenas.destroy(arena);
  free(block);
  free(doomed(EITHER, block));
}

enum { DEEDS = sizeof deeds / sizeof deeds[0], OTHERS = 5 };
static struct expect_case cases[DEEDS * SIZES * KINDS + OTHERS] = {
    {"of_a_buffer", of_a_buffer, NULL},
    {"at_the_end_of_a_buffer", at_the_end_of_a_buffer, NULL},
    {"behind_a_buffer", behind_a_buffer, NULL},
    {"of_a_buffer_that_was", of_a_buffer_that_was, NULL},
    {"buffer_twice", buffer_twice, NULL},
};
static char names[DEEDS * SIZES * KINDS][64];
static const char *wanted;

/* One of the grid of deeds, sizes and kinds of arena: which one, its name tells. */
static void run_named(void) {
  size_t deed, size, kind, count = 0;

  for (deed = 0; deed < DEEDS; deed++) {
    for (size = 0; size < SIZES; size++) {
      for (kind = 0; kind < KINDS; kind++) {
        if (strcmp(names[count++], wanted) != 0)
          continue;
        arena = make(kind);
        deeds[deed].run(sizes[size]);
      }
    }
  }
}

int main(int argc, char **argv) {
  size_t deed, size, kind, count = 0;

  arenas_start();
  for (deed = 0; deed < DEEDS; deed++) {
    for (size = 0; size < SIZES; size++) {
      for (kind = 0; kind < KINDS; kind++) {
        snprintf(names[count], sizeof names[count], "%s %zu %s", deeds[deed].name, sizes[size],
                 kinds[kind]);
        cases[OTHERS + count] = (struct expect_case){names[count], run_named, NULL};
        count++;
      }
    }
  }
  wanted = argc > 1 ? argv[1] : "";
  return misuse_cases(cases, EXPECT_COUNT(cases), argc, argv);
}
