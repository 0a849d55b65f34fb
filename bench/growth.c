/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth by realloc: vectors that double, or grow by half, from 16 bytes to many megabytes, as a
 * filter's list of points does while a cloud comes in; or strings that become longer by a few dozen
 * bytes at a time, as in a logger or a serialiser. The first is the growth of every vector class,
 * of which Koenig ("Why are vectors efficient?", JOOP 1998) explains the factors; the second is the
 * append-one-more loop that realloc was made for. With --vectors they grow in turns, so that none
 * finds free room behind it.
 *
 * An operation is one realloc, together with writing what was added: one element a page of a
 * vector, every byte of a string. After each, the first, the middle and the last of the old
 * contents are checked. "moves" counts how often the block came back at another address.
 */
#include "bench.h"

enum { PATTERN_GROW, PATTERN_APPEND };
enum { MOST_VECTORS = 4096, FIRST_SIZE = 16, STEP_LEAST = 16, STEP_MOST = 64 };

static uint64_t vector_count = 1, factor = 2, percent, limit, rounds, pattern = PATTERN_GROW;
static uint64_t seed = 1;

static const struct bench_option options[] = {
    {"vectors", BENCH_COUNT, &vector_count, 1, MOST_VECTORS, NULL, "how many grow in turns"},
    {"pattern", BENCH_WORD, &pattern, 0, 0, "grow|append",
     "grow by a factor, or append 16 to 64 bytes at a time (default grow)"},
    {"factor", BENCH_COUNT, &factor, 2, 64, NULL, "how many times larger each time"},
    {"percent", BENCH_COUNT, &percent, 0, 6400, NULL,
     "the same in percent, as in 150; 0: --factor"},
    {"limit", BENCH_BYTES, &limit, 0, (uint64_t)1 << 40, NULL,
     "size at which growth ends; 0: 64M, or 16K when appending"},
    {"rounds", BENCH_COUNT, &rounds, 0, (uint64_t)1 << 40, NULL,
     "how often all grow and are freed; 0: 8, or 20000 when appending, by --vectors"},
    {"seed", BENCH_COUNT, &seed, 0, UINT64_MAX, NULL, "seed of the lengths that are appended"},
};

struct vector {
  unsigned char *data;
  size_t size;
};

static struct vector vectors[MOST_VECTORS];
static uint64_t state, calls, moves;

/* ---- the contents of vectors: an element is made from its place and whose it is ---- */

static uint64_t word_at(const struct vector *vector, size_t at) {
  return (at + 1) * 0x9e3779b97f4a7c15u + (uint64_t)(vector - vectors);
}

static void write_word(struct vector *vector, size_t at) {
  uint64_t word = word_at(vector, at);
  memcpy(vector->data + at, &word, sizeof word);
}

static void check_word(const struct vector *vector, size_t at) {
  uint64_t word;
  memcpy(&word, vector->data + at, sizeof word);
  if (word != word_at(vector, at))
    bench_stop(1, "realloc lost the contents of the block at %p, at %zu", (void *)vector->data, at);
}

/* The first element of every page, and the last of all: what lies where never changes, so an
   element that is both is written twice with the same value. */
static void write_elements(struct vector *vector, size_t old_size) {
  for (size_t at = (old_size + BENCH_PAGE - 1) / BENCH_PAGE * BENCH_PAGE; at < vector->size;
       at += BENCH_PAGE)
    write_word(vector, at);
  write_word(vector, vector->size - sizeof(uint64_t));
}

static void check_elements(const struct vector *vector, size_t old_size) {
  if (old_size == 0)
    return;
  check_word(vector, 0);
  if (old_size > BENCH_PAGE)
    check_word(vector, old_size / 2 / BENCH_PAGE * BENCH_PAGE);
  check_word(vector, old_size - sizeof(uint64_t));
}

/* ---- the contents of strings: a line of text, over and over ---- */

#define LINE "[INFO] [navigation]: pose 12.345 -6.789 after 1024 of 4096 cells"
static const char text[] = LINE LINE;
_Static_assert(sizeof LINE == STEP_MOST + 1, "a piece of at most a line must fit into two");

static void write_text(struct vector *string, size_t old_size) {
  memcpy(string->data + old_size, text + old_size % STEP_MOST, string->size - old_size);
}

static void check_char(const struct vector *string, size_t at) {
  if (string->data[at] != (unsigned char)text[at % STEP_MOST])
    bench_stop(1, "realloc lost the contents of the block at %p, at %zu", (void *)string->data, at);
}

static void check_text(const struct vector *string, size_t old_size) {
  if (old_size == 0)
    return;
  check_char(string, 0);
  check_char(string, old_size / 2);
  check_char(string, old_size - 1);
}

/* ---- growing ---- */

static size_t next_size(size_t size) {
  if (pattern == PATTERN_APPEND)
    return size + (size_t)(bench_random(&state) % (STEP_MOST - STEP_LEAST + 1)) + STEP_LEAST;
  if (size == 0)
    return FIRST_SIZE;
  size_t next = size / 100 * (size_t)percent + size % 100 * (size_t)percent / 100;
  next -= next % sizeof(uint64_t);
  return next > size ? next : size + sizeof(uint64_t);
}

/* The address as a number, because one that realloc has freed may not even be compared. */
static void resize(struct vector *vector, size_t size) {
  uintptr_t before = (uintptr_t)vector->data;
  unsigned char *data = realloc(vector->data, size);
  if (data == NULL)
    bench_stop(1, "realloc(%zu) failed: %s", size, strerror(errno));
  bench_keep(data);
  calls++;
  moves += before != 0 && (uintptr_t)data != before;
  vector->data = data;
  vector->size = size;
}

/* False once the next step would go beyond the limit. */
static bool grow(struct vector *vector) {
  size_t old_size = vector->size, size = next_size(old_size);
  if (size > limit)
    return false;
  resize(vector, size);
  if (pattern == PATTERN_APPEND) {
    check_text(vector, old_size);
    write_text(vector, old_size);
  } else {
    check_elements(vector, old_size);
    write_elements(vector, old_size);
  }
  bench_keep(vector->data);
  return true;
}

static void run_round(void) {
  bool growing;
  do {
    growing = false;
    for (size_t i = 0; i < vector_count; i++)
      growing |= grow(&vectors[i]);
  } while (growing);
  for (size_t i = 0; i < vector_count; i++) {
    free(vectors[i].data);
    vectors[i] = (struct vector){NULL, 0};
  }
}

/* What the two patterns do unless told otherwise takes about the same time. */
static void choose_defaults(void) {
  bool append = pattern == PATTERN_APPEND;
  if (percent == 0)
    percent = factor * 100;
  if (percent <= 100)
    bench_stop(2, "--percent must be over 100");
  if (limit == 0)
    limit = append ? 16384 : 64u << 20;
  if (limit < FIRST_SIZE + STEP_MOST)
    bench_stop(2, "--limit must be at least %d", FIRST_SIZE + STEP_MOST);
  if (rounds == 0)
    rounds = (append ? 20000 : 8) / vector_count;
  if (rounds == 0)
    rounds = 1;
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "growth", "Grow vectors or strings by realloc, and check them.", options,
              sizeof options / sizeof *options, NULL);
  choose_defaults();
  state = bench_seed(seed);
  uint64_t faults = bench_faults(RUSAGE_SELF);
  uint64_t start = bench_now();
  for (uint64_t i = 0; i < rounds; i++)
    run_round();
  uint64_t elapsed_ns = bench_now() - start;
  faults = bench_faults(RUSAGE_SELF) - faults;
  printf("{\"bench\":\"growth\",\"vectors\":%" PRIu64 ",\"pattern\":\"%s\",\"percent\":%" PRIu64
         ",\"limit\":%" PRIu64 ",\"rounds\":%" PRIu64 ",\"seed\":%" PRIu64 ",\"ops\":%" PRIu64
         ",\"moves\":%" PRIu64 ",\"ns_per_op\":%.3f,\"faults\":%" PRIu64
         ",\"rss_peak_kib\":%" PRIu64 ",\"rss_final_kib\":%" PRIu64 "}\n",
         vector_count, pattern == PATTERN_APPEND ? "append" : "grow", percent, limit, rounds, seed,
         calls, moves, (double)elapsed_ns / (double)calls, faults,
         bench_proc_kib(BENCH_STATUS, "VmHWM:"), bench_proc_kib(BENCH_STATUS, "VmRSS:"));
  return 0;
}
