/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans: see span.h. "The lock" here is wr_spans.lock.
 *
 * A taker looks, in this order, for a retained span of its class, for one of up to twice the size,
 * for a much larger one that nothing came back for yet and that may be split, for free address
 * space, and for new address space. Only the last makes a system call, outside the lock.
 */
#include "span.h"

#include <string.h>

#define BATCH 32
/* More than one operation can use while it holds the lock. */
#define SPARES_WANTED 4
/* Address space is mapped in steps of an eighth of what there is, between these. The upper bound
 * keeps what a process that locks its memory pays for in advance small. */
#define STEP_MIN ((size_t)256 << 10)
#define STEP_MAX ((size_t)1 << 20)
/* Free ranges of 256 MiB and more go back: address space may be limited, and memory is promised. */
#define UNMAP_UNITS ((size_t)(256 << 20) >> WR_UNIT_SHIFT)
/* How many retained spans an aligned request looks at. */
#define ALIGNED_TRIES 8
/* After this many ranges that the kernel would not take back, the caller has waited enough. */
#define REFUSALS_MAX 16

#define SPAN_OF_LINK(l) WR_LIST_MEMBER(l, struct wr_span, link)
#define SPAN_OF_MEMBER(m) WR_LIST_MEMBER(m, struct wr_span, member)

struct wr_span_batch {
  struct wr_span_batch *next;
  WR_ALIGNED(64) struct wr_span span[BATCH - 1];
};

void wr_spans_init(struct wr_spans *spans, struct wr_source *source, struct wr_meta *meta,
                   size_t mark) {
  spans->source = source;
  spans->page = source->page;
  spans->meta = meta;
  spans->end = NULL;
  wr_counter_set(&spans->retain.mark, mark);
}

/* Acquire: pairs with the release of wr_slab_make, for wr_spans_each. */
static uintptr_t owner_of(const struct wr_span *span) {
  return atomic_load_explicit(&span->owner, memory_order_acquire);
}

/* Release: a thread that reads the owner in wr_free_give with acquire sees the span's fields. */
static void set_owner(struct wr_span *span, uintptr_t owner) {
  atomic_store_explicit(&span->owner, owner, memory_order_release);
}

static size_t touched(const struct wr_span *span) {
  return wr_counter_read(&span->touched);
}

/* Descriptors. */

/* Makes sure that an operation under the lock finds descriptors. Without the lock. */
static bool stock_spares(struct wr_spans *spans) {
  struct wr_span_batch *batch;
  if (WR_LIKELY(wr_counter_read(&spans->spares) >= SPARES_WANTED))
    return true;
  batch = wr_meta_take(spans->meta, sizeof *batch, 64);
  if (batch == NULL)
    return false;
  wr_lock_take(&spans->lock);
  batch->next = spans->batches;
  spans->batches = batch;
  for (int i = BATCH - 2; i >= 0; i--) {
    batch->span[i].spans = spans;
    wr_list_add_front(&spans->spare, &batch->span[i].link);
  }
  wr_counter_add(&spans->spares, BATCH - 1);
  wr_lock_give(&spans->lock);
  return true;
}

/* NULL when other threads used up the stock, and then the operation starts again. */
static struct wr_span *take_spare(struct wr_spans *spans) {
  struct wr_link *link = spans->spare.front;
  if (link == NULL)
    return NULL;
  wr_list_remove(&spans->spare, link);
  wr_counter_sub(&spans->spares, 1);
  return SPAN_OF_LINK(link);
}

static void give_spare(struct wr_spans *spans, struct wr_span *span) {
  set_owner(span, WR_OWNER_NONE);
  wr_list_add_front(&spans->spare, &span->link);
  wr_counter_add(&spans->spares, 1);
}

/* Lists by class, with a bit for each that has members. */

static uint64_t bit_of(unsigned class) {
  return (uint64_t)1 << class % 64;
}

/* The first class from `class` on whose list has members, or WR_RETAIN_CLASSES. A bit is cleared
 * here, when its list is found empty, because a list that empties fills again soon. */
static unsigned next_class(const struct wr_list *lists, uint64_t *bits, unsigned class) {
  while (class < WR_RETAIN_CLASSES) {
    uint64_t left = bits[class / 64] & (UINT64_MAX << class % 64);
    if (left == 0) {
      class = (class / 64 + 1) * 64;
      continue;
    }
    class = class / 64 * 64 + wr_bits_lowest(left);
    if (!wr_list_is_empty(&lists[class]))
      break;
    bits[class / 64] &= ~bit_of(class);
  }
  return class;
}

static void set_units(struct wr_span *span, size_t units) {
  size_t rounded;
  unsigned class = wr_span_class(units, &rounded);
  span->units = (uint32_t)units;
  span->kind = (uint8_t)(rounded > units ? class - 1 : class);
}

/* Free address space. */

static void record_ends(struct wr_span *span) {
  wr_pagemap_set(span->base, WR_UNIT, span);
  wr_pagemap_set(span->base + wr_span_length(span) - WR_UNIT, WR_UNIT, span);
}

static void add_free(struct wr_spans *spans, struct wr_span *span) {
  unsigned bin = span->kind;
  set_owner(span, WR_OWNER_FREE);
  wr_counter_set(&span->touched, 0);
  span->dirty = 0;
  record_ends(span);
  wr_list_add_front(&spans->bins[bin], &span->link);
  spans->bin_bits[bin / 64] |= bit_of(bin);
}

static void remove_free(struct wr_spans *spans, struct wr_span *span) {
  wr_list_remove(&spans->bins[span->kind], &span->link);
  /* Or a part that is cut off it would be joined with it again. */
  set_owner(span, WR_OWNER_LEAVING);
}

/* The free span that ends at `address`, or begins there, or NULL. */
static struct wr_span *free_neighbour(struct wr_spans *spans, char *address, bool ends) {
  struct wr_span *span = wr_pagemap_find(ends ? address - 1 : address);
  if (span == NULL || span->spans != spans || owner_of(span) != WR_OWNER_FREE)
    return NULL;
  return (ends ? span->base + wr_span_length(span) : span->base) == address ? span : NULL;
}

/* Makes `span` free address space, joined with what is free beside it. */
static void join(struct wr_spans *spans, struct wr_span *span) {
  struct wr_span *before = free_neighbour(spans, span->base, true);
  struct wr_span *after = free_neighbour(spans, span->base + wr_span_length(span), false);
  if (after != NULL) {
    remove_free(spans, after);
    set_units(span, span->units + after->units);
    give_spare(spans, after);
  }
  if (before != NULL) {
    remove_free(spans, before);
    set_units(before, before->units + span->units);
    give_spare(spans, span);
    span = before;
  }
  add_free(spans, span);
}

/* Cuts what is behind `units` units off `span`, which is in no list, into `rest`. */
static void cut(struct wr_span *span, unsigned units, struct wr_span *rest) {
  size_t length = (size_t)units << WR_UNIT_SHIFT;
  size_t both = touched(span), dirty = span->dirty;
  rest->base = span->base + length;
  rest->dirty = dirty > length ? dirty - length : 0;
  span->dirty = wr_bits_min(dirty, length);
  rest->user = NULL;
  set_units(rest, span->units - units);
  set_units(span, units);
  wr_counter_set(&span->touched, wr_bits_min(both, length));
  wr_counter_set(&rest->touched, both > length ? both - length : 0);
}

/* Retained spans. */

static void add_retained(struct wr_spans *spans, struct wr_span *span) {
  unsigned kind = span->kind;
  if (!span->probed)
    wr_list_add_front(&spans->doubtful, &span->doubt);
  set_owner(span, WR_OWNER_RETAINED);
  wr_list_add_front(&spans->retained[kind], &span->link);
  if ((spans->retained_bits[kind / 64] & bit_of(kind)) == 0)
    spans->retained_bits[kind / 64] |= bit_of(kind);
}

static void remove_retained(struct wr_spans *spans, struct wr_span *span) {
  wr_list_remove(&spans->retained[span->kind], &span->link);
  if (!span->probed)
    wr_list_remove(&spans->doubtful, &span->doubt);
  wr_retain_remove(&spans->retain, &span->member, touched(span));
}

static struct wr_span *take_retained(struct wr_spans *spans, unsigned class, size_t units) {
  unsigned at = wr_list_is_empty(&spans->retained[class])
                    ? next_class(spans->retained, spans->retained_bits, class + 1)
                    : class;
  struct wr_span *span;
  if (at >= WR_RETAIN_CLASSES)
    return NULL;
  span = SPAN_OF_LINK(spans->retained[at].front);
  if (span->units > 2 * units)
    return NULL;
  remove_retained(spans, span);
  span->served = true;
  wr_counter_bump(&spans->hits, 1);
  return span;
}

/* Cuts `units` units off the front of a span that is in no list, for each part to go its own way:
 * returns the rest, or NULL when descriptors ran out. */
static struct wr_span *cut_off(struct wr_spans *spans, struct wr_span *span, size_t units) {
  struct wr_span *rest = take_spare(spans);
  if (rest == NULL)
    return NULL;
  cut(span, (unsigned)units, rest);
  span->served = rest->served = false;
  rest->probed = span->probed;
  span->member.epoch = rest->member.epoch = spans->retain.epoch - 1;
  span->member.stamp = rest->member.stamp = spans->retain.clock;
  wr_pagemap_set(rest->base, WR_UNIT, rest);
  return rest;
}

/* Puts a part that was cut off a span back: to the next to go, or to the free address space. */
static void leave(struct wr_spans *spans, struct wr_span *part) {
  wr_pagemap_set(part->base, WR_UNIT, part);
  if (part->dirty == 0) {
    join(spans, part);
    return;
  }
  add_retained(spans, part);
  wr_retain_return(&spans->retain, &part->member, touched(part));
}

/*
 * Splits a retained span that is more than twice as large and that nothing has come back for, so
 * that a large block which was touched once at start serves smaller ones (the preheating that
 * real-time guides advise).
 */
static struct wr_span *split_retained(struct wr_spans *spans, unsigned class, size_t units) {
  unsigned at = class;
  while ((at = next_class(spans->retained, spans->retained_bits, at + 1)) < WR_RETAIN_CLASSES) {
    struct wr_span *span = SPAN_OF_LINK(spans->retained[at].front);
    struct wr_span *rest;
    if (!wr_retain_is_once(&spans->retain, &span->member))
      continue;
    remove_retained(spans, span);
    rest = cut_off(spans, span, units);
    if (rest == NULL) {
      leave(spans, span);
      return NULL;
    }
    leave(spans, rest);
    wr_counter_bump(&spans->hits, 1);
    return span;
  }
  return NULL;
}

static struct wr_span *take_free(struct wr_spans *spans, unsigned class, size_t units) {
  unsigned at = next_class(spans->bins, spans->bin_bits, class);
  struct wr_span *span;
  if (at >= WR_RETAIN_CLASSES)
    return NULL;
  span = SPAN_OF_LINK(spans->bins[at].front);
  if (span->units > units) {
    struct wr_span *rest = take_spare(spans);
    if (rest == NULL)
      return NULL;
    remove_free(spans, span);
    cut(span, (unsigned)units, rest);
    add_free(spans, rest);
  } else {
    remove_free(spans, span);
  }
  span->served = false;
  return span;
}

static void count_fresh(struct wr_spans *spans, size_t bytes) {
  wr_counter_bump(&spans->fresh_commits, 1);
  wr_counter_bump(&spans->fresh_bytes, bytes);
}

size_t wr_spans_active(const struct wr_spans *spans) {
  return wr_counter_read(&spans->resident) - wr_counter_read(&spans->retain.total) +
         wr_counter_read(&spans->slab_active);
}

/* Called before the active bytes get fewer, and before the peak is read: so it is exact. */
static void count_active(struct wr_spans *spans) {
  wr_counter_peak(&spans->peak_active, wr_spans_active(spans));
}

/* Called before the resident bytes get fewer, and before the peak is read. */
static void count_committed(struct wr_spans *spans) {
  wr_counter_peak(&spans->peak_committed, wr_counter_read(&spans->resident) +
                                              wr_counter_read(&spans->slab_active) +
                                              wr_counter_read(&spans->meta->used));
}

/* For a payload, or a span that is or will be retained. Under the lock. */
static void set_touched(struct wr_spans *spans, struct wr_span *span, size_t bytes) {
  size_t before = touched(span);
  if (bytes < before)
    count_committed(spans);
  wr_counter_bump(&spans->resident, bytes - before);
  wr_counter_set(&span->touched, bytes);
}

/* How many of `units` units are missing when the free range at the end of what is mapped counts. */
static size_t shortfall(struct wr_spans *spans, size_t units) {
  struct wr_span *last;
  size_t there = 0;
  wr_lock_take(&spans->lock);
  last = free_neighbour(spans, spans->end, true);
  if (last != NULL && last->units < units)
    there = last->units;
  wr_lock_give(&spans->lock);
  return units - there;
}

/* Unmaps a span that is in no list. Without the lock. */
static void unmap(struct wr_spans *spans, struct wr_span *span) {
  size_t length = wr_span_length(span);
  wr_source_unmap(spans->source, span->base, length);
  wr_lock_take(&spans->lock);
  wr_counter_bump(&spans->mapped, -length);
  give_spare(spans, span);
  wr_lock_give(&spans->lock);
}

/* Unmaps every free range of at least `units` units. Without the lock. */
static void unmap_free(struct wr_spans *spans, size_t units) {
  unsigned class = wr_span_class(units, &units);
  for (;;) {
    struct wr_span *span = NULL;
    unsigned at;
    wr_lock_take(&spans->lock);
    at = next_class(spans->bins, spans->bin_bits, class);
    if (at < WR_RETAIN_CLASSES) {
      span = SPAN_OF_LINK(spans->bins[at].front);
      remove_free(spans, span);
    }
    wr_lock_give(&spans->lock);
    if (span == NULL)
      return;
    unmap(spans, span);
  }
}

static bool map(struct wr_spans *spans, size_t length, void **address) {
  size_t eighth = wr_bits_down(wr_counter_read(&spans->mapped) / 8, WR_UNIT);
  size_t step = wr_bits_min(wr_bits_max(eighth, STEP_MIN), STEP_MAX);
  if (step > length && wr_source_map(spans->source, spans->end, step, WR_UNIT, address) == 0)
    length = step;
  else if (wr_source_map(spans->source, spans->end, length, WR_UNIT, address) != 0)
    return false;
  if (!wr_pagemap_cover(spans->meta, *address, length)) {
    wr_source_unmap(spans->source, *address, length);
    return false;
  }
  spans->end = (char *)*address + length;
  return true;
}

/* Maps new address space and makes it free, `units` units or what is missing of them (`all` or
 * not). Without the lock, and with `growing`. */
static bool grow(struct wr_spans *spans, size_t units, bool all) {
  size_t missing = all ? units : shortfall(spans, units);
  struct wr_span *span;
  void *address;
  size_t length;
  if (!map(spans, missing << WR_UNIT_SHIFT, &address)) {
    /* A few small free ranges may stand in the way of a large one. */
    unmap_free(spans, 1);
    if (!map(spans, units << WR_UNIT_SHIFT, &address))
      return false;
  }
  length = (size_t)(spans->end - (char *)address);
  wr_lock_take(&spans->lock);
  span = take_spare(spans);
  if (span != NULL) {
    wr_counter_bump(&spans->mapped, length);
    span->base = address;
    span->user = NULL;
    set_units(span, length >> WR_UNIT_SHIFT);
    join(spans, span);
  }
  wr_lock_give(&spans->lock);
  if (span == NULL)
    wr_source_unmap(spans->source, address, length);
  return true;
}

/* One try at all that is there. Under the lock. */
static struct wr_span *find(struct wr_spans *spans, unsigned class, size_t units, bool split) {
  struct wr_span *span = take_retained(spans, class, units);
  if (span != NULL || !split)
    return span;
  wr_retain_missed(&spans->retain, class);
  span = split_retained(spans, class, units);
  return span != NULL ? span : take_free(spans, class, units);
}

/* A span of the class of `units` units or above, in no list, the lock held; NULL without the lock
 * when memory is out. */
static struct wr_span *obtain(struct wr_spans *spans, size_t wanted) {
  size_t units;
  unsigned class = wr_span_class(wanted, &units);
  struct wr_span *span;
  bool all = false;
  wr_lock_take(&spans->lock);
  span = find(spans, class, units, wr_counter_read(&spans->spares) >= 2);
  if (WR_LIKELY(span != NULL))
    return span;
  wr_lock_give(&spans->lock);

  wr_lock_take(&spans->growing);
  while (stock_spares(spans)) {
    /* Another thread may have grown, or given back, while this one waited. */
    wr_lock_take(&spans->lock);
    span = find(spans, class, units, true);
    if (span != NULL)
      break;
    wr_lock_give(&spans->lock);
    if (!grow(spans, units, all))
      break;
    /* If what was missing was mapped elsewhere, it is of no use. */
    all = true;
  }
  wr_lock_give(&spans->growing);
  return span;
}

/* A retained span of at least `size` bytes that happens to begin at a multiple of `alignment`, as
 * the span of an aligned payload does that was given back; the lock held. Else NULL, without. */
static struct wr_span *obtain_aligned(struct wr_spans *spans, size_t size, size_t alignment) {
  size_t units;
  unsigned class = wr_span_class(wr_bits_up(size, WR_UNIT) >> WR_UNIT_SHIFT, &units);
  struct wr_link *link;
  wr_lock_take(&spans->lock);
  link = spans->retained[class].front;
  for (int tries = 0; tries < ALIGNED_TRIES && link != NULL; tries++, link = link->older) {
    struct wr_span *span = SPAN_OF_LINK(link);
    if (((uintptr_t)span->base & (alignment - 1)) == 0) {
      remove_retained(spans, span);
      span->served = true;
      wr_counter_bump(&spans->hits, 1);
      return span;
    }
  }
  wr_lock_give(&spans->lock);
  return NULL;
}

/* Cuts what lies before the first multiple of `alignment`, and what is behind `size` bytes of it,
 * off a span that is in no list, and returns what is between; more, if descriptors ran out. */
static struct wr_span *cut_aligned(struct wr_spans *spans, struct wr_span *span, size_t size,
                                   size_t alignment) {
  size_t lead = (-(uintptr_t)span->base & (alignment - 1)) >> WR_UNIT_SHIFT;
  struct wr_span *rest;
  size_t units;
  if (lead > 0) {
    rest = cut_off(spans, span, lead);
    if (rest == NULL)
      return span;
    leave(spans, span);
    span = rest;
  }
  (void)wr_span_class(wr_bits_up(size, WR_UNIT) >> WR_UNIT_SHIFT, &units);
  rest = span->units > units ? cut_off(spans, span, units) : NULL;
  if (rest != NULL)
    leave(spans, rest);
  return span;
}

struct wr_span *wr_span_take(struct wr_spans *spans, size_t size, size_t alignment,
                             size_t *stale) {
  size_t page = spans->page;
  size_t usable = wr_bits_up(size, page);
  size_t lead, end, before, stale_end;
  struct wr_span *span = NULL;
  if (WR_UNLIKELY(alignment > WR_UNIT)) {
    span = obtain_aligned(spans, usable, alignment);
    if (span == NULL) {
      span = obtain(spans,
                    wr_bits_up(usable + alignment - WR_UNIT, WR_UNIT) >> WR_UNIT_SHIFT);
      if (span != NULL)
        span = cut_aligned(spans, span, usable, alignment);
    }
  } else {
    span = obtain(spans, wr_bits_up(usable, WR_UNIT) >> WR_UNIT_SHIFT);
  }
  if (span == NULL)
    return NULL;
  lead = -(uintptr_t)span->base & (alignment - 1);
  end = lead + usable;
  before = touched(span);
  span->user = span->base + lead;
  span->usable = usable;
  if (WR_UNLIKELY(before < end)) {
    count_fresh(spans, end - before);
    set_touched(spans, span, end);
  }
  stale_end = span->dirty;
  span->dirty = wr_bits_max(stale_end, end);
  /* The first unit of every span is recorded already. */
  if (lead >= WR_UNIT)
    wr_pagemap_set(span->user, WR_UNIT, span);
  set_owner(span, WR_OWNER_PAYLOAD);
  wr_lock_give(&spans->lock);
  *stale = stale_end > lead ? wr_bits_min(stale_end - lead, usable) : 0;
  return span;
}

struct wr_span *wr_span_take_slab(struct wr_spans *spans, unsigned units) {
  struct wr_span *span = obtain(spans, units);
  if (span == NULL)
    return NULL;
  set_owner(span, WR_OWNER_LEAVING);
  /* It may be longer than what was asked for. */
  wr_pagemap_set(span->base, wr_span_length(span), span);
  wr_counter_bump(&spans->resident, -touched(span));
  /* A slab knows only of what is touched. */
  wr_counter_set(&span->touched, span->dirty);
  wr_counter_add(&spans->slab_active, span->dirty);
  wr_lock_give(&spans->lock);
  return span;
}

void wr_span_touch_slab(struct wr_span *span, size_t end) {
  struct wr_spans *spans = span->spans;
  size_t before = touched(span);
  if (end <= before)
    return;
  wr_counter_set(&span->touched, end);
  wr_counter_add(&spans->slab_active, end - before);
  wr_counter_add(&spans->slab_fresh_commits, before == 0);
  wr_counter_add(&spans->slab_fresh_bytes, end - before);
}

/* Takes the coldest span out, if the retained bytes are over `target`. *bytes is how many of it
 * to give back. Under the lock. */
static struct wr_span *take_coldest(struct wr_spans *spans, size_t target, size_t *bytes) {
  size_t excess = wr_retain_excess(&spans->retain, target);
  struct wr_retain_member *member = wr_retain_coldest(&spans->retain);
  struct wr_span *span;
  /* A target of 0 means the address space of what is not resident, too. */
  if (member == NULL || (excess == 0 && target != 0))
    return NULL;
  span = SPAN_OF_MEMBER(member);
  *bytes = wr_bits_min(wr_bits_up(excess, spans->page), touched(span));
  wr_retain_give_up(&spans->retain, &span->member, span->kind);
  remove_retained(spans, span);
  set_owner(span, WR_OWNER_LEAVING);
  return span;
}

/* Puts back a span that take_coldest took out, as the next to go. */
static void return_coldest(struct wr_spans *spans, struct wr_span *span) {
  if (span->dirty == 0) {
    join(spans, span);
    return;
  }
  set_owner(span, WR_OWNER_RETAINED);
  if (!span->probed)
    wr_list_add_back(&spans->doubtful, &span->doubt);
  wr_list_add_back(&spans->retained[span->kind], &span->link);
  spans->retained_bits[span->kind / 64] |= bit_of(span->kind);
  wr_retain_return(&spans->retain, &span->member, touched(span));
}

/* Puts back a span that the kernel refused to take, as the last to go: the others get their turn. */
static void return_refused(struct wr_spans *spans, struct wr_span *span) {
  add_retained(spans, span);
  wr_retain_add(&spans->retain, &span->member, touched(span), true);
}

/*
 * Asks the kernel how much of the oldest doubtful span is resident: what was allocated and not used
 * is not, and must not push out what is. False when there is no such span. The span stays in its
 * lists meanwhile; if somebody takes it, the answer is of no use. Without the lock.
 */
static bool probe(struct wr_spans *spans) {
  struct wr_span *span;
  uint32_t stamp;
  size_t length, end;
  bool large = false;
  char *base;
  int error;
  wr_lock_take(&spans->lock);
  if (wr_list_is_empty(&spans->doubtful)) {
    wr_lock_give(&spans->lock);
    return false;
  }
  span = WR_LIST_MEMBER(spans->doubtful.back, struct wr_span, doubt);
  wr_list_remove(&spans->doubtful, &span->doubt);
  span->probed = true;
  base = span->base;
  length = touched(span);
  stamp = span->member.stamp;
  wr_lock_give(&spans->lock);
  error = wr_source_resident(spans->source, base, length, &end);
  wr_lock_take(&spans->lock);
  if (error == 0 && end < length && owner_of(span) == WR_OWNER_RETAINED && span->base == base &&
      span->member.stamp == stamp && touched(span) == length) {
    wr_counter_bump(&spans->retain.total, end - length);
    set_touched(spans, span, end);
    /* Nobody keeps that much address space for nothing. */
    large = end == 0 && span->units >= UNMAP_UNITS;
    if (large) {
      remove_retained(spans, span);
      set_owner(span, WR_OWNER_LEAVING);
    }
  }
  wr_lock_give(&spans->lock);
  if (large)
    unmap(spans, span);
  return true;
}

/* Counts what purging a range came to. Any thread, without the lock. */
static bool count_purge(struct wr_spans *spans, size_t bytes, int error) {
  wr_counter_add(error == 0 ? &spans->purges : &spans->purge_failures, 1);
  wr_counter_add(&spans->purged_bytes, error == 0 ? bytes : 0);
  return error == 0;
}

/* Gives back what is behind the first `left` bytes of a span, swapped out or not. */
static bool purge(struct wr_span *span, size_t left) {
  struct wr_spans *spans = span->spans;
  int error = wr_source_purge(spans->source, span->base + left, span->dirty - left);
  if (error == 0)
    span->dirty = left;
  return count_purge(spans, touched(span) - left, error);
}

/* Gives `bytes` of a span that take_coldest took out back. Whether the kernel took them. */
static bool give_back(struct wr_spans *spans, struct wr_span *span, size_t bytes) {
  size_t left = touched(span) - bytes;
  bool taken = purge(span, left);
  wr_lock_take(&spans->lock);
  if (taken) {
    set_touched(spans, span, left);
    return_coldest(spans, span);
  } else {
    return_refused(spans, span);
  }
  wr_lock_give(&spans->lock);
  return taken;
}

size_t wr_spans_reduce(struct wr_spans *spans, size_t target) {
  size_t given = 0;
  /* What other threads free meanwhile is their own business, or this might never end. */
  size_t bound = wr_counter_read(&spans->retain.total);
  int refusals = 0;
  while (refusals < REFUSALS_MAX && given <= bound) {
    struct wr_span *span;
    size_t bytes;
    if (target != 0 && wr_retain_excess(&spans->retain, target) > 0 && probe(spans))
      continue;
    wr_lock_take(&spans->lock);
    span = take_coldest(spans, target, &bytes);
    wr_lock_give(&spans->lock);
    if (span == NULL)
      break;
    if (give_back(spans, span, bytes))
      given += bytes;
    else
      refusals++;
  }
  unmap_free(spans, UNMAP_UNITS);
  return given;
}

void wr_spans_set_mark(struct wr_spans *spans, size_t mark) {
  wr_lock_take(&spans->lock);
  wr_counter_set(&spans->retain.mark, mark);
  wr_lock_give(&spans->lock);
  (void)wr_spans_reduce(spans, mark);
}

/* Retains a span that was in use and that no other thread can reach. Under the lock. */
static void keep(struct wr_spans *spans, struct wr_span *span) {
  if (span->dirty == 0) {
    join(spans, span);
    return;
  }
  add_retained(spans, span);
  wr_retain_add(&spans->retain, &span->member, touched(span), span->served);
}

void wr_spans_settle(struct wr_spans *spans) {
  size_t mark = wr_counter_read(&spans->retain.mark);
  if (WR_UNLIKELY(wr_retain_excess(&spans->retain, mark) > 0))
    (void)wr_spans_reduce(spans, mark);
}

bool wr_span_give(struct wr_span *span, const void *user) {
  struct wr_spans *spans = span->spans;
  bool live;
  wr_lock_take(&spans->lock);
  /* Of two threads that give the same block back, one finds that it is none any more. */
  live = owner_of(span) == WR_OWNER_PAYLOAD && span->user == user;
  if (WR_LIKELY(live)) {
    count_active(spans);
    span->probed = false;
    keep(spans, span);
  }
  wr_lock_give(&spans->lock);
  wr_spans_settle(spans);
  return live;
}

void wr_span_give_slab(struct wr_span *span) {
  struct wr_spans *spans = span->spans;
  wr_lock_take(&spans->lock);
  set_owner(span, WR_OWNER_LEAVING);
  span->user = NULL;
  span->dirty = touched(span);
  /* Slabs are touched page by page, so what is known of them is exact. */
  span->probed = true;
  count_active(spans);
  wr_counter_sub(&spans->slab_active, touched(span));
  wr_counter_bump(&spans->resident, touched(span));
  keep(spans, span);
  wr_lock_give(&spans->lock);
}

size_t wr_span_purge_slab(struct wr_span *span) {
  struct wr_spans *spans = span->spans;
  size_t bytes = touched(span);
  if (bytes == 0 ||
      !count_purge(spans, bytes, wr_source_purge(spans->source, span->base, bytes)))
    return 0;
  wr_counter_set(&span->touched, 0);
  wr_counter_sub(&spans->slab_active, bytes);
  return bytes;
}

bool wr_span_resize(struct wr_span *span, size_t size) {
  struct wr_spans *spans = span->spans;
  size_t lead = (size_t)(span->user - span->base);
  size_t usable = wr_bits_up(size, spans->page);
  size_t before = touched(span);
  if (usable > wr_span_length(span) - lead)
    return false;
  wr_lock_take(&spans->lock);
  if (lead + usable > before) {
    count_fresh(spans, lead + usable - before);
    set_touched(spans, span, lead + usable);
    span->dirty = wr_bits_max(span->dirty, lead + usable);
  }
  span->usable = usable;
  wr_lock_give(&spans->lock);
  return true;
}

void wr_spans_peaks(struct wr_spans *spans) {
  wr_lock_take(&spans->lock);
  count_active(spans);
  count_committed(spans);
  wr_lock_give(&spans->lock);
}

static bool is_used(const struct wr_span *span) {
  return owner_of(span) == WR_OWNER_PAYLOAD || owner_of(span) >= WR_OWNER_HEAP;
}

void wr_spans_each(struct wr_spans *spans,
                   void (*visit)(void *context, const struct wr_span *span), void *context) {
  wr_lock_take(&spans->lock);
  for (struct wr_span_batch *batch = spans->batches; batch != NULL; batch = batch->next)
    for (int i = 0; i < BATCH - 1; i++)
      if (is_used(&batch->span[i]))
        visit(context, &batch->span[i]);
  wr_lock_give(&spans->lock);
}

static void require(bool condition) {
  if (!condition)
    __builtin_trap();
}

static void check_lists(struct wr_list *lists, const uint64_t *bits, uintptr_t owner,
                        size_t *bytes, size_t *units) {
  for (unsigned class = 0; class < WR_RETAIN_CLASSES; class ++) {
    require((bits[class / 64] & bit_of(class)) != 0 || wr_list_is_empty(&lists[class]));
    for (struct wr_link *link = lists[class].front; link != NULL; link = link->older) {
      struct wr_span *span = SPAN_OF_LINK(link);
      require(owner_of(span) == owner);
      size_t least;
      require(span->kind == class && wr_span_class(span->units, &least) >= class);
      require(touched(span) <= span->dirty && span->dirty <= wr_span_length(span));
      require((owner == WR_OWNER_FREE) == (span->dirty == 0));
      require(wr_pagemap_find(span->base) == span);
      *bytes += touched(span);
      *units += span->units;
    }
  }
}

void wr_span_check(struct wr_spans *spans) {
  size_t retained = 0, none = 0, units = 0, aged = 0;
  wr_lock_take(&spans->lock);
  check_lists(spans->retained, spans->retained_bits, WR_OWNER_RETAINED, &retained, &units);
  check_lists(spans->bins, spans->bin_bits, WR_OWNER_FREE, &none, &units);
  require(none == 0 && retained == wr_counter_read(&spans->retain.total));
  for (int i = 0; i < 2; i++) {
    struct wr_link *link = i == 0 ? spans->retain.once.front : spans->retain.reused.front;
    for (; link != NULL; link = link->older) {
      struct wr_retain_member *member = WR_LIST_MEMBER(link, struct wr_retain_member, age);
      require(wr_retain_is_once(&spans->retain, member) == (i == 0));
      aged += touched(SPAN_OF_MEMBER(member));
    }
  }
  require(aged == retained);
  for (struct wr_link *link = spans->doubtful.front; link != NULL; link = link->older) {
    struct wr_span *span = WR_LIST_MEMBER(link, struct wr_span, doubt);
    require(!span->probed && owner_of(span) == WR_OWNER_RETAINED);
  }
  for (struct wr_span_batch *batch = spans->batches; batch != NULL; batch = batch->next)
    for (int i = 0; i < BATCH - 1; i++) {
      uintptr_t owner = owner_of(&batch->span[i]);
      if (is_used(&batch->span[i]) || owner == WR_OWNER_LEAVING)
        units += batch->span[i].units;
      if (owner == WR_OWNER_PAYLOAD || owner == WR_OWNER_LEAVING)
        retained += touched(&batch->span[i]);
    }
  require(retained == wr_counter_read(&spans->resident));
  require(units << WR_UNIT_SHIFT == wr_counter_read(&spans->mapped));
  wr_lock_give(&spans->lock);
}
