/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir as an rcutils_allocator_t: for rcl, rclc, rosidl and everything else that takes one. Only
 * this header needs rcutils' (package rcutils; on Debian librcutils-dev); libweir does not.
 *
 *     rcutils_allocator_t allocator = weir_rcutils_allocator(NULL);
 *
 * The structure owns nothing: it may be copied, and its copies outlive it. They are good until the
 * arena is destroyed; with the default arena, for ever. Blocks may be given back through another
 * copy, through the allocator of another arena, to weir_free, and to free where libweir_malloc is
 * the process's malloc.
 */
#ifndef WEIR_RCUTILS_H
#define WEIR_RCUTILS_H

#include <rcutils/allocator.h>
#include <weir/arena.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The members of the allocator, as rcutils/allocator.h describes them. `state` is the arena, or
 * NULL for the default arena. Thread-safe; cost as the functions of weir/arena.h they stand for.
 */

/** A block of at least `size` bytes, one of its own for 0; NULL when memory is out. */
void *weir_rcutils_allocate(size_t size, void *state);
/** Gives a block back; NULL is ignored. */
void weir_rcutils_deallocate(void *pointer, void *state);
/** As realloc: contents kept, the old block still good when NULL is returned, NULL accepted. But a
 * size of 0 gives a block of its own, too, instead of freeing. */
void *weir_rcutils_reallocate(void *pointer, size_t size, void *state);
/** As calloc: NULL when the product overflows. */
void *weir_rcutils_zero_allocate(size_t number_of_elements, size_t size_of_element, void *state);

/**
 * The arena "rcutils" of the process, made at the first call: what libweir_rcutils has rcutils'
 * default allocator take from. The environment sets its mark and limit (WEIR_RCUTILS_RETAIN,
 * WEIR_RCUTILS_LIMIT; weir(7)). NULL, and so the default arena, when it cannot be made.
 */
weir_arena_t *weir_rcutils_arena(void);

/** An allocator over `arena`; NULL: the default arena. */
static inline rcutils_allocator_t weir_rcutils_allocator(weir_arena_t *arena) {
  rcutils_allocator_t allocator;
  allocator.allocate = weir_rcutils_allocate;
  allocator.deallocate = weir_rcutils_deallocate;
  allocator.reallocate = weir_rcutils_reallocate;
  allocator.zero_allocate = weir_rcutils_zero_allocate;
  allocator.state = arena;
  return allocator;
}

#ifdef __cplusplus
}
#endif
#endif
