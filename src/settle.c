/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving memory back: see settle.h.
 */
#include "settle.h"

#include <errno.h>

#include "os.h"

/* Free ranges of 256 MiB and more go back: address space may be limited, and memory is promised. */
#define UNMAP_BYTES ((size_t)256 << 20)
/* After this many ranges that the kernel would not take back, the caller has waited enough. */
#define REFUSALS_MAX 16
/* How many spans are set aside before others get the lock. */
#define ASIDE_TURN 64
/* How often a thread waits for room that others may be faster to take. */
#define ROOM_TURNS 1000

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
      wr_keep_unlist(spans, span);
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
    struct wr_span *span = member != NULL ? WR_KEEP_OF_MEMBER(member) : NULL;
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
  span = WR_KEEP_OF_MEMBER(member);
  *bytes = wr_bits_min(wr_bits_up(excess, spans->page), wr_extent_touched(span));
  wr_retain_give_up(&spans->retain, &span->member, span->kind);
  if (round->target == wr_counter_read(&spans->retain.mark))
    wr_retain_press(&spans->retain);
  wr_keep_unlist(spans, span);
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
  wr_keep_list(spans, span, true);
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
  wr_keep_list(spans, span, false);
  wr_retain_return(&spans->retain, &span->member, wr_extent_touched(span));
  wr_retain_set_aside(&spans->retain, &spans->aside, &span->member);
}

/* Notes that the kernel took a span. */
static void note_taken(struct wr_spans *spans, struct wr_span *span) {
  if (span->refused)
    wr_retain_accepted(&spans->aside);
  span->refused = false;
}

bool wr_settle_count_purge(struct wr_spans *spans, size_t bytes, int error) {
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
  (void)wr_settle_count_purge(spans, wr_extent_touched(span) - left, error);
  return error;
}

/* Without a limit nobody waits; and in a buffer nothing is given to the kernel. */
static bool is_waited_for(const struct wr_spans *spans) {
  return spans->limit != SIZE_MAX && spans->range == NULL;
}

void wr_settle_begin_giving(struct wr_spans *spans) {
  if (is_waited_for(spans))
    wr_lock_take(&spans->giving);
}

void wr_settle_end_giving(struct wr_spans *spans) {
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
    wr_settle_begin_giving(spans);
    more = give_up(spans, round);
    wr_settle_end_giving(spans);
  }
  wr_extent_unmap_free(spans, UNMAP_BYTES >> spans->shift);
}

size_t wr_settle_to(struct wr_spans *spans, size_t target) {
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

bool wr_settle_make_room(struct wr_spans *spans, size_t bytes) {
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
    wr_settle_begin_giving(spans);
    wr_settle_end_giving(spans);
  }
  return false;
}

void wr_settle_set_mark(struct wr_spans *spans, size_t mark) {
  wr_lock_take(&spans->lock);
  wr_counter_set(&spans->retain.mark, mark);
  wr_lock_give(&spans->lock);
  (void)wr_settle_to(spans, mark);
}

/* Gives the excess over the mark back, and what was refused before only when that is due. */
static WR_NOINLINE void give_excess(struct wr_spans *spans, size_t mark) {
  struct round round = {.target = mark, .anew = UNDECIDED};
  reduce(spans, &round);
}

WR_HOT void wr_settle(struct wr_spans *spans) {
  size_t mark = wr_counter_read(&spans->retain.mark);
  if (WR_UNLIKELY(wr_retain_excess(&spans->retain, mark) > 0))
    give_excess(spans, mark);
}
