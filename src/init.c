/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up: see init.h. Guarded by one atomic state; a thread that comes while another works waits.
 */
#include "init.h"

#include "arena.h"
#include "misuse.h"
#include "os.h"
#include "thread.h"

enum { COLD, BUSY, READY };

static _Atomic(int) state;
static bool without_environment;

struct wr_options wr_init_options;

static void read_options(char **environment) {
  if (environment == NULL)
    environment = wr_os_environment();
  without_environment = environment == NULL;
  wr_options_read(&wr_init_options, wr_os_secure() ? NULL : environment, wr_misuse_say);
}

static WR_COLD void bring_up(void) {
  int expected = COLD;
  if (atomic_compare_exchange_strong_explicit(&state, &expected, BUSY, memory_order_relaxed,
                                              memory_order_relaxed)) {
    read_options(NULL);
    wr_source_init_os(&wr_arena_default.source, wr_init_options.thp);
    wr_arena_init(&wr_arena_default, wr_init_options.retain, wr_os_hint());
    wr_thread_init();
    /* Release: pairs with the acquires in this file. */
    atomic_store_explicit(&state, READY, memory_order_release);
  }
  while (atomic_load_explicit(&state, memory_order_acquire) != READY)
    wr_os_yield();
}

void wr_init(void) {
  /* Acquire: pairs with the release in bring_up. */
  if (WR_UNLIKELY(atomic_load_explicit(&state, memory_order_acquire) != READY))
    bring_up();
}

void wr_init_late(char **environment) {
  wr_init();
  if (!without_environment)
    return;
  read_options(environment);
  wr_arena_default.source.thp = wr_init_options.thp;
  wr_keep_set_mark(&wr_arena_default.spans, wr_init_options.retain);
}
