/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run under a limit of address space, by limits.sh: takes blocks until there are no more, from
 * one thread and from several, and expects NULL with ENOMEM from every entry point; then frees
 * them all, finds as much memory again, and goes on.
 */
#include "expect.h"

#include <pthread.h>

enum { COUNT = 1 << 20 };
static void **blocks;

/* Take blocks of `size` until none is left; returns how many. */
static size_t take_all(size_t size, size_t first, size_t last) {
  size_t count = first;

  errno = 0;
  while (count < last && (blocks[count] = expect_hide(malloc(size))) != NULL) {
    *(volatile char *)blocks[count++] = 1;
  }
  EXPECT(count == last || errno == ENOMEM, "out of memory, and errno is %d", errno);
  return count - first;
}

static void free_all(size_t first, size_t count) {
  while (count > 0)
    free(blocks[first + --count]);
}

static void refuse_all(size_t size) {
  void *out = NULL;

  errno = 0;
  EXPECT(calloc(1, size) == NULL && errno == ENOMEM, "calloc of %zu: errno is %d", size, errno);
  errno = 0;
  EXPECT(realloc(NULL, size) == NULL && errno == ENOMEM, "realloc of %zu: errno is %d", size,
         errno);
  errno = 0;
  EXPECT(aligned_alloc(4096, size) == NULL && errno == ENOMEM, "aligned_alloc of %zu: errno %d",
         size, errno);
  errno = 0;
  EXPECT(valloc(size) == NULL && errno == ENOMEM, "valloc of %zu: errno is %d", size, errno);
  EXPECT(posix_memalign(&out, 64, size) == ENOMEM && out == NULL, "posix_memalign");
}

static void *in_thread(void *argument) {
  size_t first = (size_t)(uintptr_t)argument;
  size_t round;

  for (round = 0; round < 3; round++) {
    size_t count = take_all(round == 1 ? 2000 : 30000, first, first + COUNT / 4);
    free_all(first, count);
  }
  return NULL;
}

int main(int argc, char **argv) {
  static const size_t sizes[] = {1048576, 70000, 4096, 1000, 40000, 1048576};
  size_t limit = argc > 1 ? strtoull(argv[1], NULL, 10) * EXPECT_MIB : 0;
  size_t first_bytes = 0, i;
  pthread_attr_t attributes;
  pthread_t threads[4];

  expect_start();
  /* The table of blocks is not malloc's, and its pages are the kernel's to give when touched. */
  static void *table[COUNT];
  blocks = table;
  for (i = 0; i < EXPECT_COUNT(sizes); i++) {
    void *kept = expect_hide(malloc(100));
    size_t count = take_all(sizes[i], 0, COUNT);
    size_t bytes = count * sizes[i];

    if (count < COUNT)
      refuse_all(2 * sizes[i] + EXPECT_MIB);
    /* A realloc that finds no memory leaves its block alone. */
    if (kept != NULL && count < COUNT) {
      memset(kept, 0x42, 100);
      EXPECT(realloc(kept, 64 * EXPECT_MIB + limit) == NULL, "realloc over the limit");
      EXPECT(((char *)kept)[99] == 0x42, "a failed realloc lost its block");
    }
    free_all(0, count);
    free(kept);
    if (i == 0)
      first_bytes = bytes;
    if (i == EXPECT_COUNT(sizes) - 1) {
      /* All was freed: nearly as much must be there as at first. What small blocks used stays
       * theirs in part, so not all of it, with any malloc. */
      EXPECT(bytes + 2 * EXPECT_MIB >= first_bytes - first_bytes / 4,
             "first %zu KiB, in the end %zu KiB", first_bytes >> 10, bytes >> 10);
    }
  }
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * EXPECT_KIB);
  for (i = 0; i < 4; i++) {
    if (pthread_create(&threads[i], &attributes, in_thread, (void *)(i * (COUNT / 4))) != 0)
      break;
  }
  while (i > 0)
    pthread_join(threads[--i], NULL);
  free(expect_hide(malloc(1000)));
  if (limit >= 64 * EXPECT_MIB) {
    EXPECT(first_bytes >= limit / 2, "of %zu KiB only %zu could be taken", limit >> 10,
           first_bytes >> 10);
  }
  return expect_done();
}
