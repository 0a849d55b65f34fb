/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real-time loop without a page fault, from its first message: what is to be done before the
 * loop, and the proof. Give it the names of steps, and it leaves them out: lock, stack, prefault.
 *
 *     cc -O2 realtime.c $(pkg-config --cflags --libs weir) && ./a.out
 *
 * It needs 64 MiB that may be locked (ulimit -l; LimitMEMLOCK= of systemd; memlock in
 * /etc/security/limits.d), or root.
 */
#include <alloca.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <weir/arena.h>

enum { MIB = 1 << 20, MESSAGES = 100, PAYLOADS = 31, STACK = 256 << 10 };

/* How many page faults this process has made so far. */
static long faults(void) {
  struct rusage usage;

  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

/* Touch each page of so much stack. Not inlined, so that it lies below the caller's. */
static __attribute__((noinline)) void use_stack(size_t bytes) {
  volatile char *frame = alloca(bytes);
  size_t i;

  for (i = 0; i < bytes; i += 1024)
    frame[i] = 1;
}

/* A message: a small block, 31 MiB of payloads, and some stack. */
static __attribute__((noinline)) bool message(weir_arena_t *arena) {
  void *header = weir_arena_alloc(arena, 200), *payloads[PAYLOADS];
  bool complete = header != NULL;
  int i;

  for (i = 0; i < PAYLOADS; i++) {
    payloads[i] = weir_arena_alloc(arena, MIB);
    if (payloads[i] != NULL)
      memset(payloads[i], i, MIB);
    complete = complete && payloads[i] != NULL;
  }
  use_stack(STACK);
  for (i = 0; i < PAYLOADS; i++)
    weir_arena_free(arena, payloads[i]);
  weir_arena_free(arena, header);
  return complete;
}

/* A line of /proc/self/status, for instance VmLck: what is locked. */
static void print_status(const char *key) {
  char line[256];
  FILE *file = fopen("/proc/self/status", "r");

  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, key, strlen(key)) == 0)
      fputs(line, stdout);
  if (file != NULL)
    fclose(file);
}

int main(int argc, char **argv) {
  weir_arena_options_t options = WEIR_ARENA_OPTIONS_INIT;
  bool lock = true, stack = true, prefault = true;
  weir_arena_t *arena;
  long start, first, rest;
  int i;

  for (i = 1; i < argc; i++) {
    lock = lock && strcmp(argv[i], "lock") != 0;
    stack = stack && strcmp(argv[i], "stack") != 0;
    prefault = prefault && strcmp(argv[i], "prefault") != 0;
  }

  /* 1. All of the process stays in memory from here on: code, libraries, stacks, heap; and what is
   * mapped later, too. */
  if (lock && mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
    perror("mlockall");
    return 3;
  }

  /* 2. The stack grows page by page, by faults. It does that now: as far as the loop will need it,
   * and some pages more, since the loop calls from other depths. */
  if (stack)
    use_stack(STACK + (64 << 10));

  /* 3. The memory for the messages: made resident now, never given back, locked. The thread that
   * makes the arena is the one that runs the loop. */
  options.name = "messages";
  options.retain = WEIR_RETAIN_UNLIMITED;
  options.prefault = prefault ? 32 * MIB : 0;
  options.lock = lock;
  arena = weir_arena_create(&options);
  if (arena == NULL) {
    perror("weir_arena_create");
    return 3;
  }

  /* 4. The loop. */
  start = faults();
  if (!message(arena))
    return 2;
  first = faults() - start;
  for (i = 1; i < MESSAGES; i++)
    if (!message(arena))
      return 2;
  rest = faults() - start - first;

  printf("page faults: %ld in the first message, %ld in the %d after it\n", first, rest,
         MESSAGES - 1);
  print_status("VmLck");
  print_status("VmRSS");
  weir_arena_destroy(arena);
  return first + rest == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
