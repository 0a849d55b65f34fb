/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retained spans, and giving them back: see keep.h.
 */
#include "keep.h"

#include <errno.h>

#include "os.h"

/* Free ranges of 256 MiB and more go back: address space may be limited, and memory is promised. */
#define UNMAP_BYTES ((size_t)256 << 20)
/* How many retained spans an aligned request looks at. */
#define ALIGNED_TRIES 8
/* How many spans are looked at to lengthen another, and to be lengthened. */
#define EXTEND_TRIES 16
#define JOIN_TRIES 64
/* After this many ranges that the kernel would not take back, the caller has waited enough. */
#define REFUSALS_MAX 16
/* How many spans are set aside before others get the lock. */
#define ASIDE_TURN 64
/* How often a thread waits for room that others may be faster to take. */
#define ROOM_TURNS 1000

#define SPAN_OF_MEMBER(m) WR_LIST_MEMBER(m, struct wr_span, member)

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

static void add_to(struct wr_list *list, struct wr_link *link, bool last) {
  if (last)
    wr_list_add_back(list, link);
  else
    wr_list_add_front(list, link);
}

/* Lists a span as the first of its class, or the last, to be taken again. */
WR_HOT static void add_retained(struct wr_spans *spans, struct wr_span *span, bool last) {
  unsigned kind = span->kind;
  if (!span->probed)
    add_to(&spans->doubtful, &span->doubt, last);
  wr_extent_set_owner(span, WR_OWNER_RETAINED);
  add_to(&spans->retained[kind], &span->link, last);
  if (!wr_bits_has(spans->retained_bits, kind))
    wr_bits_include(spans->retained_bits, kind);
}

WR_HOT static void remove_retained(struct wr_spans *spans, struct wr_span *span) {
  wr_list_remove(&spans->retained[span->kind], &span->link);
  if (!span->probed)
    wr_list_remove(&spans->doubtful, &span->doubt);
  wr_retain_remove(&spans->retain, &span->member, wr_extent_touched(span));
}

/* A span comes back that was lent. If its borrower has missed others meanwhile, it keeps it. */
static void end_loan(struct wr_spans *spans, struct wr_span *span) {
  if (span->borrower < span->kind && wr_retain_lacks(&spans->retain, span->borrower))
    span->kind = span->borrower;
  span->lent = false;
}

WR_HOT void wr_keep_add(struct wr_spans *spans, struct wr_span *span) {
  if (WR_UNLIKELY(span->lent))
    end_loan(spans, span);
  if (span->dirty == 0) {
    wr_extent_join(spans, span);
    return;
  }
  add_retained(spans, span, false);
  wr_retain_add(&spans->retain, &span->member, wr_extent_touched(span), span->served);
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
  remove_retained(spans, span);
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
    span->lent = true;
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
  part->lent = false;
  if (part->dirty == 0) {
    wr_extent_join(spans, part);
    return;
  }
  add_retained(spans, part, false);
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
    remove_retained(spans, span);
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
    remove_retained(spans, next);
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

/* The coldest span that can be lengthened, or NULL. */
static struct wr_span *find_to_join(const struct wr_spans *spans, size_t units, bool resident) {
  struct wr_link *link = spans->retain.once.back;
  for (int tries = 0; tries < JOIN_TRIES && link != NULL; tries++, link = link->newer) {
    struct wr_span *span = SPAN_OF_MEMBER(WR_LIST_MEMBER(link, struct wr_retain_member, age));
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
  remove_retained(spans, span);
  wr_extent_set_owner(span, WR_OWNER_LEAVING);
  lengthen(spans, span, units);
  span->served = false;
  /* If it was long enough, it may have stood in for a shorter one. */
  span->kind = (uint8_t) class;
  return span;
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
  length = wr_extent_touched(span);
  stamp = span->member.stamp;
  wr_lock_give(&spans->lock);
  error = wr_source_resident(spans->source, base, length, &end);
  wr_lock_take(&spans->lock);
  if (error == 0 && end < length && wr_extent_owner(span) == WR_OWNER_RETAINED &&
      span->base == base && span->member.stamp == stamp && wr_extent_touched(span) == length) {
    wr_counter_bump(&spans->retain.total, end - length);
    wr_keep_set_touched(spans, span, end);
    /* Nobody keeps that much address space for nothing. */
    large = end == 0 && wr_extent_length(span) >= UNMAP_BYTES;
    if (large) {
      remove_retained(spans, span);
      wr_extent_set_owner(span, WR_OWNER_LEAVING);
    }
  }
  wr_lock_give(&spans->lock);
  if (large)
    (void)wr_extent_unmap(spans, span);
  return true;
}

/* One call that gives up what is retained. */
struct round {
  size_t target;                    /* bytes that may stay */
  size_t given;                     /* how many bytes were given back */
  int refusals;                     /* how many spans the kernel refused */
  enum { UNDECIDED, NO, YES } anew; /* whether one that is set aside is to be tried */
};

/* The span to give up next, or NULL. Under the lock. */
static struct wr_retain_member *find_coldest(struct wr_spans *spans, struct round *round) {
  struct wr_retain_member *member = wr_retain_coldest(&spans->retain);
  if (member != NULL)
    return member;
  member = wr_retain_first_aside(&spans->aside);
  if (member != NULL && round->anew == UNDECIDED)
    round->anew = wr_retain_is_due(&spans->aside) ? YES : NO;
  return round->anew == YES ? member : NULL;
}

/* Sets coldest spans aside that the kernel has refused before. Whether there may be more of them.
 * Under the lock. */
static bool set_refused_aside(struct wr_spans *spans) {
  for (int turn = 0; turn < ASIDE_TURN; turn++) {
    struct wr_retain_member *member = wr_retain_coldest(&spans->retain);
    struct wr_span *span = member != NULL ? SPAN_OF_MEMBER(member) : NULL;
    if (span == NULL || !span->refused)
      return false;
    wr_retain_set_aside(&spans->retain, &spans->aside, member);
  }
  return true;
}

static bool is_over(const struct wr_spans *spans, const struct round *round) {
  /* A target of 0 means the address space of what is not resident, too. */
  return round->target == 0 || wr_retain_excess(&spans->retain, round->target) > 0;
}

/* Whether there is anything to give up: without that, the kernel need not be asked anything. */
static bool has_coldest(struct wr_spans *spans, struct round *round) {
  bool more, found;
  do {
    wr_lock_take(&spans->lock);
    more = set_refused_aside(spans);
    found = !more && is_over(spans, round) && find_coldest(spans, round) != NULL;
    wr_lock_give(&spans->lock);
  } while (more);
  return found;
}

/* Takes the coldest span out, if the retained bytes are over the target. *bytes is how many of it
 * to give back. Under the lock. */
static struct wr_span *take_coldest(struct wr_spans *spans, struct round *round, size_t *bytes) {
  size_t excess = wr_retain_excess(&spans->retain, round->target);
  struct wr_retain_member *member = is_over(spans, round) ? find_coldest(spans, round) : NULL;
  struct wr_span *span;
  if (member == NULL)
    return NULL;
  span = SPAN_OF_MEMBER(member);
  *bytes = wr_bits_min(wr_bits_up(excess, spans->page), wr_extent_touched(span));
  wr_retain_give_up(&spans->retain, &span->member, span->kind);
  if (round->target == wr_counter_read(&spans->retain.mark))
    wr_retain_press(&spans->retain);
  remove_retained(spans, span);
  wr_extent_set_owner(span, WR_OWNER_LEAVING);
  spans->leaving += wr_extent_touched(span);
  return span;
}

/* Puts back a span that take_coldest took out, as the next to go. */
static void return_coldest(struct wr_spans *spans, struct wr_span *span) {
  if (span->dirty == 0) {
    wr_extent_join(spans, span);
    return;
  }
  add_retained(spans, span, true);
  wr_retain_return(&spans->retain, &span->member, wr_extent_touched(span));
}

/* Puts back a span that the kernel refused to take. The others get their turn, if it may be that
 * one alone. */
static void return_refused(struct wr_spans *spans, struct wr_span *span, int error,
                           struct round *round) {
  bool again = span->refused;
  /* madvise(2): EINVAL for memory that is locked, ENOMEM for a range that somebody has unmapped. */
  bool alone = error == EINVAL || error == ENOMEM;
  round->refusals = alone && !again ? round->refusals + 1 : REFUSALS_MAX;
  wr_retain_refused(&spans->aside, again);
  span->refused = true;
  add_retained(spans, span, false);
  wr_retain_return(&spans->retain, &span->member, wr_extent_touched(span));
  wr_retain_set_aside(&spans->retain, &spans->aside, &span->member);
}

/* Notes that the kernel took a span. */
static void note_taken(struct wr_spans *spans, struct wr_span *span) {
  if (span->refused)
    wr_retain_accepted(&spans->aside);
  span->refused = false;
}

bool wr_keep_count_purge(struct wr_spans *spans, size_t bytes, int error) {
  wr_counter_add(error == 0 ? &spans->purges : &spans->purge_failures, 1);
  wr_counter_add(&spans->purged_bytes, error == 0 ? bytes : 0);
  return error == 0;
}

/* Gives back what is behind the first `left` bytes of a span, swapped out or not. 0 or errno. */
static int purge(struct wr_span *span, size_t left) {
  struct wr_spans *spans = span->spans;
  int error = wr_source_purge(spans->source, span->base + left, span->dirty - left);
  if (error == 0)
    span->dirty = left;
  (void)wr_keep_count_purge(spans, wr_extent_touched(span) - left, error);
  return error;
}

/* Without a limit nobody waits; and in a buffer nothing is given to the kernel. */
static bool is_waited_for(const struct wr_spans *spans) {
  return spans->limit != SIZE_MAX && spans->range == NULL;
}

void wr_keep_begin_giving(struct wr_spans *spans) {
  if (is_waited_for(spans))
    wr_lock_take(&spans->giving);
}

void wr_keep_end_giving(struct wr_spans *spans) {
  if (is_waited_for(spans))
    wr_lock_give(&spans->giving);
}

/* Gives up the coldest span, or the end of it, if the retained bytes are over the target, and notes
 * how many bytes that were, or that the kernel refused. False when there is nothing to give up. */
static bool give_up(struct wr_spans *spans, struct round *round) {
  /* In a buffer that is no system call, and nobody must find that memory is out meanwhile. */
  bool outside = spans->range == NULL;
  struct wr_span *span;
  size_t bytes, left;
  int error;
  wr_lock_take(&spans->lock);
  span = take_coldest(spans, round, &bytes);
  if (span == NULL) {
    wr_lock_give(&spans->lock);
    return false;
  }
  if (outside)
    wr_lock_give(&spans->lock);
  left = wr_extent_touched(span) - bytes;
  error = purge(span, left);
  if (outside)
    wr_lock_take(&spans->lock);
  spans->leaving -= wr_extent_touched(span);
  if (error == 0) {
    round->given += bytes;
    note_taken(spans, span);
    wr_keep_set_touched(spans, span, left);
    return_coldest(spans, span);
  } else {
    return_refused(spans, span, error, round);
  }
  wr_lock_give(&spans->lock);
  return true;
}

static void reduce(struct wr_spans *spans, struct round *round) {
  /* What other threads free meanwhile is their own business, or this might never end. */
  size_t bound = wr_counter_read(&spans->retain.total);
  bool more = true;
  while (more && round->refusals < REFUSALS_MAX && round->given <= bound &&
         has_coldest(spans, round)) {
    if (round->target != 0 && probe(spans))
      continue;
    wr_keep_begin_giving(spans);
    more = give_up(spans, round);
    wr_keep_end_giving(spans);
  }
  wr_extent_unmap_free(spans, UNMAP_BYTES >> spans->shift);
}

size_t wr_keep_reduce(struct wr_spans *spans, size_t target) {
  /* Somebody asks for it, so that what was refused before is worth a try. */
  struct round round = {.target = target, .anew = YES};
  reduce(spans, &round);
  return round.given;
}

/* Gives up what is retained over the target; false if the kernel took nothing of it. */
static bool make_less(struct wr_spans *spans, size_t target) {
  struct round round = {.target = target, .anew = YES};
  reduce(spans, &round);
  return round.given > 0 || round.refusals == 0;
}

bool wr_keep_make_room(struct wr_spans *spans, size_t bytes) {
  size_t retained, leaving, excess;
  for (int turn = 0; turn < ROOM_TURNS; turn++) {
    wr_lock_take(&spans->lock);
    retained = wr_counter_read(&spans->retain.total);
    leaving = spans->leaving;
    excess = wr_extent_allows(spans, bytes)
                 ? 0
                 : wr_extent_committed(spans) + spans->pending + bytes - spans->limit;
    wr_lock_give(&spans->lock);
    if (excess == 0)
      return true;
    if (excess <= retained)
      return make_less(spans, retained - excess);
    /* Slabs on their way back are in none of the sums, so a first turn says little. */
    if (excess > retained + leaving && turn > 0)
      return false;
    /* What other threads are giving back is about to be room. */
    wr_keep_begin_giving(spans);
    wr_keep_end_giving(spans);
  }
  return false;
}

void wr_keep_set_mark(struct wr_spans *spans, size_t mark) {
  wr_lock_take(&spans->lock);
  wr_counter_set(&spans->retain.mark, mark);
  wr_lock_give(&spans->lock);
  (void)wr_keep_reduce(spans, mark);
}

/* Gives the excess over the mark back, and what was refused before only when that is due. */
static WR_NOINLINE void give_excess(struct wr_spans *spans, size_t mark) {
  struct round round = {.target = mark, .anew = UNDECIDED};
  reduce(spans, &round);
}

WR_HOT void wr_keep_settle(struct wr_spans *spans) {
  size_t mark = wr_counter_read(&spans->retain.mark);
  if (WR_UNLIKELY(wr_retain_excess(&spans->retain, mark) > 0))
    give_excess(spans, mark);
}
