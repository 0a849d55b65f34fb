/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making and ending arenas: see lifetime.h. An arena is known to one thread only until it is
 * listed, and again after it was delisted, so most of this takes no lock.
 */
#include "lifetime.h"

#include <errno.h>
#include <string.h>

#include "check.h"
#include "init.h"
#include "os.h"
#include "text.h"
#include "thread.h"

/* Units of an arena in a buffer: about 512 of them, from 4 to 64 KiB each. */
#define BUFFER_SHIFT_MIN 12
#define BUFFER_UNITS_SHIFT 9
#define BUFFER_MAX ((size_t)1 << (sizeof(size_t) == 8 ? 40 : 30))
/* In a buffer, for so many units room for the heap of another thread is set aside, up to so many.
 */
#define BUFFER_HEAP_UNITS 64
#define BUFFER_HEAPS_MAX 16

#define ALIGNED(size) wr_bits_up((size), 128)

static void touch(char *address, size_t length, size_t page) {
  for (volatile char *at = address; at < address + length; at += page)
    *at = 0;
}

/* Copies as many whole characters as there is room for. What is none would be none in a report. */
static void set_name(struct wr_arena *arena, const char *name) {
  size_t used = 0;
  while (name != NULL && *name != '\0') {
    size_t length = wr_text_character(name);
    if (used + wr_bits_max(length, 1) >= sizeof arena->name)
      break;
    if (length == 0)
      arena->name[used++] = '?';
    memcpy(arena->name + used, name, length);
    used += length;
    name += wr_bits_max(length, 1);
  }
  arena->name[used] = '\0';
}

static size_t mark_of(const weir_arena_options_t *options, size_t by_default) {
  size_t mark = options->retain == WEIR_RETAIN_DEFAULT ? by_default : options->retain;
  return wr_bits_max(mark, wr_bits_up(options->prefault, wr_os_page_size()));
}

static uintptr_t first_leaf(void) {
  return atomic_load_explicit(&wr_pagemap_first.not_base, memory_order_relaxed);
}

/* Makes the first leaf of the page map that of the gibibyte in which the default arena lies, if it
 * is none's yet. Only what is mapped there tells where that is: the hint is a mere wish. */
static void claim_first_leaf(void) {
  struct wr_spans *spans = &wr_arena_default.spans;
  if (first_leaf() != 0)
    return;
  wr_lock_take(&spans->growing);
  if (first_leaf() == 0 && wr_extent_stock(spans))
    (void)wr_extent_grow(spans, 1, true);
  wr_lock_give(&spans->growing);
}

/* Has the spans of an arena over the kernel be found in the first leaf of the page map, without a
 * look at where that is. */
static void set_range(struct wr_arena *arena) {
  struct wr_pagemap_range *range = &arena->range;
  uintptr_t not_base;
  claim_first_leaf();
  not_base = first_leaf();
  if (not_base == 0)
    return;
  range->base = (char *)~not_base;
  range->length = WR_PAGEMAP_LEAF_BYTES;
  range->shift = WR_UNIT_SHIFT;
  range->span = wr_pagemap_first.leaf.span;
}

/* What both kinds are given. */
static void set_up(struct wr_arena *arena, const weir_arena_options_t *options, size_t mark) {
  wr_arena_init(arena, mark, NULL);
  set_name(arena, options->name);
  arena->spans.limit = options->limit;
  arena->spans.mortal = true;
  arena->spans.map_meta = &wr_arena_default.meta;
  /* Pages are moved between mappings only where the kernel puts none of its own accord. */
  atomic_store_explicit(&arena->source.immovable, true, memory_order_relaxed);
}

/* An arena over the kernel with its structure in its own memory, in no list; NULL when memory is
 * out. *unlockable tells why. */
static struct wr_arena *make(const weir_arena_options_t *options, bool *unlockable) {
  struct wr_source source;
  struct wr_meta meta;
  struct wr_arena *arena;
  memset(&source, 0, sizeof source);
  memset(&meta, 0, sizeof meta);
  wr_source_init_os(&source, wr_init_options.thp);
  source.lock = options->lock;
  meta.source = &source;
  arena = wr_meta_take(&meta, sizeof *arena, 128);
  *unlockable = source.unlockable;
  if (arena == NULL)
    return NULL;
  memcpy(&arena->source, &source, sizeof source);
  memcpy(&arena->meta, &meta, sizeof meta);
  set_up(arena, options, mark_of(options, wr_counter_read(&wr_arena_default.spans.retain.mark)));
  set_range(arena);
  return arena;
}

/* Makes `bytes` bytes resident and free, with all that taking them needs. */
static bool prefault(struct wr_arena *arena, size_t bytes) {
  struct wr_spans *spans = &arena->spans;
  struct wr_heap *heap;
  struct wr_span *span;
  size_t stale;
  span = wr_span_take(spans, bytes, 1, &stale);
  /* Of slabs, each unit may become a span. */
  if (span == NULL || !wr_extent_stock_up(spans, wr_extent_units(spans, bytes)))
    return false;
  touch(span->user, span->usable, arena->source.page);
  (void)wr_span_give(span, span->user);
  wr_meta_prefault(&arena->meta);
  heap = wr_thread_enter(arena);
  if (heap != NULL)
    wr_thread_leave(heap);
  return heap != NULL;
}

int wr_lifetime_make(const weir_arena_options_t *options, struct wr_arena **made) {
  struct wr_arena *arena;
  bool unlockable, whole, limited;
  if (options->prefault > options->limit)
    return EINVAL;
  if (options->prefault > WR_SPAN_MAX)
    return ENOMEM;
  wr_init();
  arena = make(options, &unlockable);
  if (arena == NULL)
    return unlockable ? EPERM : ENOMEM;
  wr_arena_enlist(arena);
  whole = wr_extent_stock(&arena->spans) && wr_thread_stock(arena) &&
          (options->prefault == 0 || prefault(arena, options->prefault));
  limited = !whole && !wr_extent_allows(&arena->spans, options->prefault + sizeof(struct wr_heap) +
                                                           sizeof(struct wr_span_batch));
  unlockable = arena->source.unlockable;
  if (whole) {
    *made = arena;
    return 0;
  }
  wr_lifetime_end(arena);
  return unlockable ? EPERM : limited ? EINVAL : ENOMEM;
}

/* Where everything of an arena in a buffer lies. */
struct layout {
  char *own;   /* weir's own structures, behind the arena's */
  size_t owns; /* bytes of them */
  char *area;  /* the units */
  size_t units;
  size_t heaps;
  unsigned shift;
};

/* Bytes of weir's own structures for so many units. */
static size_t own_size(size_t units, size_t heaps) {
  size_t batches = (units + WR_EXTENT_SPARES + WR_SPAN_BATCH - 1) / WR_SPAN_BATCH;
  return batches * ALIGNED(sizeof(struct wr_span_batch)) +
         ALIGNED(units * sizeof(struct wr_span *)) + heaps * ALIGNED(sizeof(struct wr_heap));
}

/* Takes as many units as there is room for; none if it is too little. */
static void lay_out(struct layout *layout, char *arena, size_t length) {
  char *end = arena + length;
  size_t log = wr_bits_log2(length), unit;
  layout->shift = log > BUFFER_SHIFT_MIN + BUFFER_UNITS_SHIFT ? (unsigned)log - BUFFER_UNITS_SHIFT
                                                              : BUFFER_SHIFT_MIN;
  layout->shift = (unsigned)wr_bits_min(layout->shift, WR_UNIT_SHIFT);
  unit = (size_t)1 << layout->shift;
  layout->own = arena + ALIGNED(sizeof(struct wr_arena));
  /* The more units there are, the more is needed to describe them. */
  for (layout->units = length >> layout->shift;; layout->units--) {
    layout->heaps = 1 + wr_bits_min(layout->units / BUFFER_HEAP_UNITS, BUFFER_HEAPS_MAX - 1);
    layout->owns = own_size(layout->units, layout->heaps);
    layout->area = layout->own + layout->owns;
    layout->area += -(uintptr_t)layout->area & (unit - 1);
    if (layout->units == 0 ||
        (layout->area <= end && (size_t)(end - layout->area) >> layout->shift >= layout->units))
      return;
  }
}

size_t wr_lifetime_buffer_min(void) {
  size_t unit = (size_t)1 << BUFFER_SHIFT_MIN;
  /* With the most that aligning the beginning and the unit can cost. */
  return wr_bits_up(127 + ALIGNED(sizeof(struct wr_arena)) + own_size(1, 1) + unit - 1 + unit,
                    1024);
}

/* Without checks a block of a slab is not told from what lies inside it. */
static bool is_fit(const void *buffer) {
  const struct wr_arena *outer = WR_CHECK_CHEAP ? NULL : wr_arena_in_buffer(buffer);
  const struct wr_span *span = WR_CHECK_CHEAP ? NULL : wr_pagemap_find(buffer);
  if (outer != NULL)
    span = wr_extent_at(&outer->spans, buffer);
  return span == NULL || wr_extent_owner(span) < WR_OWNER_HEAP ||
         (uintptr_t)buffer - (uintptr_t)wr_extent_base(span) >= wr_extent_length(span);
}

/* Locks a buffer. *alone: it was not locked before, by mlockall or otherwise, so that the lock may
 * be ended again: the kernel does not count locks. */
static bool lock_buffer(void *buffer, size_t size, bool *alone) {
  *alone = !wr_os_is_locked(buffer, size);
  return wr_os_lock_memory(buffer, size) == 0;
}

static void unlock_buffer(void *buffer, size_t size) {
  /* Or what was locked by mlockall meanwhile, with all the rest, would be the one hole in that. */
  if (!wr_os_locks_future())
    wr_os_unlock_memory(buffer, size);
}

/* Fills an arena whose memory is zero. There is room for all of it. */
static void make_in(struct wr_arena *arena, const struct layout *layout,
                    const weir_arena_options_t *options) {
  struct wr_spans *spans = &arena->spans;
  wr_source_init_buffer(&arena->source, layout->area, layout->units << layout->shift,
                        (size_t)1 << BUFFER_SHIFT_MIN);
  set_up(arena, options, mark_of(options, SIZE_MAX));
  arena->meta.next = layout->own;
  arena->meta.end = layout->own + layout->owns;
  arena->range.base = layout->area;
  arena->range.length = layout->units << layout->shift;
  arena->range.shift = layout->shift;
  arena->range.span = wr_meta_take(&arena->meta, layout->units * sizeof(struct wr_span *), 128);
  spans->range = &arena->range;
  spans->shift = layout->shift;
  spans->limit = SIZE_MAX;
  (void)wr_extent_stock_up(spans, layout->units);
  for (size_t i = 0; i < layout->heaps; i++)
    (void)wr_thread_stock(arena);
  (void)wr_extent_grow(spans, layout->units, true);
  spans->limit = options->limit;
}

int wr_lifetime_make_in(void *buffer, size_t size, const weir_arena_options_t *options,
                        struct wr_arena **made) {
  struct layout layout;
  size_t lead = -(uintptr_t)buffer & 127;
  struct wr_arena *arena = (struct wr_arena *)(void *)((char *)buffer + lead);
  bool locked = false;
  wr_init();
  if (size < wr_lifetime_buffer_min() || size > BUFFER_MAX || options->prefault > size ||
      options->prefault > options->limit || !is_fit(buffer))
    return EINVAL;
  lay_out(&layout, (char *)arena, size - lead);
  if (options->prefault > layout.units << layout.shift)
    return EINVAL;
  if (options->lock && !lock_buffer(buffer, size, &locked))
    return EPERM;
  memset(arena, 0, (size_t)(layout.area - (char *)arena));
  arena->buffer = buffer;
  arena->buffer_size = size;
  arena->buffer_locked = locked;
  make_in(arena, &layout, options);
  if (!wr_extent_allows(&arena->spans, options->prefault)) {
    if (locked)
      unlock_buffer(buffer, size);
    return EINVAL;
  }
  touch(layout.area, options->prefault, wr_os_page_size());
  wr_arena_enlist(arena);
  *made = arena;
  return 0;
}

void wr_lifetime_reset(struct wr_arena *arena) {
  for (struct wr_heap *heap = wr_arena_heaps(arena); heap != NULL; heap = heap->next)
    wr_heap_reset(heap);
  wr_spans_reset(&arena->spans);
}

void wr_lifetime_end(struct wr_arena *arena) {
  struct wr_source source;
  struct wr_meta meta;
  wr_thread_forget(arena);
  if (arena->buffer != NULL) {
    if (arena->buffer_locked)
      unlock_buffer(arena->buffer, arena->buffer_size);
    return;
  }
  /* It looks at neighbours, too, which may be about to end: they wait for this lock, as they do for
   * those of the arenas that are listed. */
  wr_lock_take(&wr_arena_list_lock);
  wr_spans_forget(&arena->spans);
  wr_lock_give(&wr_arena_list_lock);
  wr_arena_outwait();
  wr_spans_unmap(&arena->spans);
  /* They unmap what they lie in. */
  memcpy(&source, &arena->source, sizeof source);
  memcpy(&meta, &arena->meta, sizeof meta);
  meta.source = &source;
  wr_meta_unmap(&meta);
}
