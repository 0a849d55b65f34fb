/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of an rcutils_allocator_t over an arena, which is their state, and the arena that
 * rcutils' default allocator takes from. No lock: two threads that come first at once each make an
 * arena, and the later gives its own up, so that a fork in between leaves a child nothing to wait
 * for.
 */
#include "rcutils.h"

#include <errno.h>
#include <stdatomic.h>

#include "../init.h"
#include "../misuse.h"
#include "../weir.h"

/* The arena "rcutils", once made. */
static WR_RESIDENT _Atomic(weir_arena_t *) process_arena;

WR_EXPORT void *weir_rcutils_allocate(size_t size, void *state) {
  return weir_arena_alloc(state, size);
}

WR_EXPORT void weir_rcutils_deallocate(void *pointer, void *state) {
  weir_arena_free(state, pointer);
}

/* weir_arena_realloc frees where the size is 0. An rcutils_allocator_t has deallocate for that, and
 * callers take NULL for a failure that left them the old block. */
WR_EXPORT void *weir_rcutils_reallocate(void *pointer, size_t size, void *state) {
  return weir_arena_realloc(state, pointer, size == 0 ? 1 : size);
}

WR_EXPORT void *weir_rcutils_zero_allocate(size_t number_of_elements, size_t size_of_element,
                                           void *state) {
  return weir_arena_zalloc(state, number_of_elements, size_of_element);
}

static weir_arena_t *make_arena(size_t limit) {
  weir_arena_options_t options = WEIR_ARENA_OPTIONS_INIT;
  options.name = "rcutils";
  options.retain = wr_init_options.rcutils_retain;
  options.limit = limit;
  return weir_arena_create(&options);
}

static void complain_of_limit(void) {
  struct wr_text text;
  wr_text_begin(&text, NULL, NULL);
  wr_text_string(&text, "weir: WEIR_RCUTILS_LIMIT=");
  wr_text_size(&text, wr_init_options.rcutils_limit);
  wr_text_string(&text, " is not enough for an arena; keeping unlimited");
  wr_text_bytes(&text, "", 1);
  wr_misuse_say(text.buffer);
}

static WR_COLD weir_arena_t *make_process_arena(void) {
  weir_arena_t *made, *expected = NULL;
  int saved = errno;
  bool refused;
  wr_init();
  made = make_arena(wr_init_options.rcutils_limit);
  refused = made == NULL && errno == EINVAL;
  if (refused)
    made = make_arena(WEIR_LIMIT_NONE);
  errno = saved;
  if (made == NULL)
    return NULL;
  /* Release and acquire: who reads the pointer sees what it leads to. */
  if (!atomic_compare_exchange_strong_explicit(&process_arena, &expected, made,
                                               memory_order_acq_rel, memory_order_acquire)) {
    weir_arena_destroy(made);
    return expected;
  }
  if (refused)
    complain_of_limit();
  return made;
}

WR_EXPORT weir_arena_t *weir_rcutils_arena(void) {
  weir_arena_t *arena = atomic_load_explicit(&process_arena, memory_order_acquire);
  return WR_LIKELY(arena != NULL) ? arena : make_process_arena();
}
