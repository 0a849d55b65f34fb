/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up: the options, the arena, the ends of threads. Once, at the first slow allocation or in
 * the constructor, whichever comes first.
 */
#ifndef WR_INIT_H
#define WR_INIT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "attr.h"
#include "options.h"

/* The options in force; constant after wr_init_late. */
extern struct wr_options wr_init_options;

enum { WR_INIT_COLD, WR_INIT_BUSY, WR_INIT_READY };

extern _Atomic(int) wr_init_state;

WR_INLINE bool wr_init_is_ready(void) {
  /* Acquire: pairs with the release in wr_init_bring_up. */
  return WR_LIKELY(atomic_load_explicit(&wr_init_state, memory_order_acquire) == WR_INIT_READY);
}

void wr_init_bring_up(void);

/* Returns when bring-up is done, by this thread or another. A load and a compare after that. */
WR_INLINE void wr_init(void) {
  if (!wr_init_is_ready())
    wr_init_bring_up();
}

/* In the constructor, when the environment can be read for certain: reads the options now if they
 * could not be read at bring-up, from `environment` or, if that is NULL, from where bring-up looks.
 */
void wr_init_late(char **environment);

/* Whether the environment names an option that does not exist, or a value that is none. */
bool wr_init_is_faulty(void);
/* Says so, a line each. In the constructor; `environment` as for wr_init_late. */
void wr_init_complain(char **environment);

#endif
