/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public functions: argument rules and errno, then one call down. Contracts: weir/weir.h.
 */
#include "weir.h"

#include <errno.h>
#include <string.h>

#include "init.h"

/* Brings the constructor into a static program that uses any of these functions. */
__attribute__((used)) static void (*const process)(void) = wr_process_forked;

WR_EXPORT const char *weir_version(void) {
  return WEIR_VERSION;
}

WR_EXPORT void *weir_malloc(size_t size) {
  return wr_alloc_take(size);
}

WR_EXPORT void *weir_calloc(size_t count, size_t size) {
  size_t bytes;
  if (WR_UNLIKELY(!wr_bits_product(count, size, &bytes)))
    return wr_alloc_refuse(&wr_arena_default, 0);
  return wr_alloc_zeroed(&wr_arena_default, bytes);
}

WR_EXPORT void *weir_realloc(void *block, size_t size) {
  if (block == NULL)
    return wr_alloc_take(size);
  if (size > 0)
    return wr_realloc_resize(block, size);
  wr_free_give(block);
  return NULL;
}

WR_EXPORT void *weir_reallocarray(void *block, size_t count, size_t size) {
  size_t bytes;
  if (WR_UNLIKELY(!wr_bits_product(count, size, &bytes)))
    return wr_alloc_refuse(&wr_arena_default, 0);
  return weir_realloc(block, bytes);
}

WR_EXPORT void *weir_aligned_alloc(size_t alignment, size_t size) {
  if (WR_UNLIKELY(!wr_bits_is_pow2(alignment))) {
    errno = EINVAL;
    return NULL;
  }
  return wr_alloc_aligned(alignment, size);
}

WR_EXPORT void weir_free(void *block) {
  wr_free_give(block);
}

WR_EXPORT size_t weir_usable_size(const void *block) {
  size_t usable = 0;
  if (block != NULL)
    (void)wr_free_find(block, &usable);
  return usable;
}

WR_EXPORT size_t weir_retain(void) {
  wr_init();
  return wr_counter_read(&wr_arena_default.spans.retain.mark);
}

WR_EXPORT void weir_set_retain(size_t bytes) {
  wr_init();
  wr_heap_set_mark(&wr_arena_default, bytes);
}

WR_EXPORT size_t weir_trim(size_t keep) {
  wr_init();
  return wr_heap_trim_all(&wr_arena_default, keep);
}

WR_EXPORT void weir_stats(weir_stats_t *stats, size_t size) {
  wr_init();
  wr_snapshot_stats(&wr_arena_default, stats, size);
}

WR_EXPORT size_t weir_class_stats(weir_class_stats_t *classes, size_t count) {
  struct wr_snapshot snapshot;
  wr_init();
  wr_snapshot_take(&wr_arena_default, &snapshot);
  if (classes != NULL)
    memcpy(classes, snapshot.classes, wr_bits_min(count, WR_CLASSES) * sizeof *classes);
  return WR_CLASSES;
}

WR_EXPORT int weir_report(int fd, weir_format_t format) {
  wr_init();
  return wr_report_arena(&wr_arena_default, fd, format == WEIR_JSON);
}
