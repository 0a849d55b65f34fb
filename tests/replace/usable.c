/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The usable size of blocks: at least what was asked for, the same at every look, all of it
 * writable without touching a neighbour, and reallocation within it stays in place. Of weir also
 * the exact values: its table of size classes, and whole pages beyond it. Built with
 * _FORTIFY_SOURCE=3, as distributions build the programs that rely on all this.
 */
#include "expect.h"

static size_t page;

/* Block sizes of weir: steps of 16 up to 128, then four a doubling up to 64 KiB; then whole pages,
 * in which the block begins behind a part of what would be left over of the last. */
static size_t weir_block(const void *block, size_t size) {
  size_t step = 16;

  if (size > 65536)
    return (size + page - 1) / page * page - (uintptr_t)block % page;
  while (size > 8 * step)
    step *= 2;
  return size == 0 ? 16 : (size + step - 1) / step * step;
}

static void *take(size_t size) {
  void *block = expect_hide(malloc(expect_hide_size(size)));

  REQUIRE(block != NULL, "malloc(%zu)", size);
  return block;
}

static void exact_values(void) {
  size_t size, wrong = 0;

  for (size = 0; size <= 70000 && wrong < 5; size += size < 5000 ? 1 : 61) {
    void *block = take(size);
    wrong += malloc_usable_size(block) != weir_block(block, size);
    EXPECT(malloc_usable_size(block) == weir_block(block, size), "malloc(%zu): %zu usable, not %zu",
           size, malloc_usable_size(block), weir_block(block, size));
    free(block);
  }
  for (size = 65537; size <= 40 * EXPECT_MIB; size += size / 7) {
    void *block = take(size);
    EXPECT(malloc_usable_size(block) == weir_block(block, size), "malloc(%zu): %zu usable, not %zu",
           size, malloc_usable_size(block), weir_block(block, size));
    free(block);
  }
}

/* Three neighbours, the middle one written to its very end and resized within its room. */
static void one_size(size_t size) {
  void *blocks[3] = {take(size), take(size), take(size)};
  size_t usable[3], i, target;

  for (i = 0; i < 3; i++) {
    usable[i] = malloc_usable_size(blocks[i]);
    EXPECT(usable[i] >= size, "malloc(%zu) has %zu usable bytes", size, usable[i]);
    expect_fill(blocks[i], usable[i], i);
  }
  for (i = 0; i < 3; i++) {
    EXPECT(expect_holds(blocks[i], usable[i], i), "blocks of %zu overlap", size);
    EXPECT(malloc_usable_size(blocks[i]) == usable[i], "the usable size of %zu changed", size);
  }
  target = size + (usable[1] - size) / 2;
  for (i = 0; i < 2; i++) {
    void *moved = expect_hide(realloc(blocks[1], i == 0 ? target : usable[1]));
    EXPECT(!expect_strict() || moved == blocks[1], "realloc of %zu in its own room moved it", size);
    EXPECT(expect_holds_part(moved, size, usable[1], 1), "realloc of %zu lost bytes", size);
    EXPECT(malloc_usable_size(moved) >= usable[1] || i == 0, "realloc took room from %zu", size);
    blocks[1] = moved;
  }
  EXPECT(expect_holds(blocks[0], usable[0], 0) && expect_holds(blocks[2], usable[2], 2),
         "realloc of %zu wrote a neighbour", size);
  for (i = 0; i < 3; i++)
    free(blocks[i]);
}

/* Asking malloc for what a block was said to have gives a block of the same room, or of the same
 * pages. */
static void stable(size_t size) {
  void *first = take(size);
  size_t usable = malloc_usable_size(first);
  void *second = take(usable);

  size_t again = malloc_usable_size(second);

  EXPECT(again == usable || (usable > 65536 && again > usable && again < usable + page) ||
             !expect_strict(),
         "%zu: usable %zu, then %zu", size, usable, again);
  free(first);
  free(second);
}

static void aligned(void) {
  size_t alignment;

  for (alignment = 32; alignment <= 4 * EXPECT_MIB; alignment *= 2) {
    static const size_t sizes[] = {1, 100, 3000, 60000, 100000, 1000000};
    size_t i, j;
    for (i = 0; i < EXPECT_COUNT(sizes); i++) {
      void *blocks[4];
      size_t usable[4];
      for (j = 0; j < 4; j++) {
        blocks[j] = expect_hide(memalign(alignment, sizes[i]));
        usable[j] = malloc_usable_size(blocks[j]);
        EXPECT(usable[j] >= sizes[i], "usable size of an aligned block");
        expect_fill(blocks[j], usable[j], j);
      }
      for (j = 0; j < 4; j++) {
        EXPECT(malloc_usable_size(blocks[j]) == usable[j], "usable size at %zu changed", alignment);
        EXPECT(expect_holds(blocks[j], usable[j], j), "%zu at %zu: overlap", sizes[i], alignment);
        free(blocks[j]);
      }
    }
  }
}

int main(void) {
  size_t size;

  expect_start();
  page = expect_page();
  EXPECT(malloc_usable_size(NULL) == 0, "NULL has usable bytes");
  for (size = 1; size <= 70000; size += size < 300 ? 1 : size / 29) {
    one_size(size);
    stable(size);
  }
  for (size = EXPECT_MIB; size <= 9 * EXPECT_MIB; size += 1024 * 509 + 77) {
    one_size(size);
    stable(size);
  }
  aligned();
  expect_settle();
  if (expect_strict())
    exact_values();
  return expect_done();
}
