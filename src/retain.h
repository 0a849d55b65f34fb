/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much free memory to keep, and which to give up first: pure policy, without pages, locks or
 * system calls. The members are retained spans; the lock of their arena guards everything here.
 *
 * Two lists, each in the order of freeing. A span that was served again since its memory was fresh
 * stands in `reused`, any other in `once`. The coldest of `once` goes first, so that a burst of
 * blocks that are freed for the first time cannot push out what a loop keeps coming back for, even
 * if the loop sleeps meanwhile (the idea of 2Q: Johnson and Shasha, VLDB 1994). If a span of a
 * class that was given up ahead of an older reused one is then missed, that was a wrong guess:
 * every reused span is demoted behind the others and has to earn its place again. So a new working
 * set displaces an old one after one miss.
 *
 * That a reused span keeps its class is what makes a loop of equal requests find all its memory
 * again, whatever others do meanwhile. Where hardly two requests are alike, each of many classes
 * keeps some, and what is kept grows far over what is ever used at once. From half of the mark on,
 * a class that has none left borrows a larger one's; and keeps it, if it misses more before that
 * comes back. So each miss still adds spans to the class that had too few, and there is an end to
 * that.
 *
 * If the classes together want more than the mark allows all the same, what one class gives up
 * another misses, or the end of one span another's. When memory is given up and missed by turns,
 * the policy is loose: spans do not keep their class and are cut to what is wanted, and `once` has
 * them all. A burst that is given up at the end and missed when the next begins does not count for
 * much: it is missed many times in a row.
 */
#ifndef WR_RETAIN_H
#define WR_RETAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bits.h"
#include "counters.h"
#include "list.h"

#define WR_RETAIN_CLASSES 256
#define WR_RETAIN_WORDS (WR_RETAIN_CLASSES / 64)

struct wr_retain {
  struct wr_list once;
  struct wr_list reused;
  uint32_t epoch;   /* a member with another epoch stands in `once` */
  uint32_t clock;   /* counts spans added */
  wr_counter mark;  /* bytes; SIZE_MAX keeps all. Written under the lock, read anywhere */
  wr_counter total; /* bytes of all members. Written under the lock, read anywhere */
  wr_counter peak;  /* largest total, with what was about to be given back */
  uint64_t jumped[WR_RETAIN_WORDS];  /* a bit a class: given up ahead of an older reused span */
  uint64_t lacking[WR_RETAIN_WORDS]; /* a bit a class: missed a span since it borrowed one last */
  bool given_up;                     /* something was, for the mark, since the last miss */
  uint8_t pressure;                  /* how much was given up and missed by turns of late */
  uint8_t hits;                      /* while loose: counts those up to WR_RETAIN_HITS */
  bool loose;                        /* spans do not keep their class */
};

/* Each miss after something was given up adds so much to the pressure; each other takes 1 off, and
 * so do so many requests of a class that is there. */
#define WR_RETAIN_HITS 64
#define WR_RETAIN_TURN 8
#define WR_RETAIN_LOOSE 16 /* the policy becomes loose, until there is no pressure left */
#define WR_RETAIN_PRESSURE_MAX 255

/*
 * What the kernel will not take back (memory that is locked, before Linux 5.18; what a sandbox
 * forbids) is set aside: it serves as before, but is not given up, and so costs no call again. One
 * of it is tried anew now and then, since the lock may have ended: at first at the next chance
 * (something is to be given up, and nothing else is there), and after each further refusal half as
 * often, down to every 65th. Zero is none.
 */
struct wr_retain_aside {
  /* Between two ends that are no members, so that the neighbours of each are links: whoever removes
   * one as if it stood in `once` or `reused` changes nothing of those. */
  struct wr_list list;
  struct wr_link ends[2];
  unsigned wait; /* chances that pass after a refusal */
  unsigned left; /* of these */
};

#define WR_RETAIN_WAIT_MAX 64

/* What retain.c knows of a span; part of struct wr_span. */
struct wr_retain_member {
  struct wr_link age;
  uint32_t epoch;
  uint32_t stamp; /* wr_retain.clock when it was added */
};

/* Whether the member was never served again since it was fresh, or has lost its place. */
WR_INLINE bool wr_retain_is_once(const struct wr_retain *retain,
                                 const struct wr_retain_member *member) {
  return member->epoch != retain->epoch;
}

/* Counts `bytes` more. */
WR_INLINE void wr_retain_grow(struct wr_retain *retain, size_t bytes) {
  size_t total = wr_counter_read(&retain->total) + bytes;
  wr_counter_set(&retain->total, total);
  wr_counter_peak(&retain->peak, total);
}

/* Adds a member of `bytes` that was just freed. `reused`: it was served from retained memory. */
WR_INLINE void wr_retain_add(struct wr_retain *retain, struct wr_retain_member *member,
                             size_t bytes, bool reused) {
  reused = reused && !retain->loose;
  member->stamp = retain->clock++;
  member->epoch = reused ? retain->epoch : retain->epoch - 1;
  wr_list_add_front(reused ? &retain->reused : &retain->once, &member->age);
  wr_retain_grow(retain, bytes);
}

/* Puts a member back where it is the next to go, with `bytes` left of it. */
void wr_retain_return(struct wr_retain *retain, struct wr_retain_member *member, size_t bytes);

/* Takes a member out, of which `bytes` were retained. */
WR_INLINE void wr_retain_remove(struct wr_retain *retain, struct wr_retain_member *member,
                                size_t bytes) {
  wr_list_remove(wr_retain_is_once(retain, member) ? &retain->once : &retain->reused, &member->age);
  wr_counter_bump(&retain->total, -bytes);
}

/* Bytes over `target`. */
WR_INLINE size_t wr_retain_excess(const struct wr_retain *retain, size_t target) {
  size_t total = wr_counter_read(&retain->total);
  return total > target ? total - target : 0;
}

/* Whether a class without a span may use a larger reused one, which stays its own class's. */
WR_INLINE bool wr_retain_lends(const struct wr_retain *retain) {
  return wr_counter_read(&retain->total) > wr_counter_read(&retain->mark) / 2;
}

/* Notes that `class` borrows a span. */
WR_INLINE void wr_retain_borrow(struct wr_retain *retain, unsigned class) {
  wr_bits_exclude(retain->lacking, class);
}

/* A span comes back that `class` has borrowed: whether it shall be that class's own. */
WR_INLINE bool wr_retain_lacks(const struct wr_retain *retain, unsigned class) {
  return wr_bits_has(retain->lacking, class);
}

/* The member to give up next, or NULL. */
struct wr_retain_member *wr_retain_coldest(const struct wr_retain *retain);

/* `member`, of span class `class`, is being given up: remembers whether an older one was kept. */
void wr_retain_give_up(struct wr_retain *retain, const struct wr_retain_member *member,
                       unsigned class);

/* Sets a member aside, as the last of those to be tried. */
void wr_retain_set_aside(struct wr_retain *retain, struct wr_retain_aside *aside,
                         struct wr_retain_member *member);

/* The member that was set aside first, or NULL. */
struct wr_retain_member *wr_retain_first_aside(const struct wr_retain_aside *aside);

/* There is a chance to try what is set aside: whether it is due. */
bool wr_retain_is_due(struct wr_retain_aside *aside);

/* The kernel refused a member; `again`: one that was set aside. */
void wr_retain_refused(struct wr_retain_aside *aside, bool again);
/* It took one that was set aside. */
void wr_retain_accepted(struct wr_retain_aside *aside);

/* Something was given up because of the mark. */
WR_INLINE void wr_retain_press(struct wr_retain *retain) {
  retain->given_up = true;
}

/* While the policy is loose: a span of the class that was wanted was there. */
void wr_retain_hit(struct wr_retain *retain);

/* A span of `class` was wanted and not there. Before anything else is tried for it. */
void wr_retain_missed(struct wr_retain *retain, unsigned class);

#endif
