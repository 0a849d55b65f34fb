/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block freed last is the one handed out next, for every size class and for payloads up to
 * 64 MiB, however many slabs the class has and wherever among them the block lies. Skipped
 * without weir.
 */
#include "expect.h"

enum { MANY = 16384 };
static void *blocks[MANY];

static void *take(size_t size) {
  void *block = expect_hide(malloc(expect_hide_size(size)));

  REQUIRE(block != NULL, "malloc(%zu)", size);
  *(volatile char *)block = 1;
  return block;
}

/* The address of a freed block, hidden from the compiler's view of its lifetime. */
static uintptr_t give(void *block) {
  uintptr_t address = (uintptr_t)expect_hide(block);

  free(block);
  return address;
}

static void next_is(uintptr_t address, size_t size, size_t index, const char *what) {
  blocks[index] = take(size);
  EXPECT((uintptr_t)blocks[index] == address, "%s of %zu: %p instead of %#zx", what, size,
         blocks[index], (size_t)address);
}

static void pairs(size_t size) {
  uintptr_t first;
  size_t i;

  blocks[0] = take(size);
  for (i = 0; i < 20; i++) {
    first = give(blocks[0]);
    next_is(first, size, 0, "pair");
  }
  free(blocks[0]);
}

/* More than three slabs full: whichever block is freed, it is the next one. */
static void anywhere(size_t size) {
  uint64_t state = size;
  size_t count = 2 * EXPECT_MIB / size;
  size_t i;

  if (count > MANY)
    count = MANY;
  if (count < 8)
    count = 8;
  for (i = 0; i < count; i++)
    blocks[i] = take(size);
  for (i = 0; i < 200; i++) {
    size_t index = (size_t)(next_random(&state) % count);
    next_is(give(blocks[index]), size, index, "one of many");
  }
  for (i = 0; i < count; i++)
    free(blocks[i]);
}

/* Blocks of one slab come back in the reverse order of their frees. */
static void reversed(size_t size, size_t count) {
  uintptr_t given[64];
  size_t i;

  for (i = 0; i < count; i++)
    blocks[i] = take(size);
  for (i = 0; i < count; i++)
    given[i] = give(blocks[i]);
  for (i = 0; i < count; i++)
    next_is(given[count - 1 - i], size, i, "reverse order");
  for (i = 0; i < count; i++)
    free(blocks[i]);
}

/* Small blocks: slabs are 64 KiB and aligned, and only within one the whole order is promised. */
static void same_slab(size_t size) {
  enum { TAKEN = 32, WANTED = 4 };
  void *taken[TAKEN];
  uintptr_t given[WANTED];
  size_t count = 0, first, i;

  for (i = 0; i < TAKEN; i++)
    taken[i] = take(size);
  for (first = 0; first < TAKEN && count < WANTED; first++) {
    count = 0;
    for (i = first; i < TAKEN && count < WANTED; i++) {
      if (((uintptr_t)taken[first] ^ (uintptr_t)taken[i]) >> 16 == 0)
        blocks[count++] = taken[i];
    }
  }
  EXPECT(count == WANTED, "%d blocks of %zu are nowhere %d in a slab", TAKEN, size, WANTED);
  if (count == WANTED) {
    for (i = 0; i < WANTED; i++)
      given[i] = give(blocks[i]);
    for (i = 0; i < WANTED; i++)
      next_is(given[WANTED - 1 - i], size, i, "reverse order");
  }
  for (i = 0; i < TAKEN; i++)
    free(taken[i]);
}

/* A neighbour of each stays live: a slab that becomes empty may be given up, and that is no matter
 * of order. */
static void two_sizes(size_t size, size_t other) {
  void *neighbours[2] = {take(size), take(other)};
  void *one = take(size);
  void *two = take(other);
  uintptr_t first = give(one);
  uintptr_t second = give(two);

  next_is(first, size, 0, "beside another size");
  next_is(second, other, 1, "beside another size");
  free(blocks[0]);
  free(blocks[1]);
  free(neighbours[0]);
  free(neighbours[1]);
}

int main(void) {
  size_t size, previous = 0, classes = 0;

  expect_start();
  if (!expect_strict())
    return EXPECT_SKIP;
  mallopt(M_TRIM_THRESHOLD, -1);
  expect_settle();
  for (size = 16; size <= 64 * EXPECT_KIB; size += 16) {
    void *block = take(size);
    size_t room = malloc_usable_size(block);
    free(block);
    if (room == previous)
      continue;
    previous = room;
    classes++;
    pairs(size);
    pairs(room);
    anywhere(room);
    two_sizes(room, 2 * room + 16);
    if (room <= 8 * EXPECT_KIB)
      same_slab(room);
  }
  EXPECT(!expect_weir() || classes == 44, "%zu size classes, not 44", classes);
  for (size = 65537; size <= 64 * EXPECT_MIB; size += size / 5) {
    /* Spans of other classes, which may serve a size that has none of its own, would go back to
     * their own lists, out of the order. */
    malloc_trim(0);
    pairs(size);
    reversed(size, size <= 4 * EXPECT_MIB ? 16 : 4);
    two_sizes(size, size * 3);
  }
  malloc_trim(0);
  reversed(8 * EXPECT_MIB + 64, 6);
  pairs(64 * EXPECT_MIB);
  /* With the mark as it is unless told otherwise, and spans of all classes retained: from the
   * second time on a size has spans of its own. */
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  for (size = 65537; size <= 16 * EXPECT_MIB; size += size / 3) {
    free(take(size));
    pairs(size);
  }
  return expect_done();
}
