/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page source for tests: see fake.h. A mutex guards all of it.
 */
#include "fake.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bits.h"
#include "init.h"
#include "unit.h"

/* Address space only; spans begin in the middle of it. */
#define REGION ((size_t)4 << 30)
/* The smallest page; what is mapped and resident is kept for each. */
#define GRAIN ((size_t)4096)
#define GRAINS (REGION / GRAIN)

#define MAPPED 1
#define RESIDENT 2

struct fake fake;
const size_t fake_pages[] = {4096, 16384, 65536, 0};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char *region;
static unsigned char *state; /* of each grain of the region */
static size_t used;          /* bytes from the start that were ever mapped */
static size_t mapped_grains, resident_grains;
static enum fake_kind fail_kind;
static size_t fail_from, fail_count;
static bool failed;

static void *reserve(size_t length) {
  void *got = mmap(NULL, length, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ck_assert_ptr_ne(got, MAP_FAILED);
  return got;
}

static bool is_ours(const void *address) {
  return (uintptr_t)address - (uintptr_t)region < REGION;
}

/* Whether all grains of a range have exactly the bits `want` among `mask`. */
static bool all_are(const char *address, size_t length, unsigned mask, unsigned want) {
  size_t first = (size_t)(address - region) / GRAIN;
  for (size_t i = first; i < first + length / GRAIN; i++)
    if ((state[i] & mask) != want)
      return false;
  return true;
}

static void set_all(const char *address, size_t length, unsigned char value) {
  size_t first = (size_t)(address - region) / GRAIN;
  for (size_t i = first; i < first + length / GRAIN; i++) {
    mapped_grains += (value & MAPPED) != 0;
    mapped_grains -= (state[i] & MAPPED) != 0;
    resident_grains += (value & RESIDENT) != 0;
    resident_grains -= (state[i] & RESIDENT) != 0;
    state[i] = value;
  }
}

/* Whether this call shall fail. With the mutex. */
static bool fails(enum fake_kind kind) {
  if ((kind != fail_kind && fail_kind != FAKE_ANY) || fail_count == 0)
    return false;
  if (fail_from > 1) {
    fail_from--;
    return false;
  }
  fail_count--;
  failed = true;
  return true;
}

static void record(enum fake_kind kind, void *address, size_t length, int error, bool huge) {
  if (fake.calls < FAKE_CALLS)
    fake.call[fake.calls++] = (struct fake_call){kind, address, length, error, huge};
}

static char *place(char *hint, size_t length) {
  size_t at;
  if (hint != NULL && !fake.ignores_hints && is_ours(hint) &&
      length <= REGION - (size_t)(hint - region) && all_are(hint, length, MAPPED, 0))
    return hint;
  at = used;
  if (fake.ignores_hints || fake.skew != 0)
    at = wr_bits_up(at + 1, WR_UNIT) + fake.skew * fake.page;
  return region + wr_bits_up(at, fake.page);
}

static int map(struct wr_source *source, void *hint, size_t length, void **address) {
  int error = 0;
  char *at = NULL;
  (void)source;
  pthread_mutex_lock(&mutex);
  ck_assert_uint_eq(length % fake.page, 0);
  if (fails(FAKE_MAP)) {
    error = ENOMEM;
  } else {
    at = place(hint, length);
    if ((size_t)(at - region) > REGION || length > REGION - (size_t)(at - region) ||
        !all_are(at, length, MAPPED, 0))
      error = ENOMEM;
  }
  if (error == 0) {
    size_t end = (size_t)(at - region) + length;
    set_all(at, length, MAPPED);
    /* Up to the middle grows what comes without a hint. */
    if (end <= REGION / 2)
      used = wr_bits_max(used, end);
    *address = at;
  }
  record(FAKE_MAP, at, length, error, false);
  pthread_mutex_unlock(&mutex);
  return error;
}

static void drop(char *address, size_t length) {
  if (fake.page % (size_t)sysconf(_SC_PAGESIZE) == 0)
    ck_assert_int_eq(madvise(address, length, MADV_DONTNEED), 0);
  else
    memset(address, 0, length);
}

static void check_range(const char *address, size_t length) {
  ck_assert_uint_gt(length, 0);
  ck_assert_uint_eq(length % fake.page, 0);
  ck_assert_uint_eq((uintptr_t)address % fake.page, 0);
  ck_assert(all_are(address, length, MAPPED, MAPPED));
}

static int unmap(struct wr_source *source, void *address, size_t length) {
  int error;
  (void)source;
  pthread_mutex_lock(&mutex);
  check_range(address, length);
  error = fails(FAKE_UNMAP) ? ENOMEM : 0;
  if (error == 0) {
    drop(address, length);
    set_all(address, length, 0);
  }
  record(FAKE_UNMAP, address, length, error, false);
  pthread_mutex_unlock(&mutex);
  return error;
}

static bool is_stuck(const char *address, size_t length) {
  return address < fake.stuck + fake.stuck_length && address + length > fake.stuck;
}

static int purge(struct wr_source *source, void *address, size_t length) {
  int error;
  (void)source;
  if (!is_ours(address))
    return wr_os_purge(address, length);
  pthread_mutex_lock(&mutex);
  check_range(address, length);
  error = fails(FAKE_PURGE) || is_stuck(address, length) ? EINVAL : 0;
  if (fake.refusal != 0)
    error = fake.refusal;
  if (error == 0) {
    drop(address, length);
    set_all(address, length, MAPPED);
  }
  record(FAKE_PURGE, address, length, error, false);
  pthread_mutex_unlock(&mutex);
  return error;
}

static int move(struct wr_source *source, void *from, void *to, size_t length) {
  int error;
  (void)source;
  pthread_mutex_lock(&mutex);
  check_range(from, length);
  check_range(to, length);
  error = !fails(FAKE_MOVE) ? 0 : fake.loses ? ENOTRECOVERABLE : EFAULT;
  if (error == 0) {
    memcpy(to, from, length);
    drop(from, length);
    set_all(from, length, MAPPED);
    set_all(to, length, MAPPED | RESIDENT);
  } else if (fake.loses) {
    drop(to, length);
    set_all(to, length, 0);
  }
  record(FAKE_MOVE, to, length, error, false);
  pthread_mutex_unlock(&mutex);
  return error;
}

static int resident(struct wr_source *source, void *address, size_t length, size_t *end) {
  int error;
  (void)source;
  if (!is_ours(address))
    return wr_os_resident(address, length, end);
  pthread_mutex_lock(&mutex);
  check_range(address, length);
  error = fails(FAKE_RESIDENT) ? EAGAIN : 0;
  *end = fake.locked ? length : 0;
  if (error == 0 && !fake.swapped && !fake.locked)
    for (size_t at = 0; at < length; at += GRAIN)
      if (!all_are((char *)address + at, GRAIN, RESIDENT, 0))
        *end = wr_bits_up(at + 1, fake.page);
  record(FAKE_RESIDENT, address, length, error, false);
  pthread_mutex_unlock(&mutex);
  return error;
}

static int huge(struct wr_source *source, void *address, size_t length, bool wanted) {
  int error;
  (void)source;
  pthread_mutex_lock(&mutex);
  check_range(address, length);
  error = fails(FAKE_HUGE) ? EINVAL : 0;
  record(FAKE_HUGE, address, length, error, wanted);
  pthread_mutex_unlock(&mutex);
  return error;
}

static int lock(struct wr_source *source, void *address, size_t length) {
  int error;
  (void)source;
  pthread_mutex_lock(&mutex);
  check_range(address, length);
  error = fails(FAKE_LOCK) ? EPERM : 0;
  record(FAKE_LOCK, address, length, error, false);
  pthread_mutex_unlock(&mutex);
  return error;
}

void fake_begin(size_t page) {
  memset(&fake, 0, sizeof fake);
  fake.page = page;
  /* The page map keeps nodes that lie in the former region, so that one stays. */
  region = (char *)reserve(REGION + ((size_t)16 << 20));
  region += -(uintptr_t)region & (((size_t)16 << 20) - 1);
  state = (unsigned char *)reserve(GRAINS);
  used = mapped_grains = resident_grains = 0;
  fake_forget();
}

void fake_source(struct wr_source *source) {
  static const struct wr_source_ops ops = {map, unmap, purge, move, resident, huge, lock};
  source->ops = &ops;
  source->page = fake.page;
  source->thp = WR_THP_DEFAULT;
}

struct wr_arena *fake_arena(size_t page, size_t mark) {
  struct wr_arena *arena = (struct wr_arena *)reserve(sizeof *arena);
  fake_begin(page);
  fake_source(&arena->source);
  wr_arena_init(arena, mark, region + REGION / 2);
  return arena;
}

void fake_default(void) {
  wr_init();
  fake_begin(wr_arena_default.source.page);
  fake_source(&wr_arena_default.source);
  wr_arena_default.spans.end = region + REGION / 2;
}

void fake_fail(enum fake_kind kind, size_t from, size_t count) {
  fail_kind = kind;
  fail_from = from;
  fail_count = count;
  failed = false;
}

bool fake_failed(void) {
  return failed;
}

void fake_forget(void) {
  fake.calls = 0;
  fake_fail(FAKE_ANY, 0, 0);
}

size_t fake_calls(enum fake_kind kind) {
  size_t count = 0;
  for (size_t i = 0; i < fake.calls; i++)
    count += kind == FAKE_ANY || fake.call[i].kind == kind;
  return count;
}

const struct fake_call *fake_call(enum fake_kind kind, size_t number) {
  for (size_t i = 0; i < fake.calls; i++)
    if (fake.call[i].kind == kind && number-- == 0)
      return &fake.call[i];
  ck_abort_msg("no such call");
  return NULL;
}

struct wr_span *fake_take(struct wr_spans *spans, size_t size) {
  size_t stale = SIZE_MAX;
  struct wr_span *span = wr_span_take(spans, size, 1, &stale);
  ck_assert_ptr_nonnull(span);
  ck_assert_uint_le(stale, span->usable);
  wr_span_check(spans);
  return span;
}

void fake_give(struct wr_span *span) {
  ck_assert(wr_span_give(span, span->user));
  wr_span_check(span->spans);
}

struct wr_span *fake_slab(struct wr_spans *spans, unsigned units) {
  struct wr_span *slab = wr_span_take_slab(spans, units, 64, 0);
  if (slab != NULL)
    atomic_store_explicit(&slab->owner, FAKE_OWNER, memory_order_release);
  return slab;
}

void fake_touch(void *address, size_t length) {
  char *first = (char *)wr_bits_down((uintptr_t)address, fake.page);
  char *last = (char *)wr_bits_up((uintptr_t)address + length, fake.page);
  memset(address, 0xa5, length);
  pthread_mutex_lock(&mutex);
  if (is_ours(address))
    set_all(first, (size_t)(last - first), MAPPED | RESIDENT);
  pthread_mutex_unlock(&mutex);
}

size_t fake_mapped(void) {
  return mapped_grains * GRAIN;
}

size_t fake_resident(void) {
  return resident_grains * GRAIN;
}
