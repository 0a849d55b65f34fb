/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symbol map: every name of the malloc family, of operator new and delete, and of weir's own
 * API resolves to one and the same library, as the loader gives it and as this program links it;
 * and a block from each can be freed by free. Skipped without weir.
 */
#include "expect.h"

#include <stdio.h>

/* The Itanium mangling of size_t differs between 64 and 32 bit machines. */
#if __SIZEOF_SIZE_T__ == 8
#define SZ "m"
#else
#define SZ "j"
#endif

static const char *const names[] = {
    "malloc", "calloc", "realloc", "reallocarray", "free", "cfree", "posix_memalign",
    "aligned_alloc", "memalign", "valloc", "pvalloc", "malloc_usable_size", "free_sized",
    "free_aligned_sized", "mallinfo", "mallinfo2", "mallopt", "malloc_trim", "malloc_stats",
    "malloc_info",
    /* new */
    "_Znw" SZ, "_Zna" SZ, "_Znw" SZ "RKSt9nothrow_t", "_Zna" SZ "RKSt9nothrow_t",
    "_Znw" SZ "St11align_val_t", "_Zna" SZ "St11align_val_t",
    "_Znw" SZ "St11align_val_tRKSt9nothrow_t", "_Zna" SZ "St11align_val_tRKSt9nothrow_t",
    /* delete */
    "_ZdlPv", "_ZdaPv", "_ZdlPvRKSt9nothrow_t", "_ZdaPvRKSt9nothrow_t", "_ZdlPv" SZ, "_ZdaPv" SZ,
    "_ZdlPvSt11align_val_t", "_ZdaPvSt11align_val_t", "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t", "_ZdlPv" SZ "St11align_val_t",
    "_ZdaPv" SZ "St11align_val_t",
    /* weir's own */
    "weir_version", "weir_malloc", "weir_calloc", "weir_realloc", "weir_reallocarray",
    "weir_aligned_alloc", "weir_free", "weir_usable_size", "weir_retain", "weir_set_retain",
    "weir_trim", "weir_stats", "weir_class_stats", "weir_report"};

typedef void *(*take_fn)(size_t);
typedef void *(*take_nothrow_fn)(size_t, const void *);
typedef void *(*take_aligned_fn)(size_t, size_t);
typedef void *(*take_aligned_nothrow_fn)(size_t, size_t, const void *);
typedef void (*give_fn)(void *);
typedef void (*give_two_fn)(void *, size_t);
typedef void (*give_three_fn)(void *, size_t, size_t);

static void *library;

static void check_name(const char *name) {
  Dl_info info;
  void *symbol = dlsym(RTLD_DEFAULT, name);

  if (symbol == NULL || dladdr(symbol, &info) == 0) {
    expect_fail(__FILE__, __LINE__, "%s: nowhere", name);
    return;
  }
  EXPECT(info.dli_fbase == library, "%s: from %s", name, info.dli_fname);
}

/* Every take against every give: names that resolve alike but keep books apart would stop here. */
static void mix(void) {
  static const char *const takes[] = {"malloc",  "valloc",  "pvalloc",
                                      "_Znw" SZ, "_Zna" SZ, "weir_malloc"};
  static const char *const gives[] = {"free", "cfree", "_ZdlPv", "_ZdaPv", "weir_free"};
  static const char *const sized[] = {"free_sized", "_ZdlPv" SZ, "_ZdaPv" SZ,
                                      "_ZdlPvSt11align_val_t"};
  char nothrow = 0;
  size_t i, j;

  for (i = 0; i < EXPECT_COUNT(takes); i++) {
    take_fn take = (take_fn)dlsym(RTLD_DEFAULT, takes[i]);
    if (take == NULL)
      continue;
    for (j = 0; j < EXPECT_COUNT(gives); j++) {
      give_fn give = (give_fn)dlsym(RTLD_DEFAULT, gives[j]);
      if (give != NULL)
        give(take(100 + 1000 * j));
    }
    for (j = 0; j < EXPECT_COUNT(sized); j++) {
      give_two_fn give = (give_two_fn)dlsym(RTLD_DEFAULT, sized[j]);
      if (give != NULL)
        give(take(64), 64);
    }
  }
  for (i = 0; i < 2; i++) {
    take_nothrow_fn quiet = (take_nothrow_fn)dlsym(
        RTLD_DEFAULT, i == 0 ? "_Znw" SZ "RKSt9nothrow_t" : "_Zna" SZ "RKSt9nothrow_t");
    take_aligned_fn aligned = (take_aligned_fn)dlsym(
        RTLD_DEFAULT, i == 0 ? "_Znw" SZ "St11align_val_t" : "_Zna" SZ "St11align_val_t");
    take_aligned_nothrow_fn both = (take_aligned_nothrow_fn)dlsym(
        RTLD_DEFAULT, i == 0 ? "_Znw" SZ "St11align_val_tRKSt9nothrow_t"
                             : "_Zna" SZ "St11align_val_tRKSt9nothrow_t");
    give_three_fn give = (give_three_fn)dlsym(RTLD_DEFAULT, i == 0 ? "_ZdlPv" SZ "St11align_val_t"
                                                                   : "_ZdaPv" SZ "St11align_val_t");
    if (quiet == NULL || aligned == NULL || both == NULL || give == NULL)
      continue;
    free(quiet(100, &nothrow));
    give(aligned(100, 256), 100, 256);
    give(both(100, 4096, &nothrow), 100, 4096);
    free(aligned(0, 64));
  }
}

/* The libc's own callers use the same heap: what strdup and getline took, weir knows. */
static void libc_callers(void) {
  uint64_t before, after;
  weir_stats_t stats;
  char *text;

  EXPECT_FN(weir_stats)(&stats, sizeof stats);
  before = stats.live;
  text = strdup("a text that the libc copies with malloc, whichever malloc that is");
  EXPECT_FN(weir_stats)(&stats, sizeof stats);
  after = stats.live;
  EXPECT(after == before + malloc_usable_size(text), "strdup went past weir");
  free(text);
  EXPECT_FN(weir_stats)(&stats, sizeof stats);
  EXPECT(stats.live == before, "free went past weir");
}

int main(void) {
  Dl_info info;
  size_t i;

  expect_start();
  if (!expect_weir())
    return EXPECT_SKIP;
  REQUIRE(dladdr(dlsym(RTLD_DEFAULT, "weir_version"), &info) != 0, "dladdr");
  library = info.dli_fbase;
  EXPECT(strstr(info.dli_fname, "libweir_malloc") != NULL, "weir comes from %s", info.dli_fname);
  EXPECT(expect_hide((void *)&malloc) == dlsym(RTLD_DEFAULT, "malloc"), "malloc as linked differs");
  EXPECT(expect_hide((void *)&free) == dlsym(RTLD_DEFAULT, "free"), "free as linked differs");
  for (i = 0; i < EXPECT_COUNT(names); i++)
    check_name(names[i]);
  mix();
  libc_callers();
  return expect_done();
}
