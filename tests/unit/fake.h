/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page source for tests: memory of its own, pages of any size, a record of every call, and calls
 * that fail when a test says so. What is resident is what fake_touch wrote, so that tests know it
 * exactly; the memory is real and reads as zero after a purge. One at a time; thread-safe.
 */
#ifndef FAKE_H
#define FAKE_H

#include "arena.h"

enum fake_kind {
  FAKE_MAP,
  FAKE_UNMAP,
  FAKE_PURGE,
  FAKE_MOVE,
  FAKE_RESIDENT,
  FAKE_HUGE,
  FAKE_LOCK,
  FAKE_KINDS
};
/* For fake_fail and fake_calls: every kind. */
#define FAKE_ANY FAKE_KINDS

struct fake_call {
  enum fake_kind kind;
  char *address; /* where a mapping was made */
  size_t length;
  int error;
  bool huge;
};

#define FAKE_CALLS 4096

struct fake {
  size_t page;
  bool ignores_hints; /* every mapping stands apart from the one before */
  size_t skew;        /* so many pages behind a multiple of 64 KiB start mappings without a hint */
  bool loses;         /* a move that fails loses its target */
  bool locked;        /* everything counts as resident */
  bool swapped;       /* nothing counts as resident, though its contents are kept */
  char *stuck;        /* where purges of anything in so many bytes are refused with EINVAL */
  size_t stuck_length;
  int refusal;                       /* what every purge is refused with; 0: nothing */
  struct fake_call call[FAKE_CALLS]; /* the first so many since fake_forget */
  size_t calls;
};

extern struct fake fake;

/* The page sizes that weir knows, 0 at the end. */
extern const size_t fake_pages[];

/* Begins anew, with new memory. */
void fake_begin(size_t page);
/* Makes `source` one over the fake. */
void fake_source(struct wr_source *source);
/* Begins anew, and makes an arena. */
struct wr_arena *fake_arena(size_t page, size_t mark);
/* Makes the process's arena go on over the fake, for the rest of the process. */
void fake_default(void);

/* Of the calls of `kind` from now on, those numbered from `from` (1 is the next) fail, `count` of
 * them. */
void fake_fail(enum fake_kind kind, size_t from, size_t count);
/* Whether one of those has come. */
bool fake_failed(void);
/* Forgets the record of calls and what shall fail. */
void fake_forget(void);
/* How many calls of `kind` the record has. */
size_t fake_calls(enum fake_kind kind);
/* The record's call of `kind` with this number, from 0. */
const struct fake_call *fake_call(enum fake_kind kind, size_t number);

/* Takes a payload of `size` bytes, untouched; gives one back. Both check all of the spans. */
struct wr_span *fake_take(struct wr_spans *spans, size_t size);
void fake_give(struct wr_span *span);

/* Takes a slab's span and makes a heap its owner, which nobody looks into. */
struct wr_span *fake_slab(struct wr_spans *spans, unsigned units);
#define FAKE_OWNER ((uintptr_t)0x10000)

/* Writes to every byte of a range. */
void fake_touch(void *address, size_t length);
/* Bytes that are mapped, and that are mapped and were touched and not purged. */
size_t fake_mapped(void);
size_t fake_resident(void);

#endif
