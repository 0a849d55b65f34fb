/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load, fork, exit: see process.h. Nothing here is needed for the first allocation to work: it may
 * come before the constructor.
 *
 * Lock order, which fork takes whole: the list of pools of buffers, those pools, the list of
 * arenas, the pools of heaps, every heap, giving, growing, the spans, the meta memory, the place of
 * arenas. The handlers are registered in the constructor, which runs before those of all other
 * libraries
 * (-z initfirst), so that libc calls them after a program's prepare handlers and before its parent
 * and child handlers, which may allocate.
 */
#include "process.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "init.h"
#include "misuse.h"
#include "os.h"
#include "pool.h"
#include "report.h"
#include "thread.h"

/* A static program that has no pools of buffers has not their code either. */
#pragma weak wr_pool_lock_all
#pragma weak wr_pool_unlock_all
#pragma weak wr_pool_forked

#define PATH_BYTES 4096

/* Where statistics go that have no file: a copy of standard error, because programs close that
 * before a library's destructor runs. */
static int sink_fd = 2;
static uint64_t sink_file[2];
/* A copy: programs that change their title write over the environment. */
static char sink_path[PATH_BYTES];

void wr_process_before_fork(void) {
  wr_os_before_fork();
  wr_lock_forking();
  if (wr_pool_lock_all != NULL)
    wr_pool_lock_all();
  wr_thread_lock_all();
}

void wr_process_after_fork(void) {
  wr_thread_unlock_all();
  if (wr_pool_unlock_all != NULL)
    wr_pool_unlock_all();
  wr_lock_forked(false);
  wr_os_after_fork();
}

void wr_process_forked(void) {
  wr_lock_forked(true);
  if (wr_pool_forked != NULL)
    wr_pool_forked();
  wr_thread_forked();
  wr_os_forked();
}

static void say_active(void) {
  struct wr_text text;
  int fd = 2;
  wr_text_begin(&text, wr_os_sink, &fd);
  wr_text_string(&text, "weir " WEIR_VERSION " active: ");
  wr_options_print(&wr_init_options, &text);
  wr_text_string(&text, "\n");
  (void)wr_text_end(&text);
}

/* The sink's path with each %p replaced by the process id; false when it does not fit. */
static bool expand_path(const char *pattern, char *path) {
  struct wr_text number;
  size_t used = 0;
  wr_text_begin(&number, NULL, NULL);
  wr_text_number(&number, wr_os_process());
  for (; *pattern != '\0'; pattern++) {
    const char *part = pattern;
    size_t length = 1;
    if (pattern[0] == '%' && pattern[1] == 'p') {
      part = number.buffer;
      length = number.used;
      pattern++;
    }
    if (used + length >= PATH_BYTES)
      return false;
    memcpy(path + used, part, length);
    used += length;
  }
  path[used] = '\0';
  return true;
}

static void prepare_sink(struct wr_sink *sink) {
  if (sink->path != NULL && strlen(sink->path) < PATH_BYTES)
    sink->path = strcpy(sink_path, sink->path);
  sink_fd = wr_os_duplicate(2);
  (void)wr_os_identify(sink_fd, sink_file);
}

/* Whether the copy of standard error still is one: a program that closes every descriptor it does
 * not know may have opened a file of its own in its place. */
static bool is_sink(void) {
  uint64_t file[2];
  return wr_os_identify(sink_fd, file) && file[0] == sink_file[0] && file[1] == sink_file[1];
}

/* Looks at the next arena behind a slot; false when there is none. What is seen is written after
 * that: whoever reads it may keep the writer waiting, and no arena could end meanwhile. */
static bool look_behind(size_t *slot, struct wr_snapshot *snapshot) {
  struct wr_arena *arena;
  wr_lock_take(&wr_arena_ends_lock);
  arena = wr_arena_next(*slot);
  if (arena != NULL) {
    *slot = arena->slot;
    wr_snapshot_take(arena, snapshot);
  }
  wr_lock_give(&wr_arena_ends_lock);
  return arena != NULL;
}

static void report_at_exit(const struct wr_sink *sink) {
  struct wr_snapshot snapshot;
  size_t slot = 0;
  char path[PATH_BYTES];
  int fd = sink_fd;
  bool opened = sink->path != NULL && expand_path(sink->path, path) && wr_os_append(path, &fd) == 0;
  if (!opened && !is_sink())
    return;
  if (!opened && sink->path != NULL)
    wr_misuse_say("weir: the file of WEIR_STATS cannot be opened; the statistics follow here");
  (void)wr_report_arena(&wr_arena_default, fd, sink->kind == WR_SINK_JSON);
  while (look_behind(&slot, &snapshot))
    (void)wr_report_snapshot(&snapshot, fd, sink->kind == WR_SINK_JSON);
  if (opened)
    wr_os_close(fd);
}

/*
 * Whether the program's calls of weir come here. In a process that has libweir linked and
 * libweir_malloc preloaded, both are loaded, and only one of them is to speak.
 */
static bool is_in_force(void) {
#if WR_SHARED
  void *found = dlsym(RTLD_DEFAULT, "weir_version");
  /* A program that weir is part of need not tell of it. */
  return found == NULL || found == (void *)weir_version;
#else
  return true;
#endif
}

static __attribute__((constructor)) void at_load(WR_LOAD_ARGUMENTS) {
  /* One that nobody calls need not be brought up. That which is the process's malloc is called, and
   * need not ask. */
  if (&wr_replaces_malloc != NULL || is_in_force())
    wr_init_late(WR_LOAD_ENVIRONMENT);
  /* Only one weir in a process complains of the environment, or it would be told twice. */
  if (wr_init_is_faulty() && is_in_force())
    wr_init_complain(WR_LOAD_ENVIRONMENT);
  if (&wr_process_hooked == NULL)
    (void)pthread_atfork(wr_process_before_fork, wr_process_after_fork, wr_process_forked);
  if ((wr_init_options.verbose || wr_init_options.stats.kind != WR_SINK_NONE) && !is_in_force()) {
    wr_init_options.verbose = false;
    wr_init_options.stats.kind = WR_SINK_NONE;
  }
  if (wr_init_options.verbose)
    say_active();
  if (wr_init_options.stats.kind != WR_SINK_NONE)
    prepare_sink(&wr_init_options.stats);
}

static __attribute__((destructor)) void at_exit(void) {
  if (wr_init_options.stats.kind != WR_SINK_NONE)
    report_at_exit(&wr_init_options.stats);
}
