/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of buffers, last in, first out. Contract: weir/pool.h. A pool's lock guards what is in it,
 * and is never held while a block is taken or given back. The list of pools has a lock of its own,
 * before those of the pools; fork takes all of them, so that a child finds its pools whole.
 */
#include "pool.h"

#include "bits.h"
#include "check.h"
#include "list.h"
#include "lock.h"
#include "misuse.h"

#define LINE 64

/* The beginning of a buffer that waits: it fits in the smallest block. The seal is its size, and
 * above that a mark which depends on all the rest, so that a buffer that is written to after its
 * release, or released twice, is found. */
struct waiting {
  struct waiting *next;
  uint64_t seal;
};
_Static_assert(sizeof(struct waiting) <= 16, "the smallest block has 16 bytes");

/* Sizes are below it, because the page map covers no more. */
#define SIZE_BITS 48
#define SIZE_MASK (((uint64_t)1 << SIZE_BITS) - 1)

struct wr_pool {
  struct wr_lock lock;
  struct waiting *top; /* what was released last */
  size_t max_bytes;    /* constant, as is the arena */
  weir_arena_t *arena;
  weir_pool_stats_t stats;
  struct wr_link link; /* in `pools` */
};

static struct wr_lock pools_lock;
static struct wr_list pools; /* all there are; guarded by pools_lock */

/* The multiplier spreads its bits over the mark, so that any change of one byte changes the mark;
 * of other changes, one in 65,536 does not. */
static uint64_t seal(const struct wr_pool *pool, const struct waiting *buffer, uint64_t size) {
  uint64_t next = (uintptr_t)buffer->next, all = (uintptr_t)pool ^ (uintptr_t)buffer ^ size << 8;
  all = (all ^ (next << 16 | next >> 48)) * UINT64_C(0x9e3779b97f4a7c15);
  return (all & ~SIZE_MASK) | size;
}

/* Bytes in a buffer that waits. */
static size_t size_of(const struct wr_pool *pool, const struct waiting *buffer) {
  uint64_t size = buffer->seal & SIZE_MASK;
  if (WR_CHECK_CHEAP && WR_UNLIKELY(buffer->seal != seal(pool, buffer, size)))
    wr_misuse_stop(WR_MISUSE_FREE_LIST, buffer);
  return (size_t)size;
}

/* Stops the program if the buffer, which looks as one that waits does, is one. */
static WR_COLD void check_waiting(struct wr_pool *pool, const struct waiting *buffer) {
  const struct waiting *other;
  wr_lock_take(&pool->lock);
  for (other = pool->top; other != NULL && other != buffer; other = other->next)
    (void)size_of(pool, other);
  wr_lock_give(&pool->lock);
  if (other != NULL)
    wr_misuse_stop(WR_MISUSE_DOUBLE_FREE, buffer);
}

/* Takes the buffer on top, of `size` bytes, out of the pool. Under the lock. */
static void *pop(struct wr_pool *pool, size_t size) {
  struct waiting *buffer = pool->top;
  pool->top = buffer->next;
  pool->stats.kept -= size;
  pool->stats.buffers--;
  buffer->seal = 0;
  return buffer;
}

/* Puts a buffer on top, or returns false when the pool is full. Under the lock. */
static bool push(struct wr_pool *pool, struct waiting *buffer, size_t size) {
  if (size > pool->max_bytes - pool->stats.kept)
    return false;
  buffer->next = pool->top;
  buffer->seal = seal(pool, buffer, size);
  pool->top = buffer;
  pool->stats.buffers++;
  pool->stats.kept += size;
  if (pool->stats.peak < pool->stats.kept)
    pool->stats.peak = pool->stats.kept;
  return true;
}

/* What waits on top when it is too small for `size` bytes, taken out; else NULL. Under the lock. */
static void *pop_small(struct wr_pool *pool, size_t size) {
  size_t has = pool->top != NULL ? size_of(pool, pool->top) : size;
  return has < size ? pop(pool, has) : NULL;
}

/* A new buffer. One that is too small goes only when the new one is there, and so that failure
 * leaves the pool as it was; not before, by whoever had it on top. */
static void *exchange(struct wr_pool *pool, size_t size) {
  void *taken = weir_arena_alloc(pool->arena, size), *small;
  if (taken == NULL)
    return NULL;
  wr_lock_take(&pool->lock);
  small = pop_small(pool, size);
  pool->stats.acquired++;
  pool->stats.grown += small != NULL;
  wr_lock_give(&pool->lock);
  weir_arena_free(pool->arena, small);
  return taken;
}

WR_EXPORT void *weir_pool_acquire(weir_pool_t *pool, size_t size) {
  void *buffer = NULL;
  size_t has;
  wr_lock_take(&pool->lock);
  if (WR_LIKELY(pool->top != NULL) && (has = size_of(pool, pool->top)) >= size) {
    buffer = pop(pool, has);
    pool->stats.acquired++;
    pool->stats.reused++;
  }
  wr_lock_give(&pool->lock);
  return WR_LIKELY(buffer != NULL) ? buffer : exchange(pool, size);
}

WR_EXPORT void weir_pool_release(weir_pool_t *pool, void *buffer) {
  struct waiting *waiting = buffer;
  bool kept;
  size_t size;
  if (buffer == NULL)
    return;
  size = weir_arena_usable_size(pool->arena, buffer);
  if (WR_CHECK_CHEAP && WR_UNLIKELY(waiting->seal == seal(pool, waiting, size)))
    check_waiting(pool, waiting);
  wr_lock_take(&pool->lock);
  kept = push(pool, waiting, size);
  pool->stats.passed += !kept;
  wr_lock_give(&pool->lock);
  if (!kept)
    weir_arena_free(pool->arena, buffer);
}

WR_EXPORT void weir_pool_stats(weir_pool_t *pool, weir_pool_stats_t *stats) {
  wr_lock_take(&pool->lock);
  *stats = pool->stats;
  wr_lock_give(&pool->lock);
}

WR_EXPORT weir_pool_t *weir_pool_create(weir_arena_t *arena, size_t max_bytes) {
  /* A line to itself, because several threads write to it. */
  weir_pool_t *pool = weir_arena_aligned_alloc(arena, LINE, wr_bits_up(sizeof *pool, LINE));
  if (pool == NULL)
    return NULL;
  *pool = (weir_pool_t){.max_bytes = max_bytes, .arena = arena};
  wr_lock_take(&pools_lock);
  wr_list_add_back(&pools, &pool->link);
  wr_lock_give(&pools_lock);
  return pool;
}

WR_EXPORT void weir_pool_destroy(weir_pool_t *pool) {
  if (pool == NULL)
    return;
  wr_lock_take(&pools_lock);
  wr_list_remove(&pools, &pool->link);
  wr_lock_give(&pools_lock);
  while (pool->top != NULL)
    weir_arena_free(pool->arena, pop(pool, size_of(pool, pool->top)));
  weir_arena_free(pool->arena, pool);
}

static struct wr_pool *pool_at(struct wr_link *link) {
  return WR_LIST_MEMBER(link, struct wr_pool, link);
}

void wr_pool_lock_all(void) {
  wr_lock_hold(&pools_lock);
  for (struct wr_link *link = pools.front; link != NULL; link = link->older)
    wr_lock_hold(&pool_at(link)->lock);
}

void wr_pool_unlock_all(void) {
  for (struct wr_link *link = pools.front; link != NULL; link = link->older)
    wr_lock_give(&pool_at(link)->lock);
  wr_lock_give(&pools_lock);
}

void wr_pool_forked(void) {
  wr_lock_init(&pools_lock);
  for (struct wr_link *link = pools.front; link != NULL; link = link->older)
    wr_lock_init(&pool_at(link)->lock);
}

void wr_pool_forget(const weir_arena_t *arena) {
  struct wr_link *next;
  wr_lock_take(&pools_lock);
  for (struct wr_link *link = pools.front; link != NULL; link = next) {
    next = link->older;
    if (pool_at(link)->arena == arena)
      wr_list_remove(&pools, link);
  }
  wr_lock_give(&pools_lock);
}
