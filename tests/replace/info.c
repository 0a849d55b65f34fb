/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry points that tell and tune: mallinfo, mallinfo2, malloc_info, malloc_stats,
 * malloc_trim and mallopt, with amounts of live memory that the program knows.
 */
#include "expect.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

enum { LARGE = 100, SMALL = 100000 };
static void *large[LARGE];
static void *small[SMALL];

static void saturated(void) {
  struct mallinfo2 wide;
  struct mallinfo narrow;
  void *huge = expect_hide(malloc((size_t)3 << 30));

  /* Three untouched GiB are only address space; a machine that refuses them has no such case. */
  if (huge == NULL)
    return;
  wide = mallinfo2();
  narrow = mallinfo();
  EXPECT(wide.uordblks + wide.hblkhd >= (size_t)3 << 30, "mallinfo2 misses 3 GiB");
  /* glibc's own wraps round here. */
  EXPECT(!expect_strict() || narrow.uordblks == INT_MAX || narrow.hblkhd == INT_MAX,
         "mallinfo: %d, not saturated", narrow.uordblks);
  EXPECT(narrow.arena >= 0 && narrow.fordblks >= 0 && narrow.keepcost >= 0, "mallinfo overflows");
  free(huge);
}

static size_t live(void) {
  struct mallinfo2 info = mallinfo2();

  /* glibc counts blocks it mapped one by one apart. */
  return info.uordblks + info.hblkhd;
}

static void live_amounts(void) {
  size_t before, room = 0, i, seen;

  free(expect_hide(malloc(48)));
  before = live();
  for (i = 0; i < LARGE; i++) {
    large[i] = expect_hide(malloc(EXPECT_MIB + i));
    room += malloc_usable_size(large[i]);
  }
  for (i = 0; i < SMALL; i++) {
    small[i] = expect_hide(malloc(i % 200));
    room += malloc_usable_size(small[i]);
  }
  seen = live() - before;
  EXPECT(seen >= room && seen <= room + room / 20, "%zu live, mallinfo2 says %zu", room, seen);
  EXPECT(!expect_strict() || seen == room, "%zu live, mallinfo2 says %zu more", room, seen - room);
  EXPECT(mallinfo2().arena + mallinfo2().hblkhd >= room, "arena is less than what is live");
  EXPECT((size_t)mallinfo().uordblks + (size_t)mallinfo().hblkhd == live(), "mallinfo differs");
  for (i = 0; i < SMALL; i++)
    free(small[i]);
  for (i = 0; i < LARGE; i++)
    free(large[i]);
  EXPECT(live() <= before + 65536, "all is freed and mallinfo2 says %zu more", live() - before);
  EXPECT(!expect_strict() || live() == before, "freed: %zu before, %zu now", before, live());
}

static void trim(void) {
  size_t i, before, kept;

  if (!expect_strict()) {
    EXPECT(malloc_trim(0) == 0 || malloc_trim(0) >= 0, "malloc_trim");
    return;
  }
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  malloc_trim(0);
  for (i = 0; i < 32; i++)
    expect_touch(large[i] = expect_hide(malloc(EXPECT_MIB)), EXPECT_MIB);
  before = expect_rss();
  for (i = 0; i < 32; i++)
    free(large[i]);
  EXPECT(expect_rss() + EXPECT_MIB >= before, "freed memory below the mark was given back");
  kept = mallinfo2().keepcost;
  EXPECT(kept >= 32 * EXPECT_MIB && kept <= 64 * EXPECT_MIB, "keepcost is %zu", kept);
  EXPECT(mallinfo2().fordblks >= kept, "fordblks is below keepcost");
  EXPECT(malloc_trim(16 * EXPECT_MIB) == 1, "malloc_trim(16 MiB) gave nothing back");
  kept = mallinfo2().keepcost;
  EXPECT(kept <= 16 * EXPECT_MIB && kept >= 12 * EXPECT_MIB, "after malloc_trim(16 MiB): %zu",
         kept);
  EXPECT(expect_rss() <= before - 15 * EXPECT_MIB, "malloc_trim left the pages resident");
  EXPECT(malloc_trim(0) == 1, "malloc_trim(0) gave nothing back");
  EXPECT(mallinfo2().keepcost <= EXPECT_MIB, "after malloc_trim(0): %zu", mallinfo2().keepcost);
  EXPECT(expect_rss() <= before - 30 * EXPECT_MIB, "malloc_trim(0) left the pages resident");
  EXPECT(malloc_trim(0) == 0, "a second malloc_trim(0) found something");
}

static void tune(void) {
  EXPECT(mallopt(M_MMAP_THRESHOLD, 16 << 20) == 1, "mallopt(M_MMAP_THRESHOLD)");
  EXPECT(mallopt(M_MMAP_MAX, 0) == 1, "mallopt(M_MMAP_MAX)");
  EXPECT(mallopt(M_ARENA_MAX, 2) == 1, "mallopt(M_ARENA_MAX)");
  EXPECT(mallopt(M_MXFAST, 64) == 1, "mallopt(M_MXFAST)");
  EXPECT(mallopt(M_CHECK_ACTION, 1) == 1, "mallopt(M_CHECK_ACTION)");
  EXPECT(mallopt(123456, 1) == 1, "mallopt of an unknown parameter");
  EXPECT(mallopt(M_TRIM_THRESHOLD, 64 << 20) == 1, "mallopt(M_TRIM_THRESHOLD)");
  EXPECT(mallopt(M_TOP_PAD, 0) == 1, "mallopt(M_TOP_PAD)");
  if (!expect_weir())
    return;
  EXPECT(mallopt(M_MMAP_THRESHOLD, 64 << 20) == 1, "mallopt(M_MMAP_THRESHOLD, 64 MiB)");
  EXPECT(EXPECT_FN(weir_retain)() == 64 * EXPECT_MIB, "other parameters moved the mark");
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
  EXPECT(EXPECT_FN(weir_retain)() == EXPECT_MIB, "M_TRIM_THRESHOLD is not the mark");
  mallopt(M_TOP_PAD, 4096);
  EXPECT(EXPECT_FN(weir_retain)() == EXPECT_MIB, "M_TOP_PAD lowered the mark");
  mallopt(M_TOP_PAD, 128 << 20);
  EXPECT(EXPECT_FN(weir_retain)() == 128 * EXPECT_MIB, "M_TOP_PAD did not raise the mark");
  mallopt(M_TRIM_THRESHOLD, -1);
  EXPECT(EXPECT_FN(weir_retain)() == WEIR_RETAIN_UNLIMITED, "-1 is not unlimited");
  mallopt(M_TOP_PAD, 4096);
  EXPECT(EXPECT_FN(weir_retain)() == WEIR_RETAIN_UNLIMITED, "M_TOP_PAD limited the mark");
  mallopt(M_TRIM_THRESHOLD, 0);
  EXPECT(EXPECT_FN(weir_retain)() == 0, "0 is not no mark");
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

static void xml(void) {
  static char text[1 << 20];
  FILE *file = tmpfile();
  size_t length;

  REQUIRE(file != NULL, "tmpfile");
  EXPECT(malloc_info(0, file) == 0, "malloc_info failed");
  fflush(file);
  rewind(file);
  length = fread(text, 1, sizeof text - 1, file);
  text[length] = '\0';
  EXPECT(strncmp(text, "<malloc version=\"1\">", 20) == 0, "malloc_info begins %.30s", text);
  EXPECT(strstr(text, "</malloc>") != NULL, "malloc_info has no end");
  EXPECT(malloc_info(1, file) == EINVAL, "malloc_info(1) is no EINVAL");
  fclose(file);
}

static void report(void) {
  char text[256];
  int saved = dup(STDERR_FILENO);
  int pipes[2];
  ssize_t length;

  REQUIRE(pipe(pipes) == 0, "pipe");
  dup2(pipes[1], STDERR_FILENO);
  malloc_stats();
  fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(pipes[1]);
  length = read(pipes[0], text, sizeof text - 1);
  EXPECT(length > 20, "malloc_stats printed %zd bytes", length);
  close(pipes[0]);
  close(saved);
}

int main(void) {
  expect_start();
  setvbuf(stdout, NULL, _IONBF, 0);
  live_amounts();
  saturated();
  tune();
  trim();
  xml();
  report();
  return expect_done();
}
