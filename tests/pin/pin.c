/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that pin.sh builds in several ways and runs under many environments: calls
 * weir_glibc_pin, and prints its result and what glibc's own malloc and weir's mark make of it.
 *
 *     pin BYTES     prints RESULT BEFORE AFTER THREAD ADAPTED MARK
 *     pin           the same without the call: "none" and what is to be seen if nothing changes
 *
 * BEFORE and AFTER are page faults a turn of a loop that takes, writes and frees two buffers of 1
 * MiB, THREAD those of another thread's, and ADAPTED those of the loop after one buffer of 4 MiB
 * was freed, at which glibc moves thresholds that nobody has set. glibc's malloc is used even where
 * it is not the process's.
 *
 * TAKES_ADDRESS: the address of malloc is taken, which gives a program of fixed addresses a malloc
 * of its own to the eyes of dlsym. OWN_MALLOC: the program has a malloc of its own, and prints the
 * result alone. STATIC: it is linked statically.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <weir/pin.h>
#include <weir/weir.h>

enum { TURNS = 6, WARM = 2 };
#define MIB ((size_t)1 << 20)

static void *(*take)(size_t);
static void (*give)(void *);

#ifdef OWN_MALLOC
static _Alignas(16) char room[4 * MIB];
static size_t used;

void *malloc(size_t size) {
  void *block = room + used;
  size = (size + 15) / 16 * 16;
  if (size > sizeof room - used)
    return NULL;
  used += size;
  return block;
}

void free(void *block) {
  (void)block;
}

void *calloc(size_t count, size_t size) {
  return malloc(count * size);
}

void *realloc(void *block, size_t size) {
  void *taken = malloc(size);
  /* What was there before is inside of `room`, and so is what follows it. */
  if (taken != NULL && block != NULL)
    memmove(taken, block, size);
  return taken;
}
#endif

#ifdef TAKES_ADDRESS
void *(*volatile taken_address)(size_t);
#endif

static void find_glibc(void) {
#ifdef STATIC
  take = malloc;
  give = free;
#else
  void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (libc == NULL)
    exit(77);
  take = (void *(*)(size_t))dlsym(libc, "malloc");
  give = (void (*)(void *))dlsym(libc, "free");
#endif
}

static void *take_written(size_t size) {
  volatile char *block = take(size);
  if (block == NULL)
    exit(3);
  for (size_t at = 0; at < size; at += 4096)
    block[at] = 1;
  return (void *)(uintptr_t)block;
}

static long faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/* Faults a turn, rounded, so that a stray one in a few turns does not show. */
static long loop(void) {
  long before = 0;
  for (int turn = -WARM; turn < TURNS; turn++) {
    void *one, *other;
    if (turn == 0)
      before = faults();
    one = take_written(MIB);
    other = take_written(MIB);
    give(one);
    give(other);
  }
  return (faults() - before + TURNS / 2) / TURNS;
}

static void *loop_in_thread(void *result) {
  *(long *)result = loop();
  return NULL;
}

static const char *call(const char *bytes) {
  static const char *const names[] = {"SET", "OPERATOR", "FAILED", "NOT_GLIBC", "WEIR"};
  weir_pin_t result;
  errno = 99;
  result = weir_glibc_pin((size_t)strtoull(bytes, NULL, 10));
  if (errno != 99)
    return "errno";
#ifndef STATIC
  if (dlerror() != NULL)
    return "dlerror";
#endif
  return (unsigned)result < sizeof names / sizeof names[0] ? names[result] : "unknown";
}

static void show(const char *bytes) {
  long before = loop(), after, in_thread = -1, adapted;
  const char *result = bytes != NULL ? call(bytes) : "none";
  pthread_t thread;
  after = loop();
  if (pthread_create(&thread, NULL, loop_in_thread, &in_thread) != 0 ||
      pthread_join(thread, NULL) != 0)
    exit(2);
  give(take_written(4 * MIB));
  adapted = loop();
  printf("%s %ld %ld %ld %ld %zu\n", result, before, after, in_thread, adapted, weir_retain());
}

int main(int argc, char **argv) {
#ifdef TAKES_ADDRESS
  taken_address = malloc;
  if (dlsym(RTLD_DEFAULT, "malloc") != (void *)taken_address)
    return 2;
#endif
  find_glibc();
#ifdef OWN_MALLOC
  (void)show;
  printf("%s\n", call(argc > 1 ? argv[1] : "0"));
#else
  show(argc > 1 ? argv[1] : NULL);
#endif
  return 0;
}
