/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Misuse: each case frees, resizes or measures what it must not, in a process of its own, which
 * must end by SIGABRT after exactly one line that names the kind and the address. A case writes
 * the line it expects to its standard output first. Without arguments the program runs all cases;
 * with a case's name only that one, in this process. Skipped without weir.
 */
#include "misuse.h"

#include <pthread.h>
#include <sys/mman.h>

static char global[256];

static void *take(size_t size) {
  void *block = expect_hide(malloc(expect_hide_size(size)));

  if (block == NULL)
    _exit(3);
  memset(block, 0x11, size);
  return block;
}

static void *off(void *block, size_t offset) {
  return (char *)block + offset;
}

/* Foreign pointers */
static void free_stack(void) {
  char here[256];
  free(doomed(INVALID, here + 16));
}
static void free_global(void) {
  free(doomed(INVALID, global + 16));
}
static void free_code(void) {
  free(doomed(INVALID, (void *)(uintptr_t)&free_global));
}
static void free_low(void) {
  free(doomed(INVALID, (void *)0x10));
}
static void free_one(void) {
  free(doomed(INVALID, (void *)1));
}
static void free_top(void) {
  free(doomed(INVALID, (void *)(UINTPTR_MAX - 15)));
}
static void free_non_canonical(void) {
  free(doomed(INVALID, (void *)0x8000000000000010u));
}
static void free_pattern(void) {
  free(doomed(INVALID, (void *)0xdeadbeefdeadbeefu));
}
static void free_mapped(void) {
  free(doomed(INVALID,
              mmap(NULL, EXPECT_MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
}
static void free_unmapped(void) {
  void *gone = mmap(NULL, EXPECT_MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(gone, EXPECT_MIB);
  free(doomed(INVALID, gone));
}
static void free_far(void) {
  /* Below every mapping of a 64 bit process, and no page of it is mapped. */
  free(doomed(INVALID, (void *)0x10000000000u));
}
static void sized_foreign(void) {
  void (*sized)(void *, size_t) = EXPECT_EXTRA(void (*)(void *, size_t), free_sized);
  if (sized == NULL)
    sized = (void (*)(void *, size_t))(void *)free;
  sized(doomed(INVALID, global), 16);
}
static void realloc_foreign(void) {
  free(realloc(doomed(INVALID, global + 16), 100));
}
static void realloc_foreign_to_zero(void) {
  free(realloc(doomed(INVALID, global + 16), 0));
}
static void usable_foreign(void) {
  if (malloc_usable_size(doomed(INVALID, global + 16)) != 0)
    _exit(4);
}

/* Pointers into blocks, or into memory that never was a block */
static void interior_one(void) {
  free(doomed(INVALID, off(take(100), 1)));
}
static void interior_eight(void) {
  free(doomed(INVALID, off(take(100), 8)));
}
static void interior_sixteen(void) {
  free(doomed(INVALID, off(take(100), 16)));
}
static void interior_large(void) {
  free(doomed(INVALID, off(take(40000), 4096)));
}
static void interior_payload_16(void) {
  free(doomed(INVALID, off(take(EXPECT_MIB), 16)));
}
static void interior_payload_page(void) {
  free(doomed(INVALID, off(take(EXPECT_MIB), 4096)));
}
static void interior_payload_unit(void) {
  free(doomed(INVALID, off(take(EXPECT_MIB), 65536)));
}
static void interior_payload_end(void) {
  free(doomed(INVALID, off(take(EXPECT_MIB), EXPECT_MIB - 16)));
}
static void interior_aligned(void) {
  free(doomed(INVALID, off(expect_hide(memalign(4096, 100)), 64)));
}
static void interior_aligned_payload(void) {
  free(doomed(INVALID, off(expect_hide(memalign(262144, EXPECT_MIB)), 8192)));
}
static void before_aligned_payload(void) {
  free(doomed(INVALID, off(expect_hide(memalign(4 * EXPECT_MIB, EXPECT_MIB)), (size_t)-4096)));
}
static void never_a_block(void) {
  /* The last block of the slab of a class that nothing else uses. */
  uintptr_t block = (uintptr_t)take(7000);
  free(doomed(INVALID, (void *)((block | 0xffff) - 0x0fff)));
}
static void interior_realloc(void) {
  free(realloc(doomed(INVALID, off(take(100), 16)), 200));
}
static void interior_usable(void) {
  if (malloc_usable_size(doomed(INVALID, off(take(100), 16))) != 0)
    _exit(4);
}

/* Blocks freed twice */
static void twice(size_t size) {
  void *block = take(size);

  free(block);
  free(doomed(DOUBLE, block));
}
static void twice_nothing(void) {
  twice(0);
}
static void twice_16(void) {
  twice(16);
}
static void twice_100(void) {
  twice(100);
}
static void twice_4k(void) {
  twice(4096);
}
static void twice_40k(void) {
  twice(40000);
}
static void twice_70k(void) {
  twice(70000);
}
static void twice_1m(void) {
  twice(EXPECT_MIB);
}
static void twice_9m(void) {
  twice(9 * EXPECT_MIB);
}

static void delayed(size_t size) {
  void *blocks[20];
  size_t i;

  for (i = 0; i < 20; i++)
    blocks[i] = take(size);
  for (i = 0; i < 10; i++)
    free(blocks[i]);
  free(doomed(DOUBLE, blocks[3]));
}
static void delayed_64(void) {
  delayed(64);
}
static void delayed_1000(void) {
  delayed(1000);
}
static void delayed_40k(void) {
  delayed(40000);
}
static void delayed_1m(void) {
  delayed(EXPECT_MIB);
}

static void after_realloc(void) {
  void *block = take(EXPECT_MIB);
  /* Something behind it, so that it has to move. */
  void *behind = take(EXPECT_MIB);
  void *moved = expect_hide(realloc(block, 8 * EXPECT_MIB));
  if (moved == block || behind == NULL)
    _exit(5);
  free(doomed(EITHER, block));
}
static void after_realloc_small(void) {
  void *block = take(100);
  void *moved = expect_hide(realloc(block, 5000));
  if (moved == block)
    _exit(5);
  free(doomed(DOUBLE, block));
}
static void after_purge(void) {
  void *block = take(EXPECT_MIB);
  free(block);
  free(doomed(EITHER, block));
}
static void after_trim(void) {
  void *block = take(EXPECT_MIB);
  free(block);
  malloc_trim(0);
  free(doomed(EITHER, block));
}
static void after_trim_small(void) {
  void *block = take(3000);
  free(block);
  malloc_trim(0);
  free(doomed(EITHER, block));
}
static void twice_aligned(void) {
  void *block = expect_hide(memalign(4096, 100));
  free(block);
  free(doomed(DOUBLE, block));
}
static void twice_realloc(size_t size) {
  void *block = take(size);
  free(block);
  free(realloc(doomed(EITHER, block), size * 2));
}
static void realloc_freed(void) {
  twice_realloc(100);
}
static void realloc_freed_payload(void) {
  twice_realloc(EXPECT_MIB);
}
static void realloc_freed_same(void) {
  void *block = take(100);
  free(block);
  free(realloc(doomed(EITHER, block), 100));
}
static void usable_freed(void) {
  void *block = take(100);
  free(block);
  if (malloc_usable_size(doomed(EITHER, block)) != 0)
    _exit(4);
}
static void usable_freed_payload(void) {
  void *block = take(EXPECT_MIB);
  free(block);
  if (malloc_usable_size(doomed(EITHER, block)) != 0)
    _exit(4);
}

/* The same with two threads */
static void other_then_owner(size_t size) {
  void *kept = take(size);
  void *block = take(size);
  give_elsewhere(block);
  free(doomed(DOUBLE, block));
  free(kept);
}
static void other_then_owner_small(void) {
  other_then_owner(64);
}
static void other_then_owner_large(void) {
  other_then_owner(40000);
}
static void other_then_owner_payload(void) {
  other_then_owner(EXPECT_MIB);
}
static void owner_then_other(void) {
  void *kept = take(64);
  void *block = take(64);
  free(block);
  give_elsewhere(doomed(DOUBLE, block));
  free(kept);
}
static void other_then_other(void) {
  void *block = take(64);
  give_elsewhere(block);
  give_elsewhere(doomed(DOUBLE, block));
}
static void other_interior(void) {
  give_elsewhere(doomed(INVALID, off(take(100), 16)));
}

/* Writes to freed blocks: the next takes run into the broken link. All are of one slab, which stays
 * that of its class though it is empty. */
static void broken_link(size_t size, uint64_t garbage, bool flip, bool remote) {
  enum { COUNT = 4, TAKES = 20000 };
  void *blocks[COUNT];
  uint64_t word;
  size_t i;

  for (i = 0; i < COUNT; i++)
    blocks[i] = take(size);
  for (i = 0; i < COUNT; i++) {
    if (remote) {
      give_elsewhere(blocks[i]);
    } else {
      free(blocks[i]);
    }
  }
  memcpy(&word, expect_hide(blocks[COUNT - 2]), sizeof word);
  word = flip ? word ^ garbage : garbage;
  memcpy(expect_hide(blocks[COUNT - 2]), &word, sizeof word);
  doomed(CORRUPT, NULL);
  for (i = 0; i < TAKES; i++) {
    char *block = expect_hide(malloc(size));
    if (block == NULL)
      _exit(3);
    *block = 1;
  }
}
static void broken_64(void) {
  broken_link(64, 0x4141414141414141u, false, false);
}
static void broken_64_flip(void) {
  broken_link(64, 0x8, true, false);
}
static void broken_64_stack(void) {
  uint64_t target[16] = {0};
  broken_link(64, (uint64_t)(uintptr_t)&target[4], false, false);
}
static void broken_64_remote(void) {
  broken_link(64, 0x4141414141414141u, false, true);
}
static void broken_1000(void) {
  broken_link(1000, 0x0102030405060708u, false, false);
}
static void broken_16k(void) {
  broken_link(16384, 0x4141414141414141u, false, false);
}
static void broken_16k_flip(void) {
  broken_link(16384, (uint64_t)1 << 33, true, false);
}
static void broken_64k(void) {
  broken_link(65536, 0xffffffffffffffffu, false, false);
}

#define CASE(name) \
  { #name, name, NULL }
static const struct expect_case cases[] = {
    CASE(free_stack),
    CASE(free_global),
    CASE(free_code),
    CASE(free_low),
    CASE(free_one),
    CASE(free_top),
    CASE(free_non_canonical),
    CASE(free_pattern),
    CASE(free_mapped),
    CASE(free_unmapped),
    CASE(free_far),
    CASE(sized_foreign),
    CASE(realloc_foreign),
    CASE(realloc_foreign_to_zero),
    CASE(usable_foreign),
    CASE(interior_one),
    CASE(interior_eight),
    CASE(interior_sixteen),
    CASE(interior_large),
    CASE(interior_payload_16),
    CASE(interior_payload_page),
    CASE(interior_payload_unit),
    CASE(interior_payload_end),
    CASE(interior_aligned),
    CASE(interior_aligned_payload),
    CASE(before_aligned_payload),
    CASE(never_a_block),
    CASE(interior_realloc),
    CASE(interior_usable),
    CASE(twice_nothing),
    CASE(twice_16),
    CASE(twice_100),
    CASE(twice_4k),
    CASE(twice_40k),
    CASE(twice_70k),
    CASE(twice_1m),
    CASE(twice_9m),
    CASE(delayed_64),
    CASE(delayed_1000),
    CASE(delayed_40k),
    CASE(delayed_1m),
    CASE(after_realloc),
    CASE(after_realloc_small),
    {"after_purge", after_purge, "WEIR_RETAIN=0"},
    CASE(after_trim),
    CASE(after_trim_small),
    CASE(twice_aligned),
    CASE(realloc_freed),
    CASE(realloc_freed_payload),
    CASE(realloc_freed_same),
    CASE(usable_freed),
    CASE(usable_freed_payload),
    CASE(other_then_owner_small),
    CASE(other_then_owner_large),
    CASE(other_then_owner_payload),
    CASE(owner_then_other),
    CASE(other_then_other),
    CASE(other_interior),
    CASE(broken_64),
    CASE(broken_64_flip),
    CASE(broken_64_stack),
    CASE(broken_64_remote),
    CASE(broken_1000),
    CASE(broken_16k),
    CASE(broken_16k_flip),
    CASE(broken_64k),
};

int main(int argc, char **argv) {
  expect_start();
  return misuse_cases(cases, EXPECT_COUNT(cases), argc, argv);
}
