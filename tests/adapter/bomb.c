/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs operations of ROS's C libraries (bomb_*.c) over four allocators: one of plain malloc, which
 * shows what the libraries themselves do when memory is out; weir's default arena; an arena of its
 * own; and one in a buffer. The n-th call of the allocator fails, for every n. weir must come to
 * what malloc comes to, each time; and that must be a failure that is told, and no block left, but
 * for the faults that are known of the libraries (faults.def).
 */
#include "bomb.h"

#include <fcntl.h>
#include <malloc.h>
#include <rcutils/error_handling.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS_MAX = 4096, CALLS_MAX = 1000, STATUS_WRONG = 99 };

/* What a run came to. */
enum end { TOLD, SILENT, CRASH, WRONG, BAD_FREE };
static const char *const end_name[] = {"told", "silent", "crash", "wrong", "bad_free"};
struct outcome {
  enum end end;   /* SILENT: the operation says that nothing failed */
  bool exploded;  /* whether there was an n-th call */
  unsigned calls; /* that the operation made */
  unsigned left;  /* blocks that it did not give back */
  int line;       /* WRONG: where */
};

struct fault {
  const char *op;
  unsigned first, last; /* the calls that fail */
  enum end end;
  unsigned left;
};
static const struct fault faults[] = {
#define FAULT(op, first, last, end, left, why) {#op, first, last, end, left},
#include "faults.def"
#undef FAULT
    {NULL, 0, 0, TOLD, 0},
};

/* ---- the allocator ---- */

static struct {
  rcutils_allocator_t inner;
  size_t (*usable)(const void *block);
  unsigned fail_at;
  void *block[BLOCKS_MAX];
  size_t blocks;
  struct outcome *outcome; /* the parent reads it */
} bomb;

static bool explodes(void) {
  if (++bomb.outcome->calls != bomb.fail_at)
    return false;
  bomb.outcome->exploded = true;
  return true;
}

static void *add(void *block) {
  if (block != NULL) {
    BOMB_CHECK(bomb.blocks < BLOCKS_MAX);
    bomb.block[bomb.blocks++] = block;
    bomb.outcome->left++;
  }
  return block;
}

/* Ends the run where `block` is none that was taken. */
static void take_out(void *block) {
  size_t i = 0;
  while (i < bomb.blocks && bomb.block[i] != block)
    i++;
  if (i == bomb.blocks) {
    bomb.outcome->end = BAD_FREE;
    _exit(0);
  }
  bomb.block[i] = bomb.block[--bomb.blocks];
  bomb.outcome->left--;
}

/* New blocks are not zero and freed ones are written over: what reads them goes wrong. */
static void *bomb_allocate(size_t size, void *state) {
  void *block = explodes() ? NULL : bomb.inner.allocate(size, bomb.inner.state);
  (void)state;
  return block == NULL ? NULL : add(memset(block, 0xa5, bomb.usable(block)));
}

static void bomb_deallocate(void *pointer, void *state) {
  (void)state;
  if (pointer != NULL) {
    take_out(pointer);
    memset(pointer, 0xdd, bomb.usable(pointer));
  }
  bomb.inner.deallocate(pointer, bomb.inner.state);
}

static void *bomb_reallocate(void *pointer, size_t size, void *state) {
  void *block = explodes() ? NULL : bomb.inner.reallocate(pointer, size, bomb.inner.state);
  (void)state;
  if (block != NULL && pointer != NULL)
    take_out(pointer);
  return add(block);
}

static void *bomb_zero_allocate(size_t number_of_elements, size_t size_of_element, void *state) {
  (void)state;
  return explodes()
             ? NULL
             : add(bomb.inner.zero_allocate(number_of_elements, size_of_element, bomb.inner.state));
}

/* This program's definition comes before rcutils' own. */
rcutils_allocator_t rcutils_get_default_allocator(void) {
  return (rcutils_allocator_t){bomb_allocate, bomb_deallocate, bomb_reallocate, bomb_zero_allocate,
                               &bomb};
}

/* ---- what stands behind it ---- */

static void *plain_allocate(size_t size, void *state) {
  (void)state;
  return malloc(size);
}

static void plain_deallocate(void *pointer, void *state) {
  (void)state;
  free(pointer);
}

static void *plain_reallocate(void *pointer, size_t size, void *state) {
  (void)state;
  return realloc(pointer, size);
}

static void *plain_zero_allocate(size_t number_of_elements, size_t size_of_element, void *state) {
  (void)state;
  return calloc(number_of_elements, size_of_element);
}

static size_t plain_usable(const void *block) {
  return malloc_usable_size((void *)(uintptr_t)block);
}

static weir_arena_t *arena;
static uint64_t live_before;

static uint64_t live(void) {
  weir_stats_t stats;
  weir_arena_stats(arena, &stats, sizeof stats);
  return stats.live;
}

enum behind { PLAIN, DEFAULT_ARENA, OWN_ARENA, BUFFER_ARENA, BEHINDS };
static const char *const behind_name[] = {"malloc", "default arena", "arena", "arena in a buffer"};

static char buffer[8 << 20];
static size_t buffer_size = sizeof buffer;

static void put_behind(enum behind behind) {
  weir_arena_options_t options = WEIR_ARENA_OPTIONS_INIT;
  bomb.usable = weir_usable_size;
  if (behind == PLAIN) {
    bomb.inner = (rcutils_allocator_t){plain_allocate, plain_deallocate, plain_reallocate,
                                       plain_zero_allocate, NULL};
    bomb.usable = plain_usable;
    return;
  }
  options.name = "bomb";
  if (behind == OWN_ARENA)
    arena = weir_arena_create(&options);
  else if (behind == BUFFER_ARENA)
    arena = weir_arena_create_in(buffer, buffer_size, &options);
  BOMB_CHECK(behind == DEFAULT_ARENA || arena != NULL);
  bomb.inner = weir_rcutils_allocator(arena);
  live_before = live();
}

/* ---- runs ---- */

bool bomb_ok(int ret) {
  if (ret != RCUTILS_RET_OK)
    rcutils_reset_error();
  return ret == RCUTILS_RET_OK;
}

_Noreturn void bomb_wrong(const char *file, int line, const char *what) {
  printf("%s:%d: not so: %s\n", file, line, what);
  fflush(stdout);
  bomb.outcome->line = line;
  _exit(STATUS_WRONG);
}

static void run_in_child(const struct bomb_op *op, enum behind behind) {
  bool done;
  struct rlimit none = {0, 0};
  BOMB_CHECK(setrlimit(RLIMIT_CORE, &none) == 0);
  /* What the libraries print of failures that are made here is nobody's news. */
  if (getenv("BOMB_LOUD") == NULL)
    BOMB_CHECK(dup2(open("/dev/null", O_WRONLY), STDERR_FILENO) == STDERR_FILENO);
  put_behind(behind);
  done = op->run(rcutils_get_default_allocator());
  bomb.outcome->end = done ? SILENT : TOLD;
  /* The arena agrees with what was counted here. */
  if (behind != PLAIN)
    BOMB_CHECK((live() != live_before) == (bomb.blocks > 0));
  _exit(0);
}

static struct outcome run(const struct bomb_op *op, enum behind behind, unsigned fail_at) {
  static struct outcome *shared;
  int status;
  pid_t child;
  if (shared == NULL)
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  memset(shared, 0, sizeof *shared);
  bomb.outcome = shared;
  bomb.fail_at = fail_at;
  fflush(stdout);
  child = fork();
  if (child == 0)
    run_in_child(op, behind);
  BOMB_CHECK(child > 0 && waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status))
    shared->end = CRASH;
  else if (WEXITSTATUS(status) != 0) /* a sanitizer ends a program that crashes like this */
    shared->end = WEXITSTATUS(status) == STATUS_WRONG ? WRONG : CRASH;
  return *shared;
}

static bool same(const struct outcome *one, const struct outcome *other) {
  return one->end == other->end && one->exploded == other->exploded && one->calls == other->calls &&
         one->left == other->left && one->line == other->line;
}

/* What is to come of it when the n-th call of an operation fails. */
static struct outcome expected(const struct bomb_op *op, unsigned n) {
  struct outcome want = {.end = TOLD};
  for (const struct fault *fault = faults; fault->op != NULL; fault++) {
    if (strcmp(fault->op, op->name) == 0 && n >= fault->first && n <= fault->last) {
      want.end = fault->end;
      want.left = fault->left;
    }
  }
  return want;
}

/* The faults are those of one version; of another, only weir and malloc are compared. */
static bool is_known_version(void) {
  return strcmp(RCUTILS_VERSION, FAULTS_OF) == 0;
}

static unsigned report(const struct bomb_op *op, unsigned n, const char *what,
                       const struct outcome *outcome, const struct outcome *want) {
  printf("FAIL %s, call %u fails, %s: %s, %u blocks left, %u calls; not %s, %u\n", op->name, n,
         what, end_name[outcome->end], outcome->left, outcome->calls, end_name[want->end],
         want->left);
  return 1;
}

/* Returns how much of it was not as it must be. */
static unsigned try_op(const struct bomb_op *op) {
  unsigned failures = 0, n = 0;
  bool exploded;
  do {
    struct outcome outcome = run(op, PLAIN, ++n);
    struct outcome want = {.end = SILENT};
    exploded = outcome.exploded;
    if (exploded)
      want = expected(op, n);
    if ((!exploded || is_known_version()) && (outcome.end != want.end || outcome.left != want.left))
      failures += report(op, n, behind_name[PLAIN], &outcome, &want);
    for (enum behind behind = DEFAULT_ARENA; behind < BEHINDS; behind++) {
      struct outcome other = run(op, behind, n);
      if (!same(&outcome, &other))
        failures += report(op, n, behind_name[behind], &other, &outcome);
    }
  } while (exploded && n < CALLS_MAX);
  printf("%s %s, %u calls\n", failures == 0 ? "ok  " : "FAIL", op->name, n - 1);
  return failures;
}

/* Whether an operation may end so when some call of it fails. */
static bool may_end(const struct bomb_op *op, const struct outcome *outcome) {
  if ((outcome->end == TOLD || outcome->end == SILENT) && outcome->left == 0)
    return true;
  for (const struct fault *fault = faults; fault->op != NULL; fault++)
    if (strcmp(fault->op, op->name) == 0 && fault->end == outcome->end)
      return true;
  return !is_known_version();
}

/* No bomb, but memory that is really out: an arena in a buffer that grows until it is enough.
 * Returns how much was not as it must be. */
static unsigned try_tight(const struct bomb_op *op, unsigned *short_of) {
  unsigned failures = 0;
  for (buffer_size = weir_arena_buffer_min(); buffer_size < sizeof buffer;
       buffer_size += buffer_size / 2) {
    struct outcome outcome = run(op, BUFFER_ARENA, 0);
    *short_of += outcome.end == TOLD;
    if (!may_end(op, &outcome)) {
      printf("FAIL %s in %zu bytes: %s, %u blocks left\n", op->name, buffer_size,
             end_name[outcome.end], outcome.left);
      failures++;
    }
  }
  buffer_size = sizeof buffer;
  return failures;
}

/* A fault of an operation that does not exist, or of a call that it does not make, was looked for
 * in vain. */
static unsigned try_all(const struct bomb_op *op, const char *only, bool *seen) {
  unsigned failures = 0, short_of = 0;
  for (; op->name != NULL; op++) {
    if (only != NULL && strcmp(only, op->name) != 0)
      continue;
    failures += try_op(op) + try_tight(op, &short_of);
    for (size_t i = 0; faults[i].op != NULL; i++)
      seen[i] |= strcmp(faults[i].op, op->name) == 0 && run(op, PLAIN, faults[i].last).exploded;
  }
  if (short_of == 0 && only == NULL) {
    printf("FAIL no buffer was too small for any of them\n");
    failures++;
  }
  return failures;
}

int main(int argc, char **argv) {
  static bool seen[sizeof faults / sizeof faults[0]];
  const char *only = argc > 1 ? argv[1] : NULL;
  unsigned failures = try_all(bomb_types, only, seen) + try_all(bomb_system, only, seen);
#ifdef HAVE_ROSIDL
  failures += try_all(bomb_rosidl, only, seen);
#endif
  if (!is_known_version())
    printf("rcutils %s: its own faults are not known, those of %s are\n", RCUTILS_VERSION,
           FAULTS_OF);
  for (size_t i = 0; faults[i].op != NULL && only == NULL && is_known_version(); i++) {
    if (!seen[i]) {
      printf("FAIL faults.def: %s does not make call %u\n", faults[i].op, faults[i].last);
      failures++;
    }
  }
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
