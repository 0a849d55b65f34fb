/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir: a malloc for ROS nodes that keeps freed memory resident up to a mark.
 *
 * Every function here may be called from any thread at any time, before main, in a child after
 * fork, and during and after the destruction of a thread's local data; none may be called from a
 * signal handler. "Lock" below means the allocator's own priority-inheriting locks, which are held
 * for tens of nanoseconds and never across a system call that purges or prints. A thread holds
 * the lock of its own heap, which others take only to fork, trim, count and help, while it maps.
 */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEIR_MALLOC __attribute__((malloc, warn_unused_result))
#define WEIR_SIZE(...) __attribute__((alloc_size(__VA_ARGS__)))
#else
#define WEIR_MALLOC
#define WEIR_SIZE(...)
#endif

/** A mark that keeps everything: no free memory is ever given back, short of weir_trim. */
#define WEIR_RETAIN_UNLIMITED SIZE_MAX

/** The version as "major.minor.patch": a string that lives as long as the process. No lock. */
const char *weir_version(void);

/**
 * Take a block of at least `size` bytes, aligned for any type (16 bytes).
 *
 * size    0 to PTRDIFF_MAX; 0 gives a block of its own that can be freed.
 * returns the block, uninitialised, owned by the caller until weir_free or weir_realloc; or NULL
 *         with errno ENOMEM when size is over PTRDIFF_MAX or memory is out. errno is not touched
 *         otherwise.
 * cost    up to 64 KiB: constant time and no lock when the thread's slab of that size has a free
 *         block; otherwise one lock and at most 64 returned blocks looked at. Over 64 KiB: one
 *         lock. A system call is made only when no free memory fits.
 */
void *weir_malloc(size_t size) WEIR_MALLOC WEIR_SIZE(1);

/** As weir_malloc(count * size), every byte 0. NULL with ENOMEM when the product overflows. */
void *weir_calloc(size_t count, size_t size) WEIR_MALLOC WEIR_SIZE(1, 2);

/**
 * Change the size of `block` to `size` bytes, in place where the block's own room allows.
 *
 * block   NULL (then as weir_malloc) or a live block.
 * size    0 to PTRDIFF_MAX; 0 frees `block` and returns NULL, as glibc does, unless it is NULL.
 * returns the block, moved or not, contents kept up to the smaller size, aligned to 16 bytes (a
 *         larger alignment asked for earlier may be lost); or NULL with ENOMEM, and then `block`
 *         is still live and untouched.
 */
void *weir_realloc(void *block, size_t size) WEIR_SIZE(2);

/** As weir_realloc(block, count * size). NULL with ENOMEM when the product overflows. */
void *weir_reallocarray(void *block, size_t count, size_t size) WEIR_SIZE(2, 3);

/**
 * Take a block of at least `size` bytes at a multiple of `alignment`.
 *
 * alignment  a power of two; anything else gives NULL with EINVAL.
 * returns    as weir_malloc. The block goes to weir_free like any other.
 */
void *weir_aligned_alloc(size_t alignment, size_t size) WEIR_MALLOC WEIR_SIZE(2);

/**
 * Give `block` back. NULL is ignored. errno is not touched.
 *
 * A pointer that is not the start of a live block stops the program (SIGABRT) with one line on
 * stderr that names the fault and the address.
 * cost  up to 64 KiB: constant time and no lock for a block taken by this thread, but for a lock
 * when its slab was full or becomes empty; one atomic push for a block taken by another, and once
 *       in a mebibyte of those a lock for each 64 of them. Over 64 KiB: one lock. Memory over the
 *       mark is given back to the kernel before the call returns, outside every lock.
 */
void weir_free(void *block);

/** Bytes that may be used in `block`: at least the size asked for, and the same for as long as it
 * is live and not reallocated. 0 for NULL. No lock. */
size_t weir_usable_size(const void *block);

/** The retention mark in bytes, or WEIR_RETAIN_UNLIMITED. No lock. */
size_t weir_retain(void);

/**
 * Set the retention mark: how many bytes of free memory may stay resident, in whole spans and
 * slabs. What is over the new mark is given back before the call returns. Takes one lock, and below
 * 1 MiB, where no heap keeps an empty slab either, all those of weir_trim; purges outside them.
 *
 * Outside the mark stand: up to 1 MiB of empty slabs a thread; free blocks of slabs that hold live
 * ones ("fragmented"); and up to 1 MiB a thread of what others have freed and it has not seen yet.
 */
void weir_set_retain(size_t bytes);

/**
 * Give free memory of all threads back to the kernel, coldest first, until at most `keep` bytes of
 * it stay resident. It has left the resident set when the call returns. The mark is unchanged.
 *
 * returns bytes given back meanwhile, by any thread. With `keep` of 0, address space that nothing
 *         is left in may be unmapped too. Takes each heap's lock a few times and the arena's; time
 * is in proportion to the number of blocks that others have freed and of bytes given back.
 */
size_t weir_trim(size_t keep);

/** What the allocator holds and has done. Bytes unless a name says otherwise. */
typedef struct {
#define WEIR_STAT(name, kind, text) uint64_t name;
#include <weir/counters.def>
#undef WEIR_STAT
} weir_stats_t;

/** Use of one size class. */
typedef struct {
  uint64_t block; /**< size of a block in bytes */
  uint64_t slabs; /**< slabs of this class in all heaps */
  uint64_t live;  /**< blocks handed out and not given back */
  uint64_t free;  /**< free blocks whose memory may be resident */
} weir_class_stats_t;

/**
 * Fill `*stats` with sums over all threads. `size` is sizeof *stats as the caller was compiled:
 * fields a newer library has are left out, fields an older one lacks are 0.
 * Takes each heap's lock once and the arena's lock; time is in proportion to the number of slabs.
 * Numbers of other threads that allocate meanwhile may be apart by their blocks in flight.
 */
void weir_stats(weir_stats_t *stats, size_t size);

/** Fill up to `count` entries of `classes`, those of common blocks first, then those of
 * aligned ones, from the smallest block on; returns how many classes there are. Locks and time as
 * weir_stats. */
size_t weir_class_stats(weir_class_stats_t *classes, size_t count);

typedef enum { WEIR_TEXT = 0, WEIR_JSON = 1 } weir_format_t;

/**
 * Write a report of the statistics to a file descriptor, as a table or as one JSON object on one
 * line. Allocates nothing. Returns 0 or the errno value of the write that failed.
 */
int weir_report(int fd, weir_format_t format);

#ifdef __cplusplus
}
#endif
#endif
