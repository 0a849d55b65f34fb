/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans: see span.h.
 */
#include "span.h"

#include <errno.h>
#include <string.h>

#include "check.h"
#include "place.h"

void wr_spans_init(struct wr_spans *spans, struct wr_source *source, struct wr_meta *meta,
                   size_t mark) {
  spans->source = source;
  spans->page = source->page;
  spans->shift = WR_UNIT_SHIFT;
  spans->limit = SIZE_MAX;
  spans->meta = spans->map_meta = meta;
  wr_counter_set(&spans->retain.mark, mark);
}

static void count_fresh(struct wr_spans *spans, size_t bytes) {
  wr_counter_bump(&spans->fresh_commits, 1);
  wr_counter_bump(&spans->fresh_bytes, bytes);
}

/* One try at all that is there but a retained span of the class. Under the lock. */
static struct wr_span *find(struct wr_spans *spans, unsigned class, size_t units) {
  struct wr_span *span = wr_keep_split(spans, class, units);
  if (span == NULL)
    span = wr_keep_join(spans, class, units);
  return span != NULL ? span : wr_extent_take(spans, class, units);
}

/* As find, with new address space. With the lock, or NULL without it. */
static struct wr_span *grow(struct wr_spans *spans, unsigned class, size_t units) {
  struct wr_span *span = NULL;
  bool all = false;
  wr_lock_take(&spans->growing);
  while (wr_extent_stock(spans)) {
    /* Another thread may have grown, or given back, while this one waited. */
    wr_lock_take(&spans->lock);
    span = wr_keep_take(spans, class, units);
    if (span == NULL)
      span = find(spans, class, units);
    if (span != NULL)
      break;
    wr_lock_give(&spans->lock);
    if (!wr_extent_grow(spans, units, all))
      break;
    /* If what was missing was mapped elsewhere, it is of no use. */
    all = true;
  }
  wr_lock_give(&spans->growing);
  return span;
}

/* A span of the class of `units` units or above, in no list, the lock held; NULL without the lock
 * when memory is out. */
WR_HOT static struct wr_span *obtain(struct wr_spans *spans, size_t wanted) {
  size_t units;
  unsigned class = wr_extent_class(wanted, &units);
  struct wr_span *span;
  wr_lock_take(&spans->lock);
  span = wr_keep_take(spans, class, units);
  if (WR_LIKELY(span != NULL))
    return span;
  wr_retain_missed(&spans->retain, class);
  /* Cutting takes descriptors. */
  if (wr_counter_read(&spans->spares) >= 2)
    span = find(spans, class, units);
  if (span != NULL)
    return span;
  wr_lock_give(&spans->lock);
  return grow(spans, class, units);
}

/* Cuts what lies before the first multiple of `alignment`, and what is behind `size` bytes of it,
 * off a span that is in no list, and returns what is between; more, if descriptors ran out. */
static struct wr_span *cut_aligned(struct wr_spans *spans, struct wr_span *span, size_t size,
                                   size_t alignment) {
  size_t lead = (-(uintptr_t)span->base & (alignment - 1)) >> spans->shift;
  struct wr_span *rest;
  size_t units;
  if (lead > 0) {
    rest = wr_extent_cut(spans, span, lead);
    if (rest == NULL)
      return span;
    wr_keep_leave(spans, span);
    span = rest;
  }
  (void)wr_extent_class(wr_extent_units(spans, size), &units);
  rest = span->units > units ? wr_extent_cut(spans, span, units) : NULL;
  if (rest != NULL)
    wr_keep_leave(spans, rest);
  return span;
}

/* As obtain, for `size` bytes at a multiple of `alignment`, which is over a unit. */
static struct wr_span *obtain_aligned(struct wr_spans *spans, size_t size, size_t alignment) {
  size_t units;
  unsigned class = wr_extent_class(wr_extent_units(spans, size), &units);
  struct wr_span *span;
  wr_lock_take(&spans->lock);
  span = wr_keep_take_aligned(spans, class, alignment);
  if (span != NULL)
    return span;
  wr_lock_give(&spans->lock);
  span = obtain(spans, wr_extent_units(spans, size + alignment - wr_extent_unit(spans)));
  return span != NULL ? cut_aligned(spans, span, size, alignment) : NULL;
}

/* Puts a span back of which the limit allows no more to be touched. Gives the lock up. */
static WR_COLD struct wr_span *refuse(struct wr_spans *spans, struct wr_span *span) {
  wr_keep_leave(spans, span);
  wr_lock_give(&spans->lock);
  return NULL;
}

WR_HOT struct wr_span *wr_span_take(struct wr_spans *spans, size_t size, size_t alignment,
                                    size_t *stale) {
  size_t page = spans->page;
  size_t length = wr_bits_up(size, page), usable = length;
  size_t lead, end, before, stale_end;
  struct wr_span *span;
  if (WR_UNLIKELY((alignment - 1) >> spans->shift != 0))
    span = obtain_aligned(spans, length, alignment);
  else
    span = obtain(spans, wr_extent_units(spans, length));
  if (span == NULL)
    return NULL;
  if (WR_LIKELY(alignment <= WR_SPAN_SKEW)) {
    lead = wr_span_skew(span, length - size);
    usable -= lead;
  } else {
    lead = -(uintptr_t)span->base & (alignment - 1);
  }
  end = lead + usable;
  before = wr_extent_touched(span);
  if (WR_UNLIKELY(before < end)) {
    if (!wr_extent_allows(spans, end - before))
      return refuse(spans, span);
    /* Its end may have been given up, and is missed as much as all of it would be. */
    if (before > 0)
      wr_retain_missed(&spans->retain, span->kind);
    count_fresh(spans, end - before);
    wr_keep_set_touched(spans, span, end);
  }
  span->user = span->base + lead;
  span->usable = usable;
  stale_end = span->dirty;
  span->dirty = wr_bits_max(stale_end, end);
  /* The first unit of every span is recorded already. */
  if (WR_UNLIKELY(lead > 0) && lead >= wr_extent_unit(spans))
    wr_extent_record(spans, span->user, wr_extent_unit(spans), span);
  wr_extent_set_owner(span, WR_OWNER_PAYLOAD);
  wr_lock_give(&spans->lock);
  *stale = stale_end > lead ? wr_bits_min(stale_end - lead, usable) : 0;
  return span;
}

/* Where in its span the first block of a slab begins. Behind the last one there need be no space.
 * A slab of many blocks does with one less, if it could begin in a few places only. */
static size_t lead_of(const struct wr_span *span, size_t block, size_t spacing) {
  size_t length = wr_extent_length(span) + spacing, step = block + spacing;
  size_t left = length % step;
  if (spacing == 0)
    return 0;
  if (left < 16 * WR_SPAN_SKEW && length >= 8 * step)
    left += step;
  return wr_span_skew(span, wr_bits_min(left, 4095));
}

struct wr_span *wr_span_take_slab(struct wr_spans *spans, unsigned units, size_t block,
                                  size_t spacing) {
  struct wr_span *span = obtain(spans, units);
  if (span == NULL)
    return NULL;
  if (!wr_extent_allows(spans, span->dirty - wr_extent_touched(span)))
    return refuse(spans, span);
  wr_extent_set_owner(span, WR_OWNER_LEAVING);
  /* It may be longer than what was asked for. */
  wr_extent_record(spans, span->base, wr_extent_length(span), span);
  wr_counter_bump(&spans->resident, -wr_extent_touched(span));
  /* A slab knows only of what is touched. */
  wr_counter_set(&span->touched, span->dirty);
  wr_counter_add(&spans->slab_active, span->dirty);
  span->base += lead_of(span, block, spacing);
  wr_lock_give(&spans->lock);
  return span;
}

/* Counts `bytes` more of slabs, if the limit allows them. */
static bool charge_slab(struct wr_spans *spans, size_t bytes) {
  bool limited = spans->limit != SIZE_MAX, allowed;
  if (limited)
    wr_lock_take(&spans->lock);
  allowed = wr_extent_allows(spans, bytes);
  if (allowed)
    wr_counter_add(&spans->slab_active, bytes);
  if (limited)
    wr_lock_give(&spans->lock);
  return allowed;
}

bool wr_span_touch_slab(struct wr_span *span, size_t end) {
  struct wr_spans *spans = span->spans;
  size_t before = wr_extent_touched(span);
  if (end <= before)
    return true;
  if (!charge_slab(spans, end - before))
    return false;
  wr_counter_set(&span->touched, end);
  wr_counter_add(&spans->slab_fresh_commits, before == 0);
  wr_counter_add(&spans->slab_fresh_bytes, end - before);
  return true;
}

/* As wr_span_give, but the excess stays. */
WR_INLINE bool give(struct wr_span *span, const void *user) {
  struct wr_spans *spans = span->spans;
  bool live;
  wr_lock_take(&spans->lock);
  /* Of two threads that give the same block back, one finds that it is none any more. */
  live = wr_extent_owner(span) == WR_OWNER_PAYLOAD && span->user == user;
  if (WR_LIKELY(live)) {
    wr_keep_count_active(spans);
    span->probed = false;
    wr_keep_add(spans, span);
  }
  wr_lock_give(&spans->lock);
  return live;
}

WR_HOT bool wr_span_give(struct wr_span *span, const void *user) {
  bool live = give(span, user);
  wr_settle(span->spans);
  return live;
}

void wr_span_give_slab(struct wr_span *span) {
  struct wr_spans *spans = span->spans;
  wr_lock_take(&spans->lock);
  wr_extent_set_owner(span, WR_OWNER_LEAVING);
  span->base = wr_extent_base(span);
  span->user = NULL;
  span->due = 0;
  span->dirty = wr_extent_touched(span);
  /* Slabs are touched page by page, so what is known of them is exact. */
  span->probed = true;
  wr_keep_count_active(spans);
  wr_counter_sub(&spans->slab_active, wr_extent_touched(span));
  wr_counter_bump(&spans->resident, wr_extent_touched(span));
  wr_keep_add(spans, span);
  wr_lock_give(&spans->lock);
}

bool wr_span_purge_slab(struct wr_span *span) {
  struct wr_spans *spans = span->spans;
  size_t bytes = wr_extent_touched(span);
  bool taken;
  if (bytes == 0)
    return true;
  taken = wr_settle_count_purge(spans, bytes,
                                wr_source_purge(spans->source, wr_extent_base(span), bytes));
  if (taken) {
    wr_counter_set(&span->touched, 0);
    wr_counter_sub(&spans->slab_active, bytes);
  }
  return taken;
}

/* One try with what is there. *may: whether more should be mapped for it. */
static bool extend(struct wr_spans *spans, struct wr_span *span, size_t units, bool *may) {
  bool extended;
  wr_lock_take(&spans->lock);
  *may = wr_keep_may_extend(spans, units);
  extended = *may && wr_keep_extend(spans, span, units);
  wr_lock_give(&spans->lock);
  return extended;
}

/* Makes the address range of a payload `units` units long, by cutting or by what was cut off it
 * before. Whether it has at least so many now. */
static bool shorten(struct wr_spans *spans, struct wr_span *span, size_t units) {
  if (!wr_extent_stock(spans))
    return false;
  wr_lock_take(&spans->lock);
  wr_keep_count_active(spans);
  wr_keep_shorten(spans, span, units);
  wr_lock_give(&spans->lock);
  return span->units >= units;
}

/* Makes the address range of a payload at least `units` units long, where it is. */
static bool lengthen(struct wr_spans *spans, struct wr_span *span, size_t units) {
  bool extended, may;
  /* As long as the class, so that a later request of this size finds it. */
  (void)wr_extent_class(units, &units);
  if ((span->due & WR_DUE_TAIL) != 0 && span->whole >= units && shorten(spans, span, units))
    return true;
  extended = extend(spans, span, units, &may);
  if (extended || !may)
    return extended;
  wr_lock_take(&spans->growing);
  extended = wr_extent_is_last(spans, span) && wr_extent_stock(spans) &&
             wr_extent_grow(spans, units - span->units, false) && extend(spans, span, units, &may);
  wr_lock_give(&spans->growing);
  return extended;
}

bool wr_span_resize(struct wr_span *span, size_t size) {
  struct wr_spans *spans = span->spans;
  size_t lead = (size_t)(span->user - span->base);
  size_t end = wr_bits_up(lead + size, spans->page), before;
  bool allowed;
  if (size > WR_SPAN_MAX ||
      (end > wr_extent_length(span) && !lengthen(spans, span, wr_extent_units(spans, end))))
    return false;
  wr_lock_take(&spans->lock);
  before = wr_extent_touched(span);
  allowed = end <= before || wr_extent_allows(spans, end - before);
  if (allowed && end > before) {
    count_fresh(spans, end - before);
    wr_keep_set_touched(spans, span, end);
    span->dirty = wr_bits_max(span->dirty, end);
  }
  if (allowed)
    span->usable = end - lead;
  wr_lock_give(&spans->lock);
  return allowed;
}

bool wr_span_shrink(struct wr_span *span, size_t size) {
  struct wr_spans *spans = span->spans;
  size_t lead = (size_t)(span->user - span->base);
  size_t end = wr_bits_up(lead + size, spans->page), units;
  (void)wr_extent_class(wr_extent_units(spans, end), &units);
  if (units >= span->units || !shorten(spans, span, units) || span->units > units)
    return false;
  wr_lock_take(&spans->lock);
  span->usable = end - lead;
  wr_lock_give(&spans->lock);
  wr_settle(spans);
  return true;
}

/* Notes that the pages of a payload have become another's. */
static void note_move(struct wr_spans *spans, struct wr_span *from, struct wr_span *to,
                      size_t bytes) {
  wr_lock_take(&spans->lock);
  wr_keep_count_active(spans);
  /* What is before the block's first page, or was behind it once, is there still. */
  if ((size_t)(from->user - from->base) < spans->page && from->dirty <= bytes) {
    wr_keep_set_touched(spans, from, 0);
    from->dirty = 0;
  }
  /* A loop that resizes will come back for it. */
  to->served = true;
  wr_lock_give(&spans->lock);
}

/* Gives up a payload of whose span the first `bytes` are not mapped any more. */
static void lose(struct wr_spans *spans, struct wr_span *span, size_t bytes) {
  wr_counter_sub(&spans->source->mapped, bytes);
  (void)wr_source_unmap(spans->source, span->base + bytes, wr_extent_length(span) - bytes);
  wr_lock_take(&spans->lock);
  wr_keep_count_active(spans);
  wr_keep_set_touched(spans, span, 0);
  span->due = 0;
  wr_extent_forget(spans, span);
  wr_lock_give(&spans->lock);
}

/* Makes a payload of `size` bytes begin so far from its span's start, and keeps its end. Whether
 * there was room for that, without which it is as it was. */
static bool set_lead(struct wr_span *span, size_t lead, size_t size) {
  struct wr_spans *spans = span->spans;
  char *user = span->user;
  size_t usable = span->usable;
  wr_lock_take(&spans->lock);
  span->user = span->base + lead;
  span->usable = (size_t)(user + usable - span->user);
  wr_lock_give(&spans->lock);
  if (span->usable >= size || wr_span_resize(span, size))
    return true;
  wr_lock_take(&spans->lock);
  span->user = user;
  span->usable = usable;
  wr_lock_give(&spans->lock);
  return false;
}

void *wr_span_slide(struct wr_span *span, size_t size) {
  char *user = span->user;
  size_t usable = span->usable, page = span->spans->page, lead = (size_t)(user - span->base);
  if (lead == 0 || lead >= page || size > WR_SPAN_MAX ||
      wr_bits_up(size, page) > wr_extent_length(span) || !set_lead(span, 0, size))
    return NULL;
  return memmove(span->user, user, usable);
}

int wr_span_move(struct wr_span *from, struct wr_span *to, size_t size) {
  struct wr_spans *spans = from->spans;
  size_t skew = (uintptr_t)from->user & (spans->page - 1);
  size_t bytes = skew + from->usable, there;
  int error = wr_source_may_move(spans->source)
                  ? wr_source_resident(spans->source, to->base, spans->page, &there)
                  : ENOMEM;
  if (error != 0)
    return error;
  /* Not touched and yet resident: then it is locked. */
  if (there > 0 || !set_lead(to, skew, size))
    return EAGAIN;
  error = wr_source_move(spans->source, from->user - skew, to->base, bytes);
  if (error == 0)
    note_move(spans, from, to, bytes);
  else if (error == ENOTRECOVERABLE)
    lose(spans, to, bytes);
  return error;
}

void *wr_span_take_own(struct wr_spans *spans, size_t size) {
  size_t stale;
  struct wr_span *span = wr_span_take(spans, size, spans->page, &stale);
  void *address;
  if (span == NULL)
    return NULL;
  address = span->user;
  wr_lock_take(&spans->lock);
  /* So it is no block, and is not in the way of anything. */
  span->user = NULL;
  wr_extent_set_owner(span, WR_OWNER_LEAVING);
  wr_lock_give(&spans->lock);
  return memset(address, 0, size);
}

static void each_span(struct wr_spans *spans, void (*visit)(struct wr_span *span)) {
  for (struct wr_span_batch *batch = spans->batches; batch != NULL; batch = batch->next)
    for (int i = 0; i < WR_SPAN_BATCH; i++)
      if (wr_extent_owner(&batch->span[i]) != WR_OWNER_NONE)
        visit(&batch->span[i]);
}

static void give_any(struct wr_span *span) {
  if (wr_extent_owner(span) >= WR_OWNER_HEAP)
    wr_span_give_slab(span);
  else if (wr_extent_owner(span) == WR_OWNER_PAYLOAD)
    give(span, span->user);
}

void wr_spans_reset(struct wr_spans *spans) {
  each_span(spans, give_any);
  wr_settle(spans);
}

/* In the fields of payloads, whatever the span was: nobody looks at it any more. */
static void begin_run(struct wr_span *span) {
  span->base = wr_extent_base(span);
  span->usable = wr_extent_length(span);
  span->user = span->base;
}

static void end_run(struct wr_span *span) {
  struct wr_span *next = wr_extent_find(span->spans, span->base + wr_extent_length(span));
  if (next != NULL)
    next->user = NULL;
}

/* Of spans that follow one another without a gap, the first has the length of all. */
static void sum_run(struct wr_span *span) {
  const struct wr_span *last = span;
  while (span->user != NULL &&
         (last = wr_extent_find(span->spans, last->base + wr_extent_length(last))) != NULL)
    span->usable += wr_extent_length(last);
}

static void forget(struct wr_span *span) {
  if (span->user != NULL)
    wr_pagemap_clear(span->base, span->usable);
}

void wr_spans_forget(struct wr_spans *spans) {
  each_span(spans, begin_run);
  each_span(spans, end_run);
  each_span(spans, sum_run);
  each_span(spans, forget);
}

static void unmap(struct wr_span *span) {
  struct wr_source *source = span->spans->source;
  if (span->user == NULL)
    return;
  if (wr_source_unmap(source, span->base, span->usable) == 0)
    wr_place_give(span->base, span->usable);
  else
    /* A process may have no more mappings, and unmapping can make two of one; then the memory at
     * least goes. */
    (void)wr_source_purge(source, span->base, span->usable);
}

void wr_spans_unmap(struct wr_spans *spans) {
  each_span(spans, unmap);
}

size_t wr_spans_committed(struct wr_spans *spans) {
  size_t committed;
  wr_lock_take(&spans->lock);
  wr_keep_count_active(spans);
  wr_keep_count_committed(spans);
  committed = wr_extent_committed(spans);
  wr_lock_give(&spans->lock);
  return committed;
}

static bool is_used(const struct wr_span *span) {
  return wr_extent_owner(span) == WR_OWNER_PAYLOAD || wr_extent_owner(span) >= WR_OWNER_HEAP;
}

void wr_spans_each(struct wr_spans *spans, void (*visit)(void *context, const struct wr_span *span),
                   void *context) {
  wr_lock_take(&spans->lock);
  for (struct wr_span_batch *batch = spans->batches; batch != NULL; batch = batch->next)
    for (int i = 0; i < WR_SPAN_BATCH; i++)
      if (is_used(&batch->span[i]))
        visit(context, &batch->span[i]);
  wr_lock_give(&spans->lock);
}

static void check_lists(const struct wr_spans *spans, const struct wr_list *lists,
                        const uint64_t *bits, uintptr_t owner, size_t *bytes, size_t *units) {
  for (unsigned class = 0; class < WR_RETAIN_CLASSES; class ++) {
    wr_check_require(wr_bits_has(bits, class) || wr_list_is_empty(&lists[class]));
    for (struct wr_link *link = lists[class].front; link != NULL; link = link->older) {
      struct wr_span *span = WR_SPAN_OF_LINK(link);
      wr_check_require(wr_extent_owner(span) == owner);
      size_t least;
      wr_check_require(span->kind == class && wr_extent_class(span->units, &least) >= class);
      wr_check_require(wr_extent_touched(span) <= span->dirty &&
                       span->dirty <= wr_extent_length(span));
      wr_check_require((owner == WR_OWNER_FREE) == (span->dirty == 0));
      wr_check_require(wr_extent_at(spans, span->base) == span);
      *bytes += wr_extent_touched(span);
      *units += span->units;
    }
  }
}

void wr_span_check(struct wr_spans *spans) {
  size_t retained = 0, none = 0, units = 0, aged = 0;
  wr_lock_take(&spans->lock);
  check_lists(spans, spans->retained, spans->retained_bits, WR_OWNER_RETAINED, &retained, &units);
  check_lists(spans, spans->bins, spans->bin_bits, WR_OWNER_FREE, &none, &units);
  wr_check_require(none == 0 && retained == wr_counter_read(&spans->retain.total));
  for (int i = 0; i < 2; i++) {
    struct wr_link *link = i == 0 ? spans->retain.once.front : spans->retain.reused.front;
    for (; link != NULL; link = link->older) {
      struct wr_retain_member *member = WR_LIST_MEMBER(link, struct wr_retain_member, age);
      wr_check_require(wr_retain_is_once(&spans->retain, member) == (i == 0));
      aged += wr_extent_touched(WR_LIST_MEMBER(member, struct wr_span, member));
    }
  }
  for (const struct wr_link *link = spans->aside.list.front; link != NULL; link = link->older) {
    const struct wr_retain_member *member = WR_LIST_MEMBER(link, struct wr_retain_member, age);
    const struct wr_span *span = WR_LIST_MEMBER(member, struct wr_span, member);
    if (link == spans->aside.list.front || link == spans->aside.list.back)
      continue;
    wr_check_require(span->refused);
    aged += wr_extent_touched(span);
  }
  wr_check_require(aged == retained);
  for (struct wr_link *link = spans->doubtful.front; link != NULL; link = link->older) {
    struct wr_span *span = WR_LIST_MEMBER(link, struct wr_span, doubt);
    wr_check_require(!span->probed && wr_extent_owner(span) == WR_OWNER_RETAINED);
  }
  for (struct wr_span_batch *batch = spans->batches; batch != NULL; batch = batch->next)
    for (int i = 0; i < WR_SPAN_BATCH; i++) {
      uintptr_t owner = wr_extent_owner(&batch->span[i]);
      if (is_used(&batch->span[i]) || owner == WR_OWNER_LEAVING)
        units += batch->span[i].units;
      if (owner == WR_OWNER_PAYLOAD || owner == WR_OWNER_LEAVING)
        retained += wr_extent_touched(&batch->span[i]);
    }
  wr_check_require(retained == wr_counter_read(&spans->resident));
  wr_check_require(units << spans->shift == wr_counter_read(&spans->mapped));
  wr_lock_give(&spans->lock);
}
