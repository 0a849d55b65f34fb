/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an arena's pages come from: a table of functions over the operating system, over a buffer,
 * or over whatever a test makes of it, and the counts of calls. The functions are called outside
 * every lock but the one of `map`, which holds the lock of the structure that grows.
 */
#ifndef WR_SOURCE_H
#define WR_SOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "counters.h"
#include "options.h"

struct wr_source;

struct wr_source_ops {
  /* Contracts as those of the same names in os.h; `length` is a multiple of wr_source.page. */
  int (*map)(struct wr_source *source, void *hint, size_t length, void **address);
  int (*unmap)(struct wr_source *source, void *address, size_t length);
  int (*purge)(struct wr_source *source, void *address, size_t length);
  int (*move)(struct wr_source *source, void *from, void *to, size_t length);
  int (*resident)(struct wr_source *source, void *address, size_t length, size_t *end);
  int (*huge)(struct wr_source *source, void *address, size_t length, bool huge);
  int (*lock)(struct wr_source *source, void *address, size_t length);
};

struct wr_source {
  const struct wr_source_ops *ops;
  size_t page;     /* bytes in a page, a power of two up to 64 KiB */
  enum wr_thp thp; /* what to ask for every mapping */
  bool lock;       /* lock every mapping */
  bool unlockable; /* the system has refused that; under the lock of the structure that grows */
  char *buffer;    /* a source over a buffer: what was not handed out of it */
  size_t left;     /* bytes of that */
  wr_counter maps;
  wr_counter unmaps;
  wr_counter purges;
  wr_counter advices;
  wr_counter probes;
  wr_counter moves;
  _Atomic(bool) immovable; /* the system cannot move pages */
  wr_counter mapped;       /* bytes */
};

/* The operating system as a source. */
void wr_source_init_os(struct wr_source *source, enum wr_thp thp);

/*
 * A buffer of somebody's as a source, in pages of `page` bytes: what is mapped comes from its
 * front, and is not zero; nothing can be unmapped or moved, purging does nothing, and all of it is
 * resident. No system call. `map` is called by one thread at a time.
 */
void wr_source_init_buffer(struct wr_source *source, char *buffer, size_t length, size_t page);

/*
 * Maps `length` bytes at a multiple of `alignment` (a power of two, at least a page), at `hint`
 * when that is free. Counts, and asks for huge pages as the source says. Returns 0 or errno.
 */
int wr_source_map(struct wr_source *source, void *hint, size_t length, size_t alignment,
                  void **address);
int wr_source_unmap(struct wr_source *source, void *address, size_t length);
int wr_source_purge(struct wr_source *source, void *address, size_t length);
/* Whether a move may be tried: not where the system cannot, nor more than a thousand times, because
 * each leaves up to two mappings more. */
bool wr_source_may_move(const struct wr_source *source);
int wr_source_move(struct wr_source *source, void *from, void *to, size_t length);
int wr_source_resident(struct wr_source *source, void *address, size_t length, size_t *end);

#endif
