/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors and free address space: see extent.h.
 */
#include "extent.h"

#include "place.h"

/* Address space is mapped in steps of an eighth of what there is, between these. The upper bound
 * keeps what a process that locks its memory pays for in advance small. */
#define STEP_MIN ((size_t)256 << 10)
#define STEP_MAX ((size_t)1 << 20)

/* NULL when other threads used up the stock, and then the operation starts again. */
static struct wr_span *take_spare(struct wr_spans *spans) {
  struct wr_link *link = spans->spare.front;
  if (link == NULL)
    return NULL;
  wr_list_remove(&spans->spare, link);
  wr_counter_sub(&spans->spares, 1);
  return WR_SPAN_OF_LINK(link);
}

static void give_spare(struct wr_spans *spans, struct wr_span *span) {
  wr_extent_set_owner(span, WR_OWNER_NONE);
  wr_list_add_front(&spans->spare, &span->link);
  wr_counter_add(&spans->spares, 1);
}

size_t wr_extent_committed(const struct wr_spans *spans) {
  return wr_counter_read(&spans->resident) + wr_counter_read(&spans->slab_active) +
         wr_counter_read(&spans->meta->used);
}

void *wr_extent_take_own(struct wr_spans *spans, size_t size, size_t alignment) {
  void *taken = NULL;
  bool allowed;
  wr_lock_take(&spans->lock);
  allowed = wr_extent_allows(spans, size);
  spans->pending += allowed ? size : 0;
  wr_lock_give(&spans->lock);
  if (!allowed)
    return NULL;
  taken = wr_meta_take(spans->meta, size, alignment);
  wr_lock_take(&spans->lock);
  spans->pending -= size;
  wr_lock_give(&spans->lock);
  return taken;
}

static bool add_batch(struct wr_spans *spans) {
  struct wr_span_batch *batch = wr_extent_take_own(spans, sizeof *batch, 128);
  if (batch == NULL)
    return false;
  wr_lock_take(&spans->lock);
  batch->next = spans->batches;
  spans->batches = batch;
  for (int i = WR_SPAN_BATCH - 1; i >= 0; i--) {
    batch->span[i].spans = spans;
    wr_list_add_front(&spans->spare, &batch->span[i].link);
  }
  wr_counter_add(&spans->spares, WR_SPAN_BATCH);
  wr_lock_give(&spans->lock);
  return true;
}

bool wr_extent_stock_up(struct wr_spans *spans, size_t count) {
  size_t batches = (count + WR_EXTENT_SPARES + WR_SPAN_BATCH - 1) / WR_SPAN_BATCH;
  if (!wr_meta_reserve(spans->meta, batches * sizeof(struct wr_span_batch)))
    return false;
  while (wr_counter_read(&spans->spares) < count + WR_EXTENT_SPARES)
    if (!add_batch(spans))
      return false;
  return true;
}

bool wr_extent_stock(struct wr_spans *spans) {
  return WR_LIKELY(wr_counter_read(&spans->spares) >= WR_EXTENT_SPARES) || add_batch(spans);
}

void wr_extent_record(const struct wr_spans *spans, const void *address, size_t length,
                      struct wr_span *span) {
  if (WR_LIKELY(spans->range == NULL))
    wr_pagemap_set(address, length, span);
  else
    wr_pagemap_range_set(spans->range, address, length, span);
}

unsigned wr_extent_next_class(const struct wr_list *lists, uint64_t *bits, unsigned class) {
  while (class < WR_RETAIN_CLASSES) {
    uint64_t left = bits[class / 64] & (UINT64_MAX << class % 64);
    if (left == 0) {
      class = (class / 64 + 1) * 64;
      continue;
    }
    class = class / 64 * 64 + wr_bits_lowest(left);
    if (!wr_list_is_empty(&lists[class]))
      break;
    wr_bits_exclude(bits, class);
  }
  return class;
}

static void set_units(struct wr_span *span, size_t units) {
  size_t rounded;
  unsigned class = wr_extent_class(units, &rounded);
  span->units = (uint32_t)units;
  span->kind = (uint8_t)(rounded > units ? class - 1 : class);
}

static void record_ends(struct wr_span *span) {
  size_t unit = wr_extent_unit(span->spans);
  wr_extent_record(span->spans, span->base, unit, span);
  wr_extent_record(span->spans, span->base + wr_extent_length(span) - unit, unit, span);
}

static void add_free(struct wr_spans *spans, struct wr_span *span) {
  unsigned bin = span->kind;
  wr_extent_set_owner(span, WR_OWNER_FREE);
  wr_counter_set(&span->touched, 0);
  span->dirty = 0;
  span->refused = false;
  record_ends(span);
  wr_list_add_front(&spans->bins[bin], &span->link);
  wr_bits_include(spans->bin_bits, bin);
}

void wr_extent_remove(struct wr_spans *spans, struct wr_span *span) {
  wr_list_remove(&spans->bins[span->kind], &span->link);
  /* Or a part that is cut off it would be joined with it again. */
  wr_extent_set_owner(span, WR_OWNER_LEAVING);
}

/* As wr_extent_at, for an address that may be another arena's. */
static struct wr_span *peek(const struct wr_spans *spans, const char *address) {
  return WR_LIKELY(spans->range == NULL) ? wr_pagemap_peek(address) : wr_extent_at(spans, address);
}

struct wr_span *wr_extent_find(const struct wr_spans *spans, const char *address) {
  struct wr_span *span = peek(spans, address);
  return span != NULL && span->spans == spans && wr_extent_base(span) == address &&
                 wr_extent_owner(span) != WR_OWNER_NONE
             ? span
             : NULL;
}

/* The free span that ends at `address`, or NULL. */
static struct wr_span *free_before(const struct wr_spans *spans, const char *address) {
  struct wr_span *span = peek(spans, address - 1);
  return span != NULL && span->spans == spans && wr_extent_owner(span) == WR_OWNER_FREE &&
                 span->base + wr_extent_length(span) == address
             ? span
             : NULL;
}

void wr_extent_append(struct wr_spans *spans, struct wr_span *span, struct wr_span *next) {
  set_units(span, span->units + next->units);
  give_spare(spans, next);
}

void wr_extent_join(struct wr_spans *spans, struct wr_span *span) {
  struct wr_span *before = free_before(spans, span->base);
  struct wr_span *after = wr_extent_find(spans, span->base + wr_extent_length(span));
  if (after != NULL && wr_extent_owner(after) == WR_OWNER_FREE) {
    wr_extent_remove(spans, after);
    wr_extent_append(spans, span, after);
  }
  /* Its class may have been that of a smaller span it stood in for. */
  set_units(span, span->units);
  if (before != NULL) {
    wr_extent_remove(spans, before);
    wr_extent_append(spans, before, span);
    span = before;
  }
  add_free(spans, span);
}

/* Cuts what is behind `units` units off `span`, which is in no list, into `rest`. */
static void cut(struct wr_span *span, unsigned units, struct wr_span *rest) {
  size_t length = (size_t)units << span->spans->shift;
  size_t both = wr_extent_touched(span), dirty = span->dirty;
  rest->base = span->base + length;
  rest->dirty = dirty > length ? dirty - length : 0;
  span->dirty = wr_bits_min(dirty, length);
  rest->refused = span->refused;
  rest->user = NULL;
  set_units(rest, span->units - units);
  set_units(span, units);
  wr_counter_set(&span->touched, wr_bits_min(both, length));
  wr_counter_set(&rest->touched, both > length ? both - length : 0);
}

struct wr_span *wr_extent_cut(struct wr_spans *spans, struct wr_span *span, size_t units) {
  struct wr_span *rest = take_spare(spans);
  if (rest == NULL)
    return NULL;
  cut(span, (unsigned)units, rest);
  span->served = rest->served = false;
  rest->probed = span->probed;
  span->member.epoch = rest->member.epoch = spans->retain.epoch - 1;
  span->member.stamp = rest->member.stamp = spans->retain.clock++;
  wr_extent_record(spans, rest->base, wr_extent_unit(spans), rest);
  return rest;
}

struct wr_span *wr_extent_take(struct wr_spans *spans, unsigned class, size_t units) {
  unsigned at = wr_extent_next_class(spans->bins, spans->bin_bits, class);
  struct wr_span *span;
  if (at >= WR_RETAIN_CLASSES)
    return NULL;
  span = WR_SPAN_OF_LINK(spans->bins[at].front);
  if (span->units > units) {
    struct wr_span *rest = take_spare(spans);
    if (rest == NULL)
      return NULL;
    wr_extent_remove(spans, span);
    cut(span, (unsigned)units, rest);
    add_free(spans, rest);
  } else {
    wr_extent_remove(spans, span);
  }
  span->served = false;
  return span;
}

/* How many of `units` units are missing when the free range at the end of what is mapped counts. */
static size_t shortfall(struct wr_spans *spans, size_t units) {
  struct wr_span *last;
  size_t there = 0;
  if (spans->mortal)
    return units;
  wr_lock_take(&spans->lock);
  last = free_before(spans, spans->end);
  if (last != NULL && last->units < units)
    there = last->units;
  wr_lock_give(&spans->lock);
  return units - there;
}

bool wr_extent_is_last(struct wr_spans *spans, const struct wr_span *span) {
  const struct wr_span *last;
  const char *end;
  if (spans->mortal)
    return false;
  wr_lock_take(&spans->lock);
  last = spans->end != NULL ? free_before(spans, spans->end) : NULL;
  end = last != NULL ? last->base : spans->end;
  wr_lock_give(&spans->lock);
  return span->base + wr_extent_length(span) == end;
}

void wr_extent_forget(struct wr_spans *spans, struct wr_span *span) {
  wr_counter_bump(&spans->mapped, -wr_extent_length(span));
  give_spare(spans, span);
}

bool wr_extent_unmap(struct wr_spans *spans, struct wr_span *span) {
  size_t length = wr_extent_length(span);
  bool unmapped;
  /* Before somebody else can be given the range: whoever looks what lies beside his own would find
   * the descriptor, and it may be gone by then. */
  if (spans->mortal)
    wr_pagemap_clear(span->base, length);
  unmapped = wr_source_unmap(spans->source, span->base, length) == 0;
  if (unmapped && spans->mortal)
    wr_place_give(span->base, length);
  /* A process may have no more mappings, and unmapping can make two of one. */
  if (!unmapped && span->dirty > 0 && wr_source_purge(spans->source, span->base, span->dirty) == 0)
    span->dirty = 0;
  wr_lock_take(&spans->lock);
  if (unmapped) {
    wr_extent_forget(spans, span);
  } else if (span->dirty == 0) {
    wr_extent_join(spans, span);
  }
  wr_lock_give(&spans->lock);
  return unmapped;
}

void wr_extent_unmap_free(struct wr_spans *spans, size_t units) {
  unsigned class = wr_extent_class(units, &units);
  /* A buffer stays, and what is free there must be found by others meanwhile. */
  if (spans->range != NULL)
    return;
  for (;;) {
    struct wr_span *span = NULL;
    unsigned at;
    wr_lock_take(&spans->lock);
    at = wr_extent_next_class(spans->bins, spans->bin_bits, class);
    if (at < WR_RETAIN_CLASSES) {
      span = WR_SPAN_OF_LINK(spans->bins[at].front);
      wr_extent_remove(spans, span);
    }
    wr_lock_give(&spans->lock);
    if (span == NULL || !wr_extent_unmap(spans, span))
      return;
  }
}

/* Maps a length for an arena that comes and goes, where such lie if there is room. */
static int map_placed(struct wr_spans *spans, size_t length, void **address) {
  void *place = wr_place_take(length);
  int error = wr_source_map(spans->source, place, length, wr_extent_unit(spans), address);
  /* Where something else is, nothing is to be tried again. */
  if (error != 0 && place != NULL)
    wr_place_give(place, length);
  return error;
}

static int map_length(struct wr_spans *spans, size_t length, void **address) {
  void *hint = spans->end;
  if (spans->mortal && spans->range == NULL)
    return map_placed(spans, length, address);
  if (spans->range == NULL)
    hint = wr_place_around(hint, length);
  return wr_source_map(spans->source, hint, length, wr_extent_unit(spans), address);
}

/* Undoes a mapping that nobody has used. */
static void unmap_unused(const struct wr_spans *spans, void *address, size_t length) {
  if (wr_source_unmap(spans->source, address, length) == 0 && spans->mortal)
    wr_place_give(address, length);
}

static bool map(struct wr_spans *spans, size_t *length, void **address) {
  size_t eighth = wr_bits_down(wr_counter_read(&spans->mapped) / 8, wr_extent_unit(spans));
  size_t step = wr_bits_min(wr_bits_max(eighth, STEP_MIN), STEP_MAX);
  if (step > *length && map_length(spans, step, address) == 0)
    *length = step;
  else if (map_length(spans, *length, address) != 0)
    return false;
  if (spans->range == NULL && !wr_pagemap_cover(spans->map_meta, *address, *length)) {
    unmap_unused(spans, *address, *length);
    return false;
  }
  spans->end = (char *)*address + *length;
  return true;
}

bool wr_extent_grow(struct wr_spans *spans, size_t units, bool all) {
  size_t length = (all ? units : shortfall(spans, units)) << spans->shift;
  struct wr_span *span;
  void *address;
  if (!map(spans, &length, &address)) {
    wr_extent_unmap_free(spans, 1);
    length = units << spans->shift;
    if (!map(spans, &length, &address))
      return false;
  }
  wr_lock_take(&spans->lock);
  span = take_spare(spans);
  if (span != NULL) {
    wr_counter_bump(&spans->mapped, length);
    span->base = address;
    span->user = NULL;
    set_units(span, length >> spans->shift);
    wr_extent_join(spans, span);
  }
  wr_lock_give(&spans->lock);
  if (span == NULL)
    unmap_unused(spans, address, length);
  return true;
}
