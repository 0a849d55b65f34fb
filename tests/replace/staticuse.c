/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program linked statically that uses malloc only through the libc and asks for the extras that
 * pull glibc's own malloc into a careless link: it must link without double symbols, and weir
 * must really be what serves strdup, getline, stdio, fork and threads.
 */
#include "expect.h"

#include <pthread.h>

static uint64_t live(void) {
  weir_stats_t stats;

  EXPECT_FN(weir_stats)(&stats, sizeof stats);
  return stats.live;
}

static void libc_callers(void) {
  uint64_t before = live();
  char *text = strdup("copied by the libc, in memory that weir counts");
  char *line = NULL;
  size_t room = 0;
  FILE *file;

  EXPECT(live() == before + malloc_usable_size(text), "strdup went past weir");
  free(text);
  EXPECT(live() == before, "free went past weir");
  file = fopen("/proc/self/maps", "r");
  REQUIRE(file != NULL, "fopen");
  EXPECT(getline(&line, &room, file) > 10, "getline");
  EXPECT(live() >= before + room, "getline went past weir");
  free(line);
  fclose(file);
  EXPECT(live() == before, "fclose went past weir: %zu bytes", (size_t)(live() - before));
}

static void extras(void) {
  void *block = expect_hide(malloc(10 * EXPECT_MIB));
  struct mallinfo2 info = mallinfo2();

  EXPECT(info.uordblks >= 10 * EXPECT_MIB, "mallinfo2 is another malloc's");
  expect_touch(block, 10 * EXPECT_MIB);
  free(block);
  EXPECT(mallopt(M_TRIM_THRESHOLD, 32 << 20) == 1, "mallopt");
  EXPECT(EXPECT_FN(weir_retain)() == 32 * EXPECT_MIB, "mallopt is another malloc's");
  EXPECT(malloc_trim(0) == 1, "malloc_trim is another malloc's");
  block = NULL;
  EXPECT(posix_memalign(&block, 4096, 100) == 0 && expect_aligned(block, 4096), "posix_memalign");
  free(block);
  free(expect_hide(valloc(100)));
  free(expect_hide(pvalloc(100)));
  free(expect_hide(memalign(64, 100)));
  free(expect_hide(reallocarray(NULL, 10, 10)));
}

static void *in_thread(void *unused) {
  size_t i;

  for (i = 0; i < 1000; i++)
    free(expect_hide(malloc(i * 100)));
  return unused;
}

static void threads_and_forks(void) {
  pthread_t thread;
  size_t i;

  for (i = 0; i < 20; i++) {
    int status = 0;
    pid_t child;
    REQUIRE(pthread_create(&thread, NULL, in_thread, NULL) == 0, "pthread_create");
    child = fork();
    if (child == 0) {
      alarm(20);
      in_thread(NULL);
      _exit(strdup("x") == NULL);
    }
    waitpid(child, &status, 0);
    EXPECT(status == 0, "a child ended with %#x", (unsigned)status);
    pthread_join(thread, NULL);
  }
}

int main(void) {
  expect_start();
  if (!expect_weir())
    return EXPECT_SKIP;
  libc_callers();
  extras();
  threads_and_forks();
  return expect_done();
}
