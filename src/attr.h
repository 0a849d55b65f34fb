/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiler attributes, and the answers that depend on how weir is compiled. The only header, with
 * os_*.c, that looks at the platform.
 */
#ifndef WR_ATTR_H
#define WR_ATTR_H

#include <limits.h> /* any header of libc, to know whose it is */

#define WR_LIKELY(x) __builtin_expect(!!(x), 1)
#define WR_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define WR_INLINE static inline __attribute__((always_inline))
#define WR_NOINLINE __attribute__((noinline))
#define WR_COLD __attribute__((noinline, cold))
/* Laid out together, so that a message that comes after a pause finds the path on few cold pages,
 * and each from the start of a cache line. */
#define WR_HOT __attribute__((hot, aligned(64)))
/* For a variable that is 0 at first and is read late for the first time, perhaps in a steady state:
 * among data that the dynamic linker has written, where that makes no page fault. */
#define WR_RESIDENT __attribute__((section(".data")))
#define WR_EXPORT __attribute__((visibility("default")))
#define WR_ALIGNED(n) __attribute__((aligned(n)))
/* One pointer and one integer a thread: small enough for the room that every libc keeps for
 * libraries loaded by dlopen, and read without a call. */
#define WR_TLS __thread __attribute__((tls_model("initial-exec")))

/* Whether this is part of a shared library: libtool says so. */
#ifdef PIC
#define WR_SHARED 1
#else
#define WR_SHARED 0
#endif

/* glibc passes main's arguments to constructors, also to those that run before it has set environ;
 * others pass none. */
#ifdef __GLIBC__
#define WR_LOAD_ARGUMENTS \
  int count __attribute__((unused)), char **arguments __attribute__((unused)), char **environment
#define WR_LOAD_ENVIRONMENT environment
#else
#define WR_LOAD_ARGUMENTS void
#define WR_LOAD_ENVIRONMENT NULL
#endif

/* ThreadSanitizer knows neither memory outside the ranges it maps nor locks handed over by the
 * kernel, so the system layer uses neither under it. */
#if defined(__SANITIZE_THREAD__)
#define WR_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WR_TSAN 1
#endif
#endif
#ifndef WR_TSAN
#define WR_TSAN 0
#endif

#endif
