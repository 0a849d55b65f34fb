/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The earliest use of malloc a program can make: from its own .preinit_array, before any
 * constructor, then from constructors that also call dlsym and dlerror, and the latest, from
 * destructors. early.sh runs it with the hooks of hooks.c preloaded before and after weir.
 */
#include "expect.h"

enum { COUNT = 100000 };
static void *blocks[COUNT];
static int stage;

static void take_all(void) {
  size_t i;

  for (i = 0; i < COUNT; i++) {
    blocks[i] = malloc(i % 100 == 0 ? 70000 : i % 500);
    if (blocks[i] == NULL)
      _exit(30);
    *(volatile char *)blocks[i] = 1;
    /* Most go at once; what stays is freed after main began. */
    if (i % 100 == 0 || i % 3 == 0) {
      free(blocks[i]);
      blocks[i] = NULL;
    }
  }
}

static void preinit(int argc, char **argv, char **environment) {
  (void)argc;
  (void)argv;
  (void)environment;
  take_all();
  stage = 1;
}

#ifndef EXPECT_STATIC
__attribute__((section(".preinit_array"),
               used)) static void (*const preinit_entry)(int, char **, char **) = preinit;
#endif

__attribute__((constructor(101))) static void construct(void) {
  if (stage == 0)
    preinit(0, NULL, NULL);
#ifndef EXPECT_STATIC
  if (dlsym(RTLD_DEFAULT, "there_is_no_such_symbol") != NULL)
    _exit(31);
  /* The message of dlerror is allocated by the loader. */
  if (dlerror() == NULL || dlerror() != NULL)
    _exit(32);
  if (dlsym(RTLD_NEXT, "printf") == NULL)
    _exit(33);
#endif
  free(realloc(malloc(10), 100000));
  stage = 2;
}

__attribute__((destructor(101))) static void destruct(void) {
  void *late = malloc(100000);

  if (late == NULL)
    _exit(34);
  memset(late, 1, 100000);
  free(late);
  free(blocks[1]);
}

int main(void) {
  size_t i;

  expect_start();
  REQUIRE(stage == 2, "the constructor did not run");
  for (i = 0; i < COUNT; i++) {
    EXPECT(blocks[i] == NULL || *(volatile char *)blocks[i] == 1 ||
               malloc_usable_size(blocks[i]) > 0,
           "a block taken early is lost");
    if (i != 1)
      free(blocks[i]);
  }
  return expect_done();
}
