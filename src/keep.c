/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retained spans: see keep.h.
 */
#include "keep.h"

/* How many retained spans an aligned request looks at. */
#define ALIGNED_TRIES 8
/* How many spans are looked at to lengthen another, and to be lengthened. */
#define EXTEND_TRIES 16
#define JOIN_TRIES 64

size_t wr_keep_active(const struct wr_spans *spans) {
  /* In this order, so that a reader without the lock at worst counts what has just left. */
  size_t retained = wr_counter_read(&spans->retain.total);
  size_t resident = wr_counter_read(&spans->resident);
  return (resident > retained ? resident - retained : 0) + wr_counter_read(&spans->slab_active);
}

WR_HOT void wr_keep_count_active(struct wr_spans *spans) {
  wr_counter_peak(&spans->peak_active, wr_keep_active(spans));
}

void wr_keep_count_committed(struct wr_spans *spans) {
  wr_counter_peak(&spans->peak_committed, wr_extent_committed(spans));
}

void wr_keep_set_touched(struct wr_spans *spans, struct wr_span *span, size_t bytes) {
  size_t before = wr_extent_touched(span);
  if (bytes < before)
    wr_keep_count_committed(spans);
  wr_counter_bump(&spans->resident, bytes - before);
  wr_counter_set(&span->touched, bytes);
}

/* The smallest span that is somewhat larger than `units` units, or NULL: one that nothing has come
 * back for yet, or where classes lend, any. Only the one freed last of each class is looked at. */
static struct wr_span *find_larger(struct wr_spans *spans, unsigned class, size_t units) {
  /* What is too much is lost while the span is in use; but where spans keep their class, a span
   * that is split never serves its old one again. Below a limit and in a buffer, what is lost is
   * missed. */
  bool tight = spans->retain.loose || spans->limit != SIZE_MAX || spans->range != NULL;
  bool lend = wr_retain_lends(&spans->retain);
  size_t most = tight ? units + units / 8 : 2 * units - 1;
  for (;;) {
    struct wr_span *span;
    class = wr_extent_next_class(spans->retained, spans->retained_bits, class + 1);
    if (class >= WR_RETAIN_CLASSES)
      return NULL;
    span = WR_SPAN_OF_LINK(spans->retained[class].front);
    if (span->units > most)
      return NULL;
    if (lend || wr_retain_is_once(&spans->retain, &span->member))
      return span;
  }
}

/* Where spans do not keep their class, that one was there for a class counts, and it is cut to
 * `units` units, if there is a descriptor for the rest. */
static WR_NOINLINE struct wr_span *fit(struct wr_spans *spans, struct wr_span *span, size_t units) {
  struct wr_span *rest;
  wr_retain_hit(&spans->retain);
  rest = span->units > units ? wr_extent_cut(spans, span, units) : NULL;
  if (rest != NULL)
    wr_keep_leave(spans, rest);
  return span;
}

/* Takes a span out of the lists to be used again. */
static void take_out(struct wr_spans *spans, struct wr_span *span) {
  wr_keep_unlist(spans, span);
  span->served = true;
  wr_counter_bump(&spans->hits, 1);
}

WR_HOT struct wr_span *wr_keep_take(struct wr_spans *spans, unsigned class, size_t units) {
  struct wr_link *last = spans->retained[class].front;
  struct wr_span *span = last != NULL ? WR_SPAN_OF_LINK(last) : find_larger(spans, class, units);
  bool lent;
  if (span == NULL)
    return NULL;
  lent = last == NULL && !wr_retain_is_once(&spans->retain, &span->member);
  take_out(spans, span);
  /* A larger one belongs to this class from now on, so that the span freed last is found first; but
   * one that is lent returns to its own. */
  if (!lent) {
    span->kind = (uint8_t) class;
  } else {
    span->due = WR_DUE_LOAN;
    span->borrower = (uint8_t) class;
    wr_retain_borrow(&spans->retain, class);
  }
  return WR_UNLIKELY(spans->retain.loose) ? fit(spans, span, units) : span;
}

struct wr_span *wr_keep_take_aligned(struct wr_spans *spans, unsigned class, size_t alignment) {
  struct wr_link *link = spans->retained[class].front;
  for (int tries = 0; tries < ALIGNED_TRIES && link != NULL; tries++, link = link->older) {
    struct wr_span *span = WR_SPAN_OF_LINK(link);
    if (((uintptr_t)span->base & (alignment - 1)) == 0) {
      take_out(spans, span);
      if (spans->retain.loose)
        wr_retain_hit(&spans->retain);
      return span;
    }
  }
  return NULL;
}

void wr_keep_leave(struct wr_spans *spans, struct wr_span *part) {
  part->due = 0;
  if (part->dirty == 0) {
    wr_extent_join(spans, part);
    return;
  }
  wr_keep_list(spans, part, false);
  wr_retain_return(&spans->retain, &part->member, wr_extent_touched(part));
}

struct wr_span *wr_keep_split(struct wr_spans *spans, unsigned class, size_t units) {
  unsigned at = class;
  while ((at = wr_extent_next_class(spans->retained, spans->retained_bits, at + 1)) <
         WR_RETAIN_CLASSES) {
    struct wr_span *span = WR_SPAN_OF_LINK(spans->retained[at].front);
    struct wr_span *rest;
    if (!wr_retain_is_once(&spans->retain, &span->member))
      continue;
    wr_keep_unlist(spans, span);
    rest = wr_extent_cut(spans, span, units);
    if (rest == NULL) {
      wr_keep_leave(spans, span);
      return NULL;
    }
    wr_keep_leave(spans, rest);
    wr_counter_bump(&spans->hits, 1);
    return span;
  }
  return NULL;
}

/* Whether the span may become part of the one before it. */
static bool is_spare(const struct wr_spans *spans, const struct wr_span *span, bool resident) {
  uintptr_t owner = wr_extent_owner(span);
  return (owner == WR_OWNER_FREE && !resident) ||
         (owner == WR_OWNER_RETAINED && wr_retain_is_once(&spans->retain, &span->member));
}

/* Whether enough of that lies behind the span to make it `units` units long, and the limit allows
 * what absorb counts as touched by that; only what is retained counts, if it shall be `resident`.
 */
static bool has_room(const struct wr_spans *spans, const struct wr_span *span, size_t units,
                     bool resident) {
  const struct wr_span *next = span;
  size_t length = span->units;
  size_t touched = wr_extent_touched(span), reach = touched;
  for (int tries = 0; length < units && tries < EXTEND_TRIES; tries++) {
    next = wr_extent_find(spans, next->base + wr_extent_length(next));
    if (next == NULL || !is_spare(spans, next, resident))
      return false;
    if (wr_extent_touched(next) > 0)
      reach = (length << spans->shift) + wr_extent_touched(next);
    touched += wr_extent_touched(next);
    length += next->units;
  }
  return length >= units && wr_extent_allows(spans, reach - touched);
}

/* Makes the span behind part of this one. What lies untouched between the two counts as touched. */
static void absorb(struct wr_spans *spans, struct wr_span *span, struct wr_span *next) {
  size_t length = wr_extent_length(span);
  size_t touched = wr_extent_touched(next), dirty = next->dirty;
  if (wr_extent_owner(next) == WR_OWNER_RETAINED)
    wr_keep_unlist(spans, next);
  else
    wr_extent_remove(spans, next);
  span->probed = next->probed;
  wr_keep_set_touched(spans, next, 0);
  wr_extent_append(spans, span, next);
  if (touched > 0)
    wr_keep_set_touched(spans, span, length + touched);
  if (dirty > 0)
    span->dirty = length + dirty;
}

bool wr_keep_may_extend(const struct wr_spans *spans, size_t units) {
  unsigned class = wr_extent_class(units, &units);
  return spans->retain.loose || wr_list_is_empty(&spans->retained[class]);
}

/* Lengthens a span that has room to `units` units. */
static void lengthen(struct wr_spans *spans, struct wr_span *span, size_t units) {
  struct wr_span *rest;
  while (span->units < units)
    absorb(spans, span, wr_extent_find(spans, span->base + wr_extent_length(span)));
  /* The descriptor of what was absorbed is there for the rest. */
  rest = span->units > units ? wr_extent_cut(spans, span, units) : NULL;
  if (rest != NULL)
    wr_keep_leave(spans, rest);
}

bool wr_keep_extend(struct wr_spans *spans, struct wr_span *span, size_t units) {
  bool room = has_room(spans, span, units, false);
  if (room)
    lengthen(spans, span, units);
  return room;
}

/* Joins a payload that shrank with what was cut off it then, or with what lies there now, if that
 * is spare. */
static void regain(struct wr_spans *spans, struct wr_span *span) {
  struct wr_span *next = wr_extent_find(spans, span->base + wr_extent_length(span));
  bool served = span->served;
  if (next != NULL && wr_extent_owner(next) == WR_OWNER_RETAINED &&
      next->member.stamp == span->tail &&
      wr_extent_allows(spans, wr_extent_length(span) - wr_extent_touched(span)))
    absorb(spans, span, next);
  if (span->units < span->whole)
    (void)wr_keep_extend(spans, span, span->whole);
  if (span->units == span->whole)
    span->kind = span->whole_kind;
  span->served = served;
  /* Of the payload nothing is known, whatever is of what it joined. */
  span->probed = false;
  span->due &= (uint8_t)~WR_DUE_TAIL;
  spans->tails--;
}

/* Sees to what is due of a payload that comes back. If its borrower has missed other spans since it
 * was lent, it keeps it. */
static WR_NOINLINE void discharge(struct wr_spans *spans, struct wr_span *span) {
  if ((span->due & WR_DUE_TAIL) != 0)
    regain(spans, span);
  if (span->due == WR_DUE_LOAN && span->borrower < span->kind &&
      wr_retain_lacks(&spans->retain, span->borrower))
    span->kind = span->borrower;
  span->due = 0;
}

WR_HOT void wr_keep_add(struct wr_spans *spans, struct wr_span *span) {
  if (WR_UNLIKELY(span->due != 0))
    discharge(spans, span);
  if (span->dirty == 0) {
    wr_extent_join(spans, span);
    return;
  }
  wr_keep_list(spans, span, false);
  wr_retain_add(&spans->retain, &span->member, wr_extent_touched(span), span->served);
}

/* Whether so much may be cut off a payload as its tail. */
static bool may_cut(const struct wr_spans *spans, size_t units) {
  size_t mark = wr_counter_read(&spans->retain.mark);
  return spans->limit == SIZE_MAX && spans->range == NULL && spans->tails < WR_KEEP_TAILS &&
         units <= mark / 8 * 3 >> spans->shift;
}

void wr_keep_shorten(struct wr_spans *spans, struct wr_span *span, size_t units) {
  bool served = span->served;
  unsigned whole, kind;
  struct wr_span *rest;
  if ((span->due & WR_DUE_TAIL) != 0)
    regain(spans, span);
  whole = span->units;
  kind = span->kind;
  rest = whole > units && may_cut(spans, whole - units) ? wr_extent_cut(spans, span, units) : NULL;
  if (rest == NULL)
    return;
  rest->due = 0;
  rest->probed = false;
  span->served = rest->served = served;
  if (rest->dirty == 0) {
    wr_extent_join(spans, rest);
  } else {
    wr_keep_list(spans, rest, true);
    wr_retain_add(&spans->retain, &rest->member, wr_extent_touched(rest), served);
  }
  span->whole = whole;
  span->whole_kind = (uint8_t)kind;
  span->tail = rest->member.stamp;
  span->due |= WR_DUE_TAIL;
  spans->tails++;
}

/* The coldest span that can be lengthened, or NULL. */
static struct wr_span *find_to_join(const struct wr_spans *spans, size_t units, bool resident) {
  struct wr_link *link = spans->retain.once.back;
  for (int tries = 0; tries < JOIN_TRIES && link != NULL; tries++, link = link->newer) {
    struct wr_span *span = WR_KEEP_OF_MEMBER(WR_LIST_MEMBER(link, struct wr_retain_member, age));
    if (has_room(spans, span, units, resident))
      return span;
  }
  return NULL;
}

struct wr_span *wr_keep_join(struct wr_spans *spans, unsigned class, size_t units) {
  struct wr_span *span;
  if (!spans->retain.loose)
    return NULL;
  span = find_to_join(spans, units, true);
  if (span == NULL)
    span = find_to_join(spans, units, false);
  if (span == NULL)
    return NULL;
  wr_keep_unlist(spans, span);
  wr_extent_set_owner(span, WR_OWNER_LEAVING);
  lengthen(spans, span, units);
  span->served = false;
  /* If it was long enough, it may have stood in for a shorter one. */
  span->kind = (uint8_t) class;
  return span;
}
