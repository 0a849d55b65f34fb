/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every loop settles: whatever a loop takes, resizes and frees, if it does the same each time it
 * makes no page fault any more after a few turns. Loop bodies are drawn at random, and each runs in
 * a process of its own. And a loop whose sizes never repeat comes close to it. Counts ru_minflt.
 * Skipped without weir.
 */
#include "expect.h"

enum { BODIES = 60, SLOTS = 6, STEPS = 48, TURNS = 40, SETTLED = 20 };

struct step {
  enum { TAKE, TAKE_ZEROED, TAKE_ALIGNED, RESIZE, GIVE } kind;
  size_t slot;
  size_t size;
};

static struct step body[STEPS];
static size_t steps;
static unsigned char *blocks[SLOTS];

static size_t below(uint64_t *state, size_t limit) {
  return (size_t)(next_random(state) >> 16) % limit;
}

/* From a few kilobytes to four megabytes, each doubling equally likely, and often one of few. */
static size_t draw_size(uint64_t *state) {
  static const size_t usual[] = {48, 6000, 100000, 1 << 20, (1 << 20) + 64, 3 << 20};
  if (below(state, 3) == 0)
    return usual[below(state, EXPECT_COUNT(usual))];
  return (size_t)4096 + below(state, (size_t)8192 << below(state, 10));
}

static void add(int kind, size_t slot, size_t size) {
  body[steps].kind = kind;
  body[steps].slot = slot;
  body[steps++].size = size;
}

/* All blocks that a body takes it gives back. */
static void draw_body(uint64_t state) {
  bool live[SLOTS] = {false};
  size_t slot;

  steps = 0;
  while (steps < STEPS - SLOTS) {
    slot = below(&state, SLOTS);
    if (!live[slot])
      add((int)below(&state, 3), slot, draw_size(&state));
    else if (below(&state, 2) == 0)
      add(RESIZE, slot, draw_size(&state));
    else
      add(GIVE, slot, 0);
    live[slot] = body[steps - 1].kind != GIVE;
  }
  for (slot = 0; slot < SLOTS; slot++)
    if (live[slot])
      add(GIVE, slot, 0);
}

static void *make(const struct step *step) {
  switch (step->kind) {
  case TAKE:
    return malloc(step->size);
  case TAKE_ZEROED:
    return calloc(1, step->size);
  case TAKE_ALIGNED:
    return memalign(4096, step->size);
  default:
    return realloc(blocks[step->slot], step->size);
  }
}

static void turn(void) {
  size_t i;

  for (i = 0; i < steps; i++) {
    const struct step *step = &body[i];
    if (step->kind == GIVE) {
      free(blocks[step->slot]);
      continue;
    }
    blocks[step->slot] = expect_hide(make(step));
    REQUIRE(blocks[step->slot] != NULL, "%zu bytes", step->size);
    expect_touch(blocks[step->slot], step->size);
  }
}

/* In a process of its own; returns its status. */
static int run_body(uint64_t seed) {
  long faults;
  int i;

  draw_body(seed * 0x9e3779b97f4a7c15u);
  for (i = 0; i < SETTLED; i++)
    turn();
  faults = expect_faults(RUSAGE_SELF);
  for (; i < TURNS; i++)
    turn();
  faults = expect_faults(RUSAGE_SELF) - faults;
  EXPECT(faults == 0, "body %d makes %ld faults after %d turns", (int)seed, faults, SETTLED);
  return expect_done();
}

/* Three buffers a turn, of sizes that never come again: about 10 MiB, of which each fault is 4 KiB;
 * a tenth of a turn's pages is what a policy that keeps classes apart would not come near. */
static int run_changing(void) {
  uint64_t state = 12345;
  long faults = 0, pages = 0;
  int i, k;

  for (i = 0; i < 600; i++) {
    if (i == 300)
      faults = expect_faults(RUSAGE_SELF);
    for (k = 0; k < 3; k++) {
      size_t size = 100000 + below(&state, 7000000);
      blocks[k] = expect_hide(malloc(size));
      REQUIRE(blocks[k] != NULL, "%zu bytes", size);
      expect_touch(blocks[k], size);
      if (i >= 300)
        pages += (long)(size / 4096);
    }
    for (k = 0; k < 3; k++)
      free(blocks[k]);
  }
  faults = expect_faults(RUSAGE_SELF) - faults;
  EXPECT(faults < pages / 10, "%ld faults for %ld pages", faults, pages);
  return expect_done();
}

static void in_a_process(uint64_t seed) {
  int status = 0;
  pid_t child;

  fflush(stdout);
  child = fork();
  REQUIRE(child >= 0, "fork");
  /* What others failed in is not the child's. */
  if (child == 0)
    expect_failures = 0;
  if (child == 0)
    _exit(seed == 0 ? run_changing() : run_body(seed));
  REQUIRE(waitpid(child, &status, 0) == child, "waitpid");
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "body %d: status %d", (int)seed, status);
}

int main(void) {
  uint64_t seed;

  expect_start();
  if (!expect_strict())
    return EXPECT_SKIP;
  for (seed = 0; seed <= BODIES; seed++)
    in_a_process(seed);
  return expect_done();
}
