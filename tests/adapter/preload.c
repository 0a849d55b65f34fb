/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that knows neither weir nor rcutils when it is linked, for preload.sh: it opens
 * librcutils as a plugin (as Python does), has it allocate, and says where that came from. The
 * argument names librcutils; a second one says what to do besides: "free" gives a block of the
 * default allocator to free, "limit" takes blocks until there are no more, "fork" has a child do it
 * all.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <rcutils/logging.h>
#include <rcutils/types/string_map.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/arena.h>

static void *rcutils;

/* Ends the program when there is no such function. */
static void *find(void *library, const char *name) {
  void *function = dlsym(library, name);
  if (function == NULL) {
    printf("there is no %s\n", name);
    exit(EXIT_FAILURE);
  }
  return function;
}

#define OF_RCUTILS(name) ((__typeof__(&name))find(rcutils, #name))
#define OF_WEIR(name) ((__typeof__(&name))find(RTLD_DEFAULT, #name))

/* The file that an address lies in, without its folder. */
static const char *file_of(void *address) {
  Dl_info info;
  const char *slash;
  if (dladdr(address, &info) == 0)
    return "none";
  slash = strrchr(info.dli_fname, '/');
  return slash != NULL ? slash + 1 : info.dli_fname;
}

static uint64_t live(weir_arena_t *arena) {
  weir_stats_t stats;
  OF_WEIR(weir_arena_stats)(arena, &stats, sizeof stats);
  return stats.live;
}

/* rcutils' own use of its default allocator, from inside librcutils. */
static int use_rcutils(weir_arena_t *arena) {
  uint64_t before = live(arena);
  if (OF_RCUTILS(rcutils_logging_initialize)() != 0 ||
      OF_RCUTILS(rcutils_logging_set_logger_level)("robot", RCUTILS_LOG_SEVERITY_WARN) != 0)
    return EXIT_FAILURE;
  printf("logging in arena %s\n", live(arena) > before ? "yes" : "no");
  if (OF_RCUTILS(rcutils_logging_shutdown)() != 0)
    return EXIT_FAILURE;
  printf("left %llu\n", (unsigned long long)(live(arena) - before));
  return EXIT_SUCCESS;
}

static size_t take_all(const rcutils_allocator_t *allocator) {
  size_t bytes = 0;
  while (bytes < (size_t)1 << 30 && allocator->allocate(100000, allocator->state) != NULL)
    bytes += 100000;
  return bytes;
}

static int run(const char *what) {
  /* As a library that was linked with librcutils would find it. */
  __typeof__(&rcutils_get_default_allocator) get =
      dlsym(RTLD_DEFAULT, "rcutils_get_default_allocator");
  rcutils_allocator_t allocator;
  weir_arena_t *arena;
  void *block;
  if (get == NULL) {
    printf("not preloaded\n");
    return EXIT_SUCCESS;
  }
  allocator = get();
  arena = OF_WEIR(weir_arena_of)(block = allocator.allocate(100, allocator.state));
  printf("default allocator of %s, functions of %s, weir_malloc of %s, malloc of %s\n",
         file_of((void *)get), file_of((void *)allocator.allocate), file_of(OF_WEIR(weir_malloc)),
         file_of(dlsym(RTLD_DEFAULT, "malloc")));
  printf("arena %s, mark %zu\n", OF_WEIR(weir_arena_name)(arena),
         OF_WEIR(weir_arena_retain)(arena));
  if (strcmp(what, "free") == 0)
    free(block);
  else
    allocator.deallocate(block, allocator.state);
  if (strcmp(what, "limit") == 0)
    printf("limit %zu\n", take_all(&allocator));
  return use_rcutils(arena);
}

static int run_in_child(void) {
  int status = EXIT_FAILURE;
  pid_t child = fork();
  if (child == 0)
    exit(run(""));
  return waitpid(child, &status, 0) == child ? status : EXIT_FAILURE;
}

int main(int argc, char **argv) {
  const char *what = argc > 2 ? argv[2] : "";
  if (argc < 2 || (rcutils = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) == NULL) {
    printf("%s\n", dlerror());
    return EXIT_FAILURE;
  }
  return strcmp(what, "fork") == 0 ? run_in_child() : run(what);
}
