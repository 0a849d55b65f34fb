/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To be preloaded before the C library's malloc, which it hands on to: notes who calls, so that
 * reach.c can name the libraries. One thread only, so no lock.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* glibc's own names for them, which need no looking up, and so no malloc before there is one. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *block, size_t size);
void callers_begin(void);
void callers_print(void);

enum { CALLS = 100000, LIBRARIES = 100 };
static void *caller[CALLS];
static size_t calls;

static void note(void *address) {
  if (calls < CALLS)
    caller[calls++] = address;
}

void *malloc(size_t size) {
  note(__builtin_return_address(0));
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  note(__builtin_return_address(0));
  return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
  note(__builtin_return_address(0));
  return __libc_realloc(block, size);
}

void callers_begin(void) {
  calls = 0;
}

static const char *file_of(const void *address) {
  Dl_info info;
  const char *slash;
  if (dladdr(address, &info) == 0)
    return "unknown";
  slash = strrchr(info.dli_fname, '/');
  return slash != NULL ? slash + 1 : info.dli_fname;
}

/* Prints each file that called since callers_begin, and how often. */
void callers_print(void) {
  const char *file[LIBRARIES];
  size_t count[LIBRARIES], files = 0, noted = calls;
  for (size_t i = 0; i < noted; i++) {
    const char *name = file_of(caller[i]);
    size_t j = 0;
    while (j < files && strcmp(file[j], name) != 0)
      j++;
    if (j == files && files < LIBRARIES) {
      file[files] = name;
      count[files++] = 0;
    }
    if (j < files)
      count[j]++;
  }
  for (size_t i = 0; i < files; i++)
    printf(" %s %zu", file[i], count[i]);
}
