/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool of buffers over an arena, last in, first out: for a middleware that wants its
 * serialisation buffers from a pool of bounded size, as rmw_zenoh does (ros2/rmw_zenoh#342). The
 * buffer released last is the first acquired again, whatever its size was, so that it is in the
 * cache; one that is too small is exchanged for one that is large enough.
 *
 * Every function may be called from any thread at any time, and in a child after fork, but that
 * nobody else may use a pool while it is destroyed. A pool lies in its arena, and ends when that is
 * reset or destroyed, with all its buffers. While a buffer waits, its first 16 bytes are the
 * pool's: if it is written to there, or released again, the program stops as in weir_free.
 */
#ifndef WEIR_POOL_H
#define WEIR_POOL_H

#include <weir/arena.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wr_pool weir_pool_t;

/** What a pool holds and has done. */
typedef struct {
  uint64_t kept;     /**< bytes of the buffers that wait in the pool (usable size) */
  uint64_t peak;     /**< largest value of `kept` */
  uint64_t buffers;  /**< how many buffers wait in the pool */
  uint64_t acquired; /**< calls of weir_pool_acquire that gave a buffer */
  uint64_t reused;   /**< those of them served by a buffer that waited, as it was */
  uint64_t grown;    /**< those of them served in place of a buffer that waited and was too small */
  uint64_t passed;   /**< buffers released that went back to the arena: the pool was full */
} weir_pool_stats_t;

/**
 * Make a pool of buffers from `arena` (NULL: the default arena).
 *
 * max_bytes  how many bytes of released buffers may wait in it; a buffer that would make them more
 *            goes back to the arena when it is released. 0 keeps none.
 * returns    the pool, the caller's until weir_pool_destroy; NULL with ENOMEM when memory is out.
 */
weir_pool_t *weir_pool_create(weir_arena_t *arena, size_t max_bytes);

/** Give the pool and the buffers that wait in it back to the arena. Buffers that are out stay good,
 * and go to weir_free. NULL is ignored. */
void weir_pool_destroy(weir_pool_t *pool);

/**
 * Take a buffer of at least `size` bytes (0 to PTRDIFF_MAX), aligned to 16 bytes, uninitialised:
 * the one released last, or a new one from the arena when it is too small or there is none.
 *
 * returns the buffer, owned by the caller until weir_pool_release (or weir_free, or
 *         weir_arena_free); NULL with ENOMEM when memory is out, and then the pool is unchanged.
 * cost    one lock for some ten instructions; two, and what weir_arena_alloc and weir_arena_free
 *         cost, when the buffer is a new one.
 */
void *weir_pool_acquire(weir_pool_t *pool, size_t size) WEIR_MALLOC WEIR_SIZE(2);

/** Put a buffer of weir_pool_acquire, or any block of weir's, into the pool, or back to the arena
 * it lies in if the pool is full. NULL is ignored. Cost: one lock for some ten instructions. */
void weir_pool_release(weir_pool_t *pool, void *buffer);

/** Fill `*stats`. One lock. */
void weir_pool_stats(weir_pool_t *pool, weir_pool_stats_t *stats);

#ifdef __cplusplus
}
#endif
#endif
