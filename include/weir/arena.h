/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas: heaps of their own, each with its own mark, limit, memory and statistics, beside the
 * default arena that weir_malloc and its like serve from. A part of a program (a node, a camera
 * driver) that takes its memory from an arena can be budgeted, measured, emptied and taken down by
 * itself.
 *
 * `arena` may be NULL in every function but weir_arena_reset and weir_arena_destroy, and is the
 * default arena then. Every function may be called from any thread at any time, as those of
 * weir/weir.h, but for what weir_arena_reset and weir_arena_destroy say. Each thread has a heap of
 * its own in each arena that it uses, so that small blocks are taken and given back without a lock.
 *
 * A block of any arena may be given to weir_free, weir_realloc and weir_usable_size (and to free,
 * realloc and malloc_usable_size, where libweir_malloc is the process's malloc), by any thread.
 */
#ifndef WEIR_ARENA_H
#define WEIR_ARENA_H

#include <stdbool.h>
#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wr_arena weir_arena_t;

/** A limit that allows everything. */
#define WEIR_LIMIT_NONE SIZE_MAX

/** The mark of an arena whose options do not name one: that of the default arena. */
#define WEIR_RETAIN_DEFAULT ((size_t)-2)

/** Bytes of an arena's name that are kept, with the final 0. */
#define WEIR_ARENA_NAME_MAX 32

/** What an arena is to be. Begin with WEIR_ARENA_OPTIONS_INIT and change what shall differ. */
typedef struct {
  size_t size;      /**< sizeof(weir_arena_options_t), as the caller was compiled */
  const char *name; /**< in reports: UTF-8, copied, at most WEIR_ARENA_NAME_MAX - 1 bytes (whole
                         characters; each byte that is part of none becomes a question mark, as do
                         control characters); NULL: "" */
  size_t retain;    /**< the mark in bytes, WEIR_RETAIN_UNLIMITED or WEIR_RETAIN_DEFAULT; at least
                         `prefault` is kept, whatever it says */
  size_t limit;     /**< hard limit in bytes on what may be resident of the arena: blocks, free
                         memory kept, and its own structures; or WEIR_LIMIT_NONE */
  size_t prefault;  /**< bytes made resident at creation, for blocks of any size */
  bool lock; /**< lock the arena's memory (mlock2(2)): what is touched is never paged out. In a
                  buffer, see weir_arena_destroy for when that ends */
} weir_arena_options_t;

#define WEIR_ARENA_OPTIONS_INIT \
  { sizeof(weir_arena_options_t), NULL, WEIR_RETAIN_DEFAULT, WEIR_LIMIT_NONE, 0, false }

/**
 * Make an arena whose memory comes from the kernel.
 *
 * options  NULL for all defaults.
 * returns  the arena, the caller's until weir_arena_destroy; or NULL with errno
 *          EINVAL  options->size is not one of a known version, or the limit is below the prefault
 *                  and the arena's own structures (about 64 KiB and 0.3 % of the prefault)
 *          ENOMEM  memory is out
 *          EPERM   lock: the memory to lock at creation is over the process's limit
 *                  (RLIMIT_MEMLOCK; ulimit -l)
 * cost     a few mmap calls; with `prefault`, a page fault or less for each page. After that,
 *          blocks of up to `prefault` bytes in all are taken without a fault or a system call by
 *          the calling thread, as far as rounding (to 64 KiB and an eighth for blocks over 64 KiB,
 *          to slabs below) leaves room for them.
 *          Locks: one of the process's, for the list of arenas.
 */
weir_arena_t *weir_arena_create(const weir_arena_options_t *options);

/**
 * Make an arena inside `buffer`: all its blocks and all of its own state lie in these `size` bytes
 * (the table in which a thread finds its heaps, 8 bytes an arena, is the process's). It makes no
 * system call (but to lock and prefault) and never grows.
 *
 * buffer   any alignment; must stay, and be nobody else's, until weir_arena_destroy. Its contents
 *          are lost.
 * options  as for weir_arena_create, but: the mark says how much free memory keeps its size class;
 *          what is over it is joined for other uses (WEIR_RETAIN_DEFAULT: unlimited). When a
 *          request fits nowhere, all free memory is joined and it is tried again.
 * returns  as weir_arena_create; EINVAL also when `size` is below weir_arena_buffer_min() or
 *          above 1 TiB.
 */
weir_arena_t *weir_arena_create_in(void *buffer, size_t size, const weir_arena_options_t *options);

/** The smallest `size` that weir_arena_create_in takes, however the buffer is aligned: then there
 * is room for one block of up to 2 KiB, or several smaller ones of one size class. */
size_t weir_arena_buffer_min(void);

/**
 * Give all memory of the arena back, whatever blocks are left in it. No other thread may use the
 * arena or a block of it meanwhile or later; threads that used it may live on, and end at the same
 * moment. NULL is ignored.
 *
 * The pages that lie wholly in the buffer of an arena with `lock` are unlocked, for the kernel does
 * not count locks; unless a part of them was locked when the arena was made (before Linux 5.4 that
 * cannot be seen, and is assumed), or the process locks all that it maps now (mlockall(2) with
 * MCL_FUTURE): then all of it stays locked. A lock that was put on them otherwise while the arena
 * lived (mlock(2), or mlockall(2) with MCL_CURRENT alone) ends with it.
 * cost  a munmap for each range that was mapped; for a buffer with `lock` up to five system calls.
 *       Takes a lock of the process's.
 */
void weir_arena_destroy(weir_arena_t *arena);

/**
 * Give all blocks of the arena back at once. Its memory stays, free, as far as the mark allows. No
 * other thread may use the arena or a block of it meanwhile. NULL is ignored.
 * cost  in proportion to the number of spans and slabs in use, not to that of the blocks.
 */
void weir_arena_reset(weir_arena_t *arena);

/** The name given at creation; "" for the default arena. Lives as long as the arena. */
const char *weir_arena_name(const weir_arena_t *arena);

/**
 * The arena in which a live block lies; NULL for the default arena's. Stops the program as
 * weir_free does when `block` is no live block. No lock for blocks of arenas whose memory comes
 * from the kernel.
 */
weir_arena_t *weir_arena_of(const void *block);

/**
 * Take a block from the arena: as weir_malloc, but NULL with ENOMEM, too, when the limit is reached
 * or the buffer is full. Cost as weir_malloc's and about ten instructions.
 */
void *weir_arena_alloc(weir_arena_t *arena, size_t size) WEIR_MALLOC WEIR_SIZE(2);

/** As weir_arena_alloc(arena, count * size), every byte 0. NULL with ENOMEM when that overflows. */
void *weir_arena_zalloc(weir_arena_t *arena, size_t count, size_t size) WEIR_MALLOC WEIR_SIZE(2, 3);

/** As weir_aligned_alloc, from the arena. */
void *weir_arena_aligned_alloc(weir_arena_t *arena, size_t alignment, size_t size) WEIR_MALLOC
    WEIR_SIZE(3);

/** As weir_realloc. NULL is taken from `arena`; any other block stays in the arena it is in. */
void *weir_arena_realloc(weir_arena_t *arena, void *block, size_t size) WEIR_SIZE(3);

/**
 * Give a block back: as weir_free. `arena` is where the block most likely lies, which makes it as
 * quick as weir_free is for blocks of the default arena; the block may lie in another.
 */
void weir_arena_free(weir_arena_t *arena, void *block);

/** As weir_usable_size; `arena` as for weir_arena_free. */
size_t weir_arena_usable_size(const weir_arena_t *arena, const void *block);

/** The arena's mark: as weir_retain. */
size_t weir_arena_retain(const weir_arena_t *arena);

/** Set the arena's mark: as weir_set_retain. */
void weir_arena_set_retain(weir_arena_t *arena, size_t bytes);

/** Give free memory of the arena back: as weir_trim. In a buffer it is joined for other uses. */
size_t weir_arena_trim(weir_arena_t *arena, size_t keep);

/** The arena's statistics: as weir_stats. */
void weir_arena_stats(weir_arena_t *arena, weir_stats_t *stats, size_t size);

/** Write a report of the arena: as weir_report, with the arena's name. */
int weir_arena_report(weir_arena_t *arena, int fd, weir_format_t format);

#ifdef __cplusplus
}
#endif
#endif
