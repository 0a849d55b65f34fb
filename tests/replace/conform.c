/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conformance of the entry points of the malloc family, argument by argument: zero sizes, sizes
 * and products that are too large, alignments, errno, and realloc's contents. What the libc's
 * own malloc answers differently is checked of weir only.
 */
#include "expect.h"

#include <sys/mman.h>

typedef void (*free_sized_fn)(void *, size_t);
typedef void (*free_aligned_sized_fn)(void *, size_t, size_t);
typedef void (*cfree_fn)(void *);

/* No call that succeeds may change errno: every take below goes through this. */
#define QUIET(take) (errno = 4321, expect_quiet((take), #take))

static void *expect_quiet(void *block, const char *call) {
  EXPECT(block != NULL, "%s: NULL", call);
  EXPECT(errno == 4321, "%s: errno became %d", call, errno);
  return expect_hide(block);
}

static void quiet_free(void *block) {
  errno = 4321;
  free(block);
  EXPECT(errno == 4321, "free changed errno to %d", errno);
}

static void check_refused(void *block, const char *call, int expected) {
  EXPECT(block == NULL, "%s: gave a block", call);
  EXPECT(errno == expected, "%s: errno is %d, not %d", call, errno, expected);
  free(block);
}

#define REFUSED(take, expected) (errno = 0, check_refused((take), #take, (expected)))

static void zero_sizes(void) {
  enum { COUNT = 1000 };
  static void *blocks[COUNT];
  void *aligned = NULL;
  size_t i, j;

  for (i = 0; i < COUNT; i++) {
    size_t zero = expect_hide_size(0);
    switch (i % 7) {
    case 0:
      blocks[i] = QUIET(malloc(zero));
      break;
    case 1:
      blocks[i] = QUIET(calloc(zero, 8));
      break;
    case 2:
      blocks[i] = QUIET(calloc(8, zero));
      break;
    case 3:
      blocks[i] = QUIET(realloc(NULL, zero));
      break;
    case 4:
      blocks[i] = QUIET(aligned_alloc(64, zero));
      break;
    case 5:
      blocks[i] = QUIET(memalign(4096, zero));
      break;
    default:
      EXPECT(posix_memalign(&aligned, 256, zero) == 0, "posix_memalign(256, 0)");
      blocks[i] = aligned;
    }
    EXPECT(expect_aligned(blocks[i], 16), "a block of no bytes at %p", blocks[i]);
  }
  for (i = 0; i < COUNT; i++) {
    for (j = 0; j < i; j++)
      EXPECT(blocks[i] != blocks[j], "two blocks of no bytes are one");
  }
  for (i = 0; i < COUNT; i++)
    quiet_free(blocks[i]);
  quiet_free(NULL);
  EXPECT(malloc_usable_size(NULL) == 0, "NULL has usable bytes");
  quiet_free(QUIET(valloc(expect_hide_size(0))));
  if (expect_strict()) {
    aligned = QUIET(pvalloc(expect_hide_size(0)));
    EXPECT(malloc_usable_size(aligned) >= expect_page(), "pvalloc(0) has no page");
    quiet_free(aligned);
  }
}

static void too_large(void) {
  void *kept = expect_hide(malloc(100));
  size_t largest = malloc_usable_size(kept);
  void *out = (void *)&largest;
  size_t k;

  expect_fill(kept, largest, 1);
  for (k = 0; k <= 70; k++) {
    /* The sizes just below SIZE_MAX, around PTRDIFF_MAX, and one that no machine has. */
    size_t sizes[] = {SIZE_MAX - k, (size_t)PTRDIFF_MAX + 1 + k, (size_t)PTRDIFF_MAX - k,
                      ((size_t)1 << 62) + k};
    size_t i;
    for (i = 0; i < EXPECT_COUNT(sizes); i++) {
      size_t size = expect_hide_size(sizes[i]);
      REFUSED(malloc(size), ENOMEM);
      REFUSED(calloc(1, size), ENOMEM);
      REFUSED(calloc(size, 1), ENOMEM);
      REFUSED(realloc(NULL, size), ENOMEM);
      REFUSED(realloc(kept, size), ENOMEM);
      REFUSED(reallocarray(kept, 1, size), ENOMEM);
      REFUSED(aligned_alloc(64, size), ENOMEM);
      REFUSED(memalign(65536, size), ENOMEM);
      REFUSED(memalign((size_t)1 << 40, size), ENOMEM);
      REFUSED(valloc(size), ENOMEM);
      REFUSED(pvalloc(size), ENOMEM);
      errno = 4321;
      EXPECT(posix_memalign(&out, 4096, size) == ENOMEM, "posix_memalign(4096, %zu)", size);
      EXPECT(out == (void *)&largest, "a failing posix_memalign set the pointer");
      EXPECT(errno == 4321 || !expect_strict(), "a failing posix_memalign set errno");
    }
  }
  if (expect_strict())
    REFUSED(memalign(expect_hide_size((size_t)1 << 63), 1), ENOMEM);
  REFUSED(aligned_alloc(expect_hide_size((size_t)1 << 62), 1), ENOMEM);
  EXPECT(malloc_usable_size(kept) == largest && expect_holds(kept, largest, 1),
         "a realloc that failed changed the block");
  free(kept);
}

static void products(void) {
  void *kept = expect_hide(malloc(100));
  unsigned bits;

  expect_fill(kept, 100, 2);
  for (bits = 1; bits < 64; bits++) {
    size_t one = expect_hide_size((size_t)1 << bits);
    size_t other = expect_hide_size((size_t)1 << (64 - bits));

    REFUSED(calloc(one, other), ENOMEM);
    REFUSED(calloc(one + 1, other), ENOMEM);
    REFUSED(calloc(SIZE_MAX / one + 1, one + (one == 1)), ENOMEM);
    REFUSED(calloc(SIZE_MAX, one), ENOMEM);
    REFUSED(reallocarray(kept, one, other), ENOMEM);
    REFUSED(reallocarray(NULL, SIZE_MAX, one), ENOMEM);
  }
  EXPECT(expect_holds(kept, 100, 2), "a reallocarray that failed changed the block");
  kept = QUIET(reallocarray(kept, 100, 10));
  EXPECT(expect_holds_part(kept, 96, 100, 2), "reallocarray lost the contents");
  EXPECT(malloc_usable_size(kept) >= 1000, "reallocarray gave too little");
  free(kept);
}

static void check_aligned(void *block, size_t alignment, size_t size, const char *call) {
  EXPECT(expect_aligned(block, alignment) && expect_aligned(block, 16), "%s of %zu at %zu: %p",
         call, size, alignment, block);
  EXPECT(malloc_usable_size(block) >= size, "%s of %zu at %zu: usable %zu", call, size, alignment,
         malloc_usable_size(block));
}

static void one_alignment(size_t alignment, size_t size) {
  void *blocks[3] = {QUIET(aligned_alloc(alignment, size)), QUIET(memalign(alignment, size)), NULL};
  size_t i;

  if (alignment >= sizeof(void *)) {
    errno = 4321;
    EXPECT(posix_memalign(&blocks[2], alignment, size) == 0, "posix_memalign");
    EXPECT(errno == 4321, "posix_memalign changed errno");
  } else {
    blocks[2] = QUIET(malloc(size));
  }
  for (i = 0; i < 3; i++) {
    check_aligned(blocks[i], i < 2 || alignment >= sizeof(void *) ? alignment : 1, size,
                  "an aligned take");
    /* Both ends: the middle of 48 MiB tells nothing and costs page faults. */
    expect_fill(blocks[i], size < 256 ? size : 256, i);
    if (size > 0)
      ((unsigned char *)blocks[i])[size - 1] = (unsigned char)(0x55 + i);
  }
  for (i = 0; i < 3; i++) {
    size_t head = size < 256 ? size - (size > 0) : 255;
    EXPECT(expect_holds_part(blocks[i], head, size < 256 ? size : 256, i), "overlap at the head");
    EXPECT(size == 0 || ((unsigned char *)blocks[i])[size - 1] == 0x55 + i, "overlap at the end");
    quiet_free(blocks[i]);
  }
}

static void alignments(void) {
  size_t alignment;

  for (alignment = 1; alignment <= 16 * EXPECT_MIB; alignment *= 2) {
    size_t size;
    size_t step = alignment <= 64 ? 1 : alignment / 4;
    for (size = 0; size <= 3 * alignment + 1; size += step) {
      one_alignment(alignment, size);
      if (step > 1) {
        one_alignment(alignment, size + 1);
        if (size > 0)
          one_alignment(alignment, size - 1);
      }
    }
    one_alignment(alignment, 8);
    one_alignment(alignment, 100);
    one_alignment(alignment, 70000);
  }
}

static void bad_alignments(void) {
  static const size_t bad[] = {0, 3, 5, 6, 7, 9, 12, 24, 48, 100, 4095, 4097, 65535, SIZE_MAX};
  void *out = (void *)&out;
  size_t i;

  for (i = 0; i < EXPECT_COUNT(bad) + 3; i++) {
    /* 1, 2 and 4 are powers of two, and no multiples of a pointer's size. */
    size_t alignment = i < 3 ? (size_t)1 << i : bad[i - 3];
    errno = 4321;
    EXPECT(posix_memalign(&out, alignment, 8) == EINVAL, "posix_memalign(%zu, 8)", alignment);
    EXPECT(errno == 4321 && out == (void *)&out, "posix_memalign(%zu, 8) left a trace", alignment);
  }
  if (!expect_strict())
    return;
  for (i = 1; i < EXPECT_COUNT(bad); i++) {
    REFUSED(aligned_alloc(expect_hide_size(bad[i]), 8), EINVAL);
    REFUSED(memalign(expect_hide_size(bad[i]), 8), EINVAL);
  }
}

static void page_aligned(void) {
  size_t page = expect_page();
  size_t sizes[] = {1, 8, 100, page - 1, page, page + 1, 65536, 65537, 1000000};
  size_t i;

  for (i = 0; i < EXPECT_COUNT(sizes); i++) {
    void *one = QUIET(valloc(sizes[i]));
    void *other = QUIET(pvalloc(sizes[i]));
    size_t whole = (sizes[i] + page - 1) / page * page;

    EXPECT(expect_aligned(one, page), "valloc(%zu) is at %p", sizes[i], one);
    EXPECT(expect_aligned(other, page), "pvalloc(%zu) is at %p", sizes[i], other);
    EXPECT(malloc_usable_size(other) >= whole, "pvalloc(%zu) is no whole page", sizes[i]);
    expect_fill(one, sizes[i], 1);
    expect_fill(other, whole, 2);
    EXPECT(expect_holds(one, sizes[i], 1), "pvalloc overlaps valloc");
    quiet_free(one);
    quiet_free(other);
  }
}

static void zeroed(void) {
  static const size_t sizes[] = {1,     8,      16,      100,     1000,     4096,    10000,  65536,
                                 65537, 200000, 1048576, 3000000, 4096 * 3, 8388672, 9437184};
  size_t i, round;

  for (round = 0; round < 3; round++) {
    for (i = 0; i < EXPECT_COUNT(sizes); i++) {
      void *block = QUIET(malloc(sizes[i]));
      void *other;

      memset(block, 0xa5, sizes[i]);
      quiet_free(block);
      /* The second round finds memory that was given back, the third a part of it. */
      if (round == 1)
        malloc_trim(0);
      other = QUIET(calloc(1, sizes[i]));
      EXPECT(expect_zero(other, sizes[i]), "calloc(1, %zu) is not zero", sizes[i]);
      memset(other, 0xa5, sizes[i]);
      quiet_free(other);
      other = QUIET(calloc(sizes[i] / 8 + 1, 8));
      EXPECT(expect_zero(other, sizes[i] / 8 * 8 + 8), "calloc of %zu is not zero", sizes[i]);
      quiet_free(other);
    }
  }
}

static void resize(size_t from, size_t to, size_t alignment) {
  void *block = alignment == 0 ? QUIET(malloc(from)) : QUIET(memalign(alignment, from));
  void *next;
  size_t kept = from < to ? from : to;

  expect_fill(block, from, from ^ to);
  next = QUIET(realloc(block, to));
  EXPECT(expect_aligned(next, 16), "realloc from %zu to %zu: %p", from, to, next);
  EXPECT(malloc_usable_size(next) >= to, "realloc from %zu to %zu is too small", from, to);
  EXPECT(expect_holds_part(next, kept, from, from ^ to), "realloc from %zu at %zu to %zu: contents",
         from, alignment, to);
  if (to > 0)
    memset(next, 0x5a, to);
  quiet_free(next);
}

static void reallocs(void) {
  static const size_t sizes[] = {1,     7,      16,     17,     48,     128,    129,
                                 160,   1000,   1024,   1025,   4000,   4096,   4097,
                                 8192,  12345,  32768,  57344,  65535,  65536,  65537,
                                 70000, 131072, 200000, 262144, 262145, 1048576};
  static const size_t large[] = {100, 65536, 65537, 1048576, 4194304, 8388608, 8388672, 9437184};
  size_t alignment, i, j;

  for (i = 0; i < EXPECT_COUNT(sizes); i++) {
    for (j = 0; j < EXPECT_COUNT(sizes); j++)
      resize(sizes[i], sizes[j], 0);
  }
  for (i = 0; i < EXPECT_COUNT(large); i++) {
    for (j = 0; j < EXPECT_COUNT(large); j++)
      resize(large[i], large[j], 0);
  }
  for (alignment = 32; alignment <= 2 * EXPECT_MIB; alignment *= 2) {
    static const size_t some[] = {10, 100, 5000, 70000, 300000};
    for (i = 0; i < EXPECT_COUNT(some); i++) {
      resize(some[i], some[i] / 2, alignment);
      resize(some[i], some[i] * 3, alignment);
      if (some[i] <= 70000)
        resize(some[i], some[i] * 100, alignment);
    }
  }
}

/* realloc(p, 0) frees: what is taken ten thousand times must not add up. */
static void realloc_to_zero(void) {
  size_t before = 0, i;

  for (i = 0; i < 10000; i++) {
    void *block = expect_hide(malloc(i % 2 == 0 ? 100 : 300000));
    errno = 4321;
    EXPECT(realloc(block, expect_hide_size(0)) == NULL, "realloc(p, 0) gave a block");
    EXPECT(errno == 4321, "realloc(p, 0) changed errno");
    if (i == 100)
      before = mallinfo2().uordblks;
  }
  EXPECT(mallinfo2().uordblks <= before + 65536, "realloc(p, 0) does not free");
}

/* A long random walk of one block grown and shrunk, as a string that is built and cut. */
static void realloc_walk(void) {
  uint64_t state = 7;
  size_t size = 0, i;
  void *block = NULL;

  for (i = 0; i < 20000; i++) {
    size_t next = next_random_size(&state, i % 100 == 0 ? 2 * EXPECT_MIB : 100000) + 1;
    size_t kept = size < next ? size : next;
    void *moved = expect_hide(realloc(block, next));

    REQUIRE(moved != NULL, "realloc to %zu", next);
    EXPECT(size == 0 || expect_holds_part(moved, kept, size, i - 1), "walk: contents at %zu", i);
    expect_fill(moved, next, i);
    block = moved;
    size = next;
  }
  free(block);
}

static void other_frees(void) {
  free_sized_fn sized = EXPECT_EXTRA(free_sized_fn, free_sized);
  free_aligned_sized_fn aligned_sized = EXPECT_EXTRA(free_aligned_sized_fn, free_aligned_sized);
  cfree_fn old = EXPECT_EXTRA(cfree_fn, cfree);
  static const size_t sizes[] = {0, 1, 24, 100, 5000, 65536, 65537, 1048576};
  size_t round, i;

#ifndef EXPECT_STATIC
  EXPECT(!expect_weir() || (sized != NULL && aligned_sized != NULL && old != NULL),
         "free_sized, free_aligned_sized or cfree is missing");
#endif
  for (round = 0; round < 1000; round++) {
    i = round % EXPECT_COUNT(sizes);
    if (sized != NULL) {
      void *block = QUIET(malloc(sizes[i]));
      errno = 4321;
      /* The size is a hint: a wrong one does no harm. */
      sized(block, round % 3 == 0 ? 1 : sizes[i]);
      EXPECT(errno == 4321, "free_sized changed errno");
      sized(NULL, 0);
    }
    if (aligned_sized != NULL) {
      aligned_sized(QUIET(aligned_alloc(4096, sizes[i])), 4096, sizes[i]);
      aligned_sized(QUIET(aligned_alloc(64, sizes[i])), 64, round % 3 == 0 ? 7 : sizes[i]);
      aligned_sized(NULL, 64, 0);
    }
    if (old != NULL) {
      old(QUIET(malloc(sizes[i])));
      old(NULL);
    }
  }
}

/* Memory to the last page: NULL and ENOMEM, and what was freed can be had again. */
static void out_of_memory(void) {
  enum { COUNT = 65536 };
  static void *blocks[COUNT];
  struct rlimit old, low;
  size_t round, i, first = 0;

  getrlimit(RLIMIT_AS, &old);
  low = old;
  low.rlim_cur = expect_proc("/proc/self/status", "VmSize:") + 64 * EXPECT_MIB;
  REQUIRE(setrlimit(RLIMIT_AS, &low) == 0, "setrlimit");
  for (round = 0; round < 4; round++) {
    size_t size = round == 1 ? 300000 : 70000;
    size_t count = 0;

    errno = 0;
    while (count < COUNT && (blocks[count] = malloc(size)) != NULL)
      count++;
    EXPECT(count == COUNT || errno == ENOMEM, "out of memory: errno is %d", errno);
    EXPECT(count < COUNT, "the limit did not bite");
    EXPECT(count * size >= 16 * EXPECT_MIB, "round %zu: only %zu blocks of %zu", round, count,
           size);
    /* Other sizes in between leave address space in pieces; the same again must fit again. */
    if (round == 0)
      first = count;
    if (round == 2) {
      EXPECT(count >= first - first / 4, "first %zu blocks, now %zu", first, count);
      first = count;
    }
    if (round == 3)
      EXPECT(count >= first - first / 50, "%zu blocks, then only %zu", first, count);
    errno = 0;
    EXPECT(calloc(1, 64 * EXPECT_MIB) == NULL && errno == ENOMEM, "calloc under the limit");
    for (i = 0; i < count; i++)
      free(blocks[i]);
  }
  setrlimit(RLIMIT_AS, &old);
  free(QUIET(malloc(100 * EXPECT_MIB)));
}

int main(void) {
  expect_start();
  zero_sizes();
  too_large();
  products();
  alignments();
  bad_alignments();
  page_aligned();
  zeroed();
  reallocs();
  realloc_to_zero();
  realloc_walk();
  other_frees();
  out_of_memory();
  return expect_done();
}
