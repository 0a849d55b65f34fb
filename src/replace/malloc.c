/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of libc's malloc family over the public functions, a line each, with the argument
 * rules of the C standard, POSIX and glibc where those differ from weir's own.
 */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "../os.h"
#include "../weir.h"

/* glibc's mallinfo is deprecated, and programs that call it are still served. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* malloc.h of glibc before 2.33 has no mallinfo2. */
struct wr_mallinfo2 {
  size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

/* For os_malloc.c. Here, so that it is linked exactly where this malloc is. */
const char wr_replaces_malloc = 1;

WR_EXPORT WR_HOT void *malloc(size_t size) {
  return wr_alloc_take(size);
}

WR_EXPORT WR_HOT void free(void *block) {
  wr_free_give(block);
}

WR_EXPORT void *calloc(size_t count, size_t size) {
  return weir_calloc(count, size);
}

WR_EXPORT void *realloc(void *block, size_t size) {
  return weir_realloc(block, size);
}

WR_EXPORT void *reallocarray(void *block, size_t count, size_t size) {
  return weir_reallocarray(block, count, size);
}

WR_EXPORT void cfree(void *block);
void cfree(void *block) {
  wr_free_give(block);
}

/* C23: what the caller says of the size is a hint, and weir knows better. */
WR_EXPORT void free_sized(void *block, size_t size);
void free_sized(void *block, size_t size) {
  (void)size;
  wr_free_give(block);
}

WR_EXPORT void free_aligned_sized(void *block, size_t alignment, size_t size);
void free_aligned_sized(void *block, size_t alignment, size_t size) {
  (void)alignment;
  (void)size;
  wr_free_give(block);
}

WR_EXPORT void *aligned_alloc(size_t alignment, size_t size) {
  return weir_aligned_alloc(alignment, size);
}

WR_EXPORT void *memalign(size_t alignment, size_t size) {
  return weir_aligned_alloc(alignment, size);
}

WR_EXPORT int posix_memalign(void **block, size_t alignment, size_t size) {
  int saved = errno;
  void *taken;
  if (!wr_bits_is_pow2(alignment) || alignment % sizeof(void *) != 0)
    return EINVAL;
  taken = wr_alloc_aligned(alignment, size);
  errno = saved;
  if (taken == NULL)
    return ENOMEM;
  *block = taken;
  return 0;
}

WR_EXPORT void *valloc(size_t size) {
  return wr_alloc_aligned(wr_os_page_size(), size);
}

WR_EXPORT void *pvalloc(size_t size) {
  size_t page = wr_os_page_size();
  if (size > PTRDIFF_MAX - page)
    return wr_alloc_refuse(&wr_arena_default, 0);
  return wr_alloc_aligned(page, size == 0 ? page : wr_bits_up(size, page));
}

WR_EXPORT size_t malloc_usable_size(void *block) {
  return weir_usable_size(block);
}

WR_EXPORT int malloc_trim(size_t pad) {
  return weir_trim(pad) > 0;
}

/* Both thresholds of glibc that say what to keep are the mark; what its other parameters steer,
 * weir does not have. As in glibc, an unknown parameter is no failure. */
WR_EXPORT int mallopt(int parameter, int value) {
  size_t bytes = value < 0 ? WEIR_RETAIN_UNLIMITED : (size_t)value;
  if (parameter == M_TRIM_THRESHOLD)
    weir_set_retain(bytes);
  else if (parameter == M_TOP_PAD && bytes > weir_retain())
    weir_set_retain(bytes);
  return 1;
}

WR_EXPORT struct wr_mallinfo2 wr_mallinfo2(void) __asm__("mallinfo2");
struct wr_mallinfo2 wr_mallinfo2(void) {
  weir_stats_t stats;
  weir_stats(&stats, sizeof stats);
  return (struct wr_mallinfo2){
      .arena = stats.committed,
      .uordblks = stats.live,
      .fordblks = stats.retained + stats.fragmented,
      .keepcost = stats.retained,
  };
}

static int saturate(size_t number) {
  return number > INT_MAX ? INT_MAX : (int)number;
}

WR_EXPORT struct mallinfo mallinfo(void) {
  struct wr_mallinfo2 wide = wr_mallinfo2();
  return (struct mallinfo){
      .arena = saturate(wide.arena),
      .uordblks = saturate(wide.uordblks),
      .fordblks = saturate(wide.fordblks),
      .keepcost = saturate(wide.keepcost),
  };
}

WR_EXPORT void malloc_stats(void) {
  (void)weir_report(2, WEIR_TEXT);
}

static int stdio_sink(void *stream, const char *bytes, size_t length) {
  return fwrite(bytes, 1, length, stream) == length ? 0 : errno;
}

WR_EXPORT int malloc_info(int options, FILE *stream) {
  struct wr_snapshot snapshot;
  if (options != 0)
    return EINVAL;
  (void)weir_retain(); /* brings weir up if this is its first call */
  wr_snapshot_take(&wr_arena_default, &snapshot);
  return wr_report_xml(&snapshot, stdio_sink, stream);
}

#if !defined(PIC) && defined(__GLIBC__)
/* In a static program, glibc's fork calls these three functions of its own malloc, which would
 * bring that whole malloc in beside weir's. They stand here, and not in a file of their own, so
 * that the linker takes them with malloc. */
const char wr_process_hooked = 1;

void __malloc_fork_lock_parent(void);
void __malloc_fork_lock_parent(void) {
  wr_process_before_fork();
}

void __malloc_fork_unlock_parent(void);
void __malloc_fork_unlock_parent(void) {
  wr_process_after_fork();
}

void __malloc_fork_unlock_child(void);
void __malloc_fork_unlock_child(void) {
  wr_process_forked();
}
#endif
