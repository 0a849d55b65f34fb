/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile neighbour for early.sh: a library that hooks mmap, munmap, madvise, open and
 * pthread_create, as tracing and locking preloads do, finds the real ones with dlsym, allocates
 * inside each hook, and allocates a hundred thousand blocks in its constructor.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

static __thread int depth;

/* What the hook of a tracing library does: note the call in memory of its own. */
static void note(const char *name) {
  char *copy;

  if (depth > 8)
    _exit(40);
  copy = strdup(name);
  if (copy == NULL)
    _exit(41);
  free(copy);
}

static void *real(const char *name) {
  void *symbol = dlsym(RTLD_NEXT, name);

  if (symbol == NULL)
    _exit(42);
  return symbol;
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
  void *(*next)(void *, size_t, int, int, int, off_t) =
      (void *(*)(void *, size_t, int, int, int, off_t))real("mmap");
  void *result;

  depth++;
  note("mmap");
  result = next(address, length, protection, flags, fd, offset);
  depth--;
  return result;
}

int munmap(void *address, size_t length) {
  int (*next)(void *, size_t) = (int (*)(void *, size_t))real("munmap");
  int result;

  depth++;
  note("munmap");
  result = next(address, length);
  depth--;
  return result;
}

int madvise(void *address, size_t length, int advice) {
  int (*next)(void *, size_t, int) = (int (*)(void *, size_t, int))real("madvise");
  int result;

  depth++;
  note("madvise");
  result = next(address, length, advice);
  depth--;
  return result;
}

int open(const char *path, int flags, ...) {
  int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))real("open");
  va_list arguments;
  int mode;

  va_start(arguments, flags);
  mode = va_arg(arguments, int);
  va_end(arguments);
  note(path);
  return next(path, flags, mode);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *argument) {
  int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = (int (*)(
      pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))real("pthread_create");

  note("pthread_create");
  return next(thread, attributes, body, argument);
}

__attribute__((constructor)) static void construct(void) {
  static void *kept[1000];
  size_t i;

  for (i = 0; i < 100000; i++) {
    size_t place = i % 1000;
    free(kept[place]);
    kept[place] = malloc(i % 1000 == 7 ? 300000 : i % 3000);
    if (kept[place] == NULL)
      _exit(43);
    *(volatile char *)kept[place] = 1;
  }
  for (i = 0; i < 1000; i += 2) {
    free(kept[i]);
    kept[i] = NULL;
  }
}
