/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every benchmark program shares: options, clocks, the numbers the kernel keeps about this
 * process, and arrays that do not come from malloc. The rule behind all of it: a program that
 * measures an allocator must not itself use that allocator for anything but the workload.
 *
 * Include this header before any other, because it asks libc for its full interface.
 */
#ifndef WEIR_BENCH_H
#define WEIR_BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifndef __cplusplus
#include <stdatomic.h>
#endif

/* The step at which a workload writes when it "writes every page". */
#define BENCH_PAGE 4096u

/* Set by bench_parse, so that every complaint starts with the program's name. */
static const char *bench_program = "bench";

/** Say one line on stderr and stop with `status`: 2 for bad use, 1 for a failed run. */
__attribute__((format(printf, 2, 3), noreturn)) static inline void
bench_stop(int status, const char *format, ...) {
  va_list list;
  va_start(list, format);
  fprintf(stderr, "%s: ", bench_program);
  vfprintf(stderr, format, list);
  fputc('\n', stderr);
  va_end(list);
  exit(status);
}

/* ---- options ---- */

enum bench_kind {
  BENCH_COUNT,  /* a whole number */
  BENCH_BYTES,  /* a number of bytes, with an optional K, M or G */
  BENCH_SWITCH, /* present or not; takes no value */
  BENCH_WORD,   /* one of a few words; the value becomes its index */
  BENCH_TEXT,   /* any text; the value becomes its address, and is 0 without the option */
  BENCH_TEXTS   /* the same several times; the value is the count of a struct bench_texts */
};

/* What an option of kind BENCH_TEXTS gathers, in order. */
struct bench_texts {
  uint64_t count; /* the option's value */
  const char *texts[16];
};

struct bench_option {
  const char *name; /* without the two dashes */
  enum bench_kind kind;
  uint64_t *value; /* holds the default before bench_parse */
  uint64_t least, most;
  const char *words; /* BENCH_WORD: "same|other"; else what stands for the value in --help */
  const char *help;
};

/* Read digits and, if `bytes`, a suffix. False when text is anything else or too large. */
static inline bool bench_read_number(const char *text, bool bytes, uint64_t *out) {
  if (*text < '0' || *text > '9')
    return false;
  char *end;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  if (errno != 0)
    return false;
  unsigned shift = 0;
  if (bytes && *end != '\0') {
    static const char suffixes[] = "KMG";
    const char *at = strchr(suffixes, *end & ~0x20);
    if (at == NULL || *at == '\0')
      return false;
    shift = 10 * (unsigned)(at - suffixes + 1);
    end++;
  }
  if (*end != '\0' || (number << shift) >> shift != number)
    return false;
  *out = (uint64_t)number << shift;
  return true;
}

static inline bool bench_read_word(const char *text, const char *words, uint64_t *out) {
  size_t length = strlen(text);
  uint64_t index = 0;
  for (const char *at = words; length > 0; index++) {
    const char *bar = strchrnul(at, '|');
    if ((size_t)(bar - at) == length && memcmp(at, text, length) == 0) {
      *out = index;
      return true;
    }
    if (*bar == '\0')
      break;
    at = bar + 1;
  }
  return false;
}

static inline void bench_help(const char *about, const struct bench_option *options, size_t count,
                              const char *operands) {
  printf("usage: %s [options]%s%s\n\n%s\n\noptions:\n", bench_program, operands != NULL ? " " : "",
         operands != NULL ? operands : "", about);
  for (size_t i = 0; i < count; i++) {
    const struct bench_option *o = &options[i];
    const char *kind = o->words != NULL                                  ? o->words
                       : o->kind == BENCH_COUNT                          ? "N"
                       : o->kind == BENCH_BYTES                          ? "BYTES"
                       : o->kind == BENCH_TEXT || o->kind == BENCH_TEXTS ? "TEXT"
                                                                         : "";
    char left[64];
    snprintf(left, sizeof left, "--%s %s", o->name, kind);
    printf("  %-28s %s", left, o->help);
    if (o->kind == BENCH_COUNT || o->kind == BENCH_BYTES)
      printf(" (default %" PRIu64 ")", *o->value);
    printf("\n");
  }
  printf("  %-28s %s\n", "--help", "this text");
}

static inline void bench_set(const struct bench_option *o, const char *text) {
  if (o->kind == BENCH_WORD) {
    if (!bench_read_word(text, o->words, o->value))
      bench_stop(2, "--%s: '%s' is not one of %s", o->name, text, o->words);
    return;
  }
  if (o->kind == BENCH_TEXT) {
    *o->value = (uint64_t)(uintptr_t)text;
    return;
  }
  if (o->kind == BENCH_TEXTS) {
    struct bench_texts *gathered = (struct bench_texts *)o->value;
    if (gathered->count == sizeof gathered->texts / sizeof *gathered->texts)
      bench_stop(2, "--%s is given too often", o->name);
    gathered->texts[gathered->count++] = text;
    return;
  }
  if (!bench_read_number(text, o->kind == BENCH_BYTES, o->value))
    bench_stop(2, "--%s: '%s' is not %s", o->name, text,
               o->kind == BENCH_BYTES ? "a number of bytes (such as 64, 4K, 1M, 2G)"
                                      : "a whole number");
  if (*o->value < o->least || *o->value > o->most)
    bench_stop(2, "--%s: %s is outside %" PRIu64 " to %" PRIu64, o->name, text, o->least, o->most);
}

/**
 * Read the command line into the options' values. --help prints and ends the program.
 *
 * operands  what may follow the options, for the help text; NULL when nothing may
 * returns   the index in argv of the first operand, which is argc when there is none
 */
static inline int bench_parse(int argc, char **argv, const char *program, const char *about,
                              const struct bench_option *options, size_t count,
                              const char *operands) {
  bench_program = program;
  int at = 1;
  for (; at < argc; at++) {
    const char *word = argv[at];
    if (strcmp(word, "--") == 0) {
      at++;
      break;
    }
    if (word[0] != '-')
      break;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
      bench_help(about, options, count, operands);
      exit(0);
    }
    const struct bench_option *found = NULL;
    const char *equals = strchrnul(word, '=');
    for (size_t i = 0; i < count && found == NULL; i++) {
      size_t length = strlen(options[i].name);
      if (strncmp(word, "--", 2) == 0 && (size_t)(equals - word) == length + 2 &&
          memcmp(word + 2, options[i].name, length) == 0)
        found = &options[i];
    }
    if (found == NULL)
      bench_stop(2, "unknown option '%s' (--help lists them)", word);
    if (found->kind == BENCH_SWITCH) {
      if (*equals != '\0')
        bench_stop(2, "--%s takes no value", found->name);
      *found->value = 1;
    } else if (*equals != '\0') {
      bench_set(found, equals + 1);
    } else if (at + 1 < argc) {
      bench_set(found, argv[++at]);
    } else {
      bench_stop(2, "--%s needs a value", found->name);
    }
  }
  if (at < argc && operands == NULL)
    bench_stop(2, "'%s' is not an option (see --help)", argv[at]);
  return at;
}

/* ---- time ---- */

static inline uint64_t bench_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline struct timespec bench_timespec(uint64_t ns) {
  struct timespec time = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  return time;
}

static inline void bench_sleep_ms(uint64_t ms) {
  struct timespec left = bench_timespec(ms * 1000000);
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

static inline void bench_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* ---- memory that is not the allocator's ---- */

/**
 * An array of `bytes`, straight from mmap and already written, so that filling it later neither
 * calls malloc nor faults. Never freed: it lives as long as the program.
 */
static inline void *bench_array(size_t bytes) {
  if (bytes == 0)
    bytes = 1;
  void *array = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (array == MAP_FAILED)
    bench_stop(1, "no memory for %zu bytes of results", bytes);
  memset(array, 1, bytes);
  memset(array, 0, bytes);
  return array;
}

/* Hide a block from the compiler: whatever was written to it counts as read, so no write and no
   pair of malloc and free may be optimised away. */
static inline void bench_keep(void *block) {
  __asm__ volatile("" : : "r"(block) : "memory");
}

/** Take a block from the allocator under test; a failure ends the run. */
static inline void *bench_take(size_t size) {
  void *block = malloc(size);
  if (block == NULL)
    bench_stop(1, "malloc(%zu) failed: %s", size, strerror(errno));
  bench_keep(block);
  return block;
}

/* One byte in every page, and the last byte, so that a block that straddles pages counts whole. */
static inline void bench_touch(void *block, size_t size) {
  volatile unsigned char *bytes = (volatile unsigned char *)block;
  for (size_t at = 0; at < size; at += BENCH_PAGE)
    bytes[at] = (unsigned char)at;
  if (size > 0)
    bytes[size - 1] = 1;
}

/* ---- random numbers: xorshift64*, one state a thread ---- */

static inline uint64_t bench_random(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 0x2545f4914f6cdd1du;
}

/* Make a good state from any seed, 0 included. */
static inline uint64_t bench_seed(uint64_t seed) {
  uint64_t state = (seed + 1) * 0x9e3779b97f4a7c15u;
  return state != 0 ? state : 1;
}

/* A size between least and most. Logarithmic: each doubling is equally likely, as in real heaps. */
static inline size_t bench_size(uint64_t *state, size_t least, size_t most, bool logarithmic) {
  if (!logarithmic)
    return least + (size_t)(bench_random(state) % (most - least + 1));
  unsigned low = 63u - (unsigned)__builtin_clzll(least | 1);
  unsigned high = 63u - (unsigned)__builtin_clzll(most | 1);
  for (;;) {
    uint64_t draw = bench_random(state);
    unsigned power = low + (unsigned)((draw >> 48) % (high - low + 1));
    size_t size = ((size_t)1 << power) + (size_t)(draw & (((size_t)1 << power) - 1));
    if (size >= least && size <= most)
      return size;
  }
}

/* ---- statistics ---- */

/* Heap sort: qsort of libc calls malloc for a large array. */
static inline void bench_sort(uint64_t *values, size_t count) {
  for (size_t start = count / 2, end = count; end > 1;) {
    uint64_t value;
    if (start > 0) {
      value = values[--start];
    } else {
      value = values[--end];
      values[end] = values[0];
    }
    size_t hole = start;
    for (size_t child; (child = 2 * hole + 1) < end; hole = child) {
      if (child + 1 < end && values[child + 1] > values[child])
        child++;
      if (values[child] <= value)
        break;
      values[hole] = values[child];
    }
    values[hole] = value;
  }
}

/* The smallest value that at least `percent` of the sorted values do not exceed. */
static inline uint64_t bench_percentile(const uint64_t *sorted, size_t count, unsigned percent) {
  if (count == 0)
    return 0;
  size_t rank = (count * percent + 99) / 100;
  return sorted[rank > 0 ? rank - 1 : 0];
}

/* ---- what the kernel says about this process ---- */

static inline uint64_t bench_faults(int who) {
  struct rusage usage;
  getrusage(who, &usage);
  return (uint64_t)usage.ru_minflt;
}

/* User and system time of processes that have ended. */
static inline uint64_t bench_cpu_ns(const struct rusage *usage) {
  return ((uint64_t)usage->ru_utime.tv_sec + (uint64_t)usage->ru_stime.tv_sec) * 1000000000u +
         ((uint64_t)usage->ru_utime.tv_usec + (uint64_t)usage->ru_stime.tv_usec) * 1000u;
}

/**
 * The number after `key` in a file such as /proc/self/status, in KiB as the kernel prints it; 0 if
 * the file or the key is not there. Reads through a buffer on the stack, without stdio, because a
 * stream would take its buffer from the allocator under test.
 */
static inline uint64_t bench_proc_kib(const char *path, const char *key) {
  char text[8192];
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return 0;
  size_t length = 0;
  for (ssize_t got; length < sizeof text - 1; length += (size_t)got) {
    got = read(file, text + length, sizeof text - 1 - length);
    if (got <= 0)
      break;
  }
  close(file);
  text[length] = '\0';
  for (const char *line = text; line != NULL && *line != '\0';) {
    if (strncmp(line, key, strlen(key)) == 0)
      return strtoull(line + strlen(key), NULL, 10);
    line = strchr(line, '\n');
    if (line != NULL)
      line++;
  }
  return 0;
}

#define BENCH_STATUS "/proc/self/status"
#define BENCH_ROLLUP "/proc/self/smaps_rollup"

/* ---- the steady part ---- */

/*
 * Two system calls that nothing else makes, "weir" and "weis" as process ids. A tracer that shows
 * getpriority beside the memory calls can tell which of those fell between them.
 */
#define BENCH_MARK_BEGIN 0x77656972
#define BENCH_MARK_END 0x77656973

static inline void bench_mark(unsigned which) {
  int saved = errno;
  (void)getpriority(PRIO_PROCESS, which);
  errno = saved;
}

/* What follows is in C's own terms for atomics; C++ has its standard library for that. */
#ifndef __cplusplus

/* ---- handing over between threads without allocating ---- */

static inline void bench_futex(_Atomic uint32_t *word, int operation, uint32_t value) {
  syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

/* Wait until *word is `wanted`: spin for the common short wait, then sleep in the kernel. */
static inline void bench_wait(_Atomic uint32_t *word, uint32_t wanted) {
  for (int spin = 0; spin < 2000; spin++) {
    if (atomic_load_explicit(word, memory_order_acquire) == wanted)
      return;
    bench_relax();
  }
  for (uint32_t seen; (seen = atomic_load_explicit(word, memory_order_acquire)) != wanted;)
    bench_futex(word, FUTEX_WAIT_PRIVATE, seen);
}

static inline void bench_post(_Atomic uint32_t *word, uint32_t value) {
  atomic_store_explicit(word, value, memory_order_release);
  bench_futex(word, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

static inline void bench_thread(pthread_t *thread, void *(*body)(void *), void *argument) {
  int error = pthread_create(thread, NULL, body, argument);
  if (error != 0)
    bench_stop(1, "cannot start a thread: %s", strerror(error));
}

/* ---- checking blocks ---- */

/* A value made from a block's address, which no other live block has. */
static inline uint64_t bench_key(const void *block) {
  return (uint64_t)(uintptr_t)block * 0x9e3779b97f4a7c15u;
}

/* At the beginning of a block that knows its size. */
struct bench_header {
  uint64_t size;
  uint64_t cookie;
};

static inline uint64_t bench_cookie(const void *block, uint64_t size) {
  return ((uint64_t)(uintptr_t)block ^ (size << 40)) * 0x9e3779b97f4a7c15u;
}

/** Take a block of at least 16 bytes with a header; its last byte is marked as well. */
static inline struct bench_header *bench_take_marked(size_t size) {
  struct bench_header *block = bench_take(size);
  block->size = size;
  block->cookie = bench_cookie(block, size);
  if (size > sizeof *block)
    ((unsigned char *)block)[size - 1] = (unsigned char)size;
  return block;
}

/** Free such a block, or NULL; one that was handed out twice, or written to, ends the run. */
static inline void bench_free_marked(struct bench_header *block) {
  if (block == NULL)
    return;
  uint64_t size = block->size;
  if (block->cookie != bench_cookie(block, size) ||
      (size > sizeof *block && ((unsigned char *)block)[size - 1] != (unsigned char)size))
    bench_stop(1, "the block at %p was overwritten while it was live", (void *)block);
  block->cookie = 0;
  bench_keep(block);
  free(block);
}

/** Take a block of at least 8 bytes whose first word holds its size under its key; its last byte
 * belongs to it. */
static inline uint64_t *bench_take_sealed(size_t size) {
  uint64_t *block = bench_take(size);
  *block = bench_key(block) ^ size;
  if (size > sizeof *block)
    ((unsigned char *)block)[size - 1] = (unsigned char)~size;
  return block;
}

/** Free such a block; its size must be between least and most. */
static inline void bench_free_sealed(uint64_t *block, uint64_t least, uint64_t most) {
  uint64_t size = *block ^ bench_key(block);
  if (size < least || size > most ||
      (size > sizeof *block && ((unsigned char *)block)[size - 1] != (unsigned char)~size))
    bench_stop(1, "the block at %p was overwritten while it was live", (void *)block);
  *block = 0;
  bench_keep(block);
  free(block);
}

/* ---- measuring threads ---- */

/* Where threads wait to start at once, and where they are through. */
struct bench_course {
  pthread_barrier_t start, finish;
};

struct bench_measured {
  uint64_t faults, ns;
};

/** Before the first of `threads` threads is made. */
static inline void bench_course_init(struct bench_course *course, uint64_t threads) {
  pthread_barrier_init(&course->start, NULL, (unsigned)threads + 1);
  pthread_barrier_init(&course->finish, NULL, (unsigned)threads + 1);
}

/** Each thread, when it is ready. Waits twice, so that the main thread can look at the faults when
 * all are there and none has begun. */
static inline void bench_course_enter(struct bench_course *course) {
  pthread_barrier_wait(&course->start);
  pthread_barrier_wait(&course->start);
}

/** Each thread, when it is through. */
static inline void bench_course_leave(struct bench_course *course) {
  pthread_barrier_wait(&course->finish);
}

/** The main thread: lets them start, and waits until all are through. */
static inline struct bench_measured bench_course_run(struct bench_course *course) {
  pthread_barrier_wait(&course->start);
  struct bench_measured before = {bench_faults(RUSAGE_SELF), bench_now()};
  pthread_barrier_wait(&course->start);
  pthread_barrier_wait(&course->finish);
  uint64_t now = bench_now();
  return (struct bench_measured){bench_faults(RUSAGE_SELF) - before.faults, now - before.ns};
}

#endif /* not C++ */

#endif
