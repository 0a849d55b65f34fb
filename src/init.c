/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up: see init.h. Guarded by one atomic state; a thread that comes while another works waits.
 */
#include "init.h"

#include "arena.h"
#include "misuse.h"
#include "os.h"
#include "place.h"
#include "thread.h"

_Atomic(int) wr_init_state;
static bool without_environment;
static bool faulty;

struct wr_options wr_init_options;

/* Whether there is anything to complain of is noted here and told by wr_init_complain: it is not
 * known yet whether this weir is the one that the process uses. */
static void note_fault(const char *line) {
  (void)line;
  faulty = true;
}

static void read_options(char **environment) {
  if (environment == NULL)
    environment = wr_os_environment();
  without_environment = environment == NULL;
  wr_options_read(&wr_init_options, wr_os_secure() ? NULL : environment, note_fault);
}

WR_COLD void wr_init_bring_up(void) {
  int expected = WR_INIT_COLD;
  void *hint;
  if (atomic_compare_exchange_strong_explicit(&wr_init_state, &expected, WR_INIT_BUSY,
                                              memory_order_relaxed, memory_order_relaxed)) {
    read_options(NULL);
    wr_source_init_os(&wr_arena_default.source, wr_init_options.thp);
    hint = wr_os_hint();
    wr_place_init(hint);
    wr_arena_init(&wr_arena_default, wr_init_options.retain, hint);
    wr_thread_init();
    /* Release: pairs with the acquires in this file. */
    atomic_store_explicit(&wr_init_state, WR_INIT_READY, memory_order_release);
  }
  while (atomic_load_explicit(&wr_init_state, memory_order_acquire) != WR_INIT_READY)
    wr_os_yield();
}

bool wr_init_is_faulty(void) {
  return faulty;
}

void wr_init_complain(char **environment) {
  struct wr_options options;
  wr_options_read(&options, environment != NULL ? environment : wr_os_environment(), wr_misuse_say);
}

void wr_init_late(char **environment) {
  /* Not wr_init: its look at the state would cost a page fault before the one of the store. */
  wr_init_bring_up();
  if (!without_environment)
    return;
  read_options(environment);
  wr_arena_default.source.thp = wr_init_options.thp;
  wr_settle_set_mark(&wr_arena_default.spans, wr_init_options.retain);
}
