/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas inside buffers: at every alignment and from the smallest size on no byte outside the
 * buffer is written, all blocks lie inside, it can be filled to the last unit and after that be had
 * in one piece again, makes no system call, and when it is gone the buffer is the caller's.
 */
#include "arenas.h"

#include <sys/mman.h>

#define GUARD 0xa7
#define PIECE ((size_t)256 << 10)

/* The buffers lie in here, with guard bytes on both sides. */
static _Alignas(1 << 16) unsigned char area[6 << 20];
static void *blocks[1 << 16];

/* A buffer of `size` bytes at `offset` behind a multiple of 64 KiB, full of garbage. */
static unsigned char *place(size_t offset, size_t size) {
  ck_assert_uint_le(2 * 64 * KIB + offset + size, sizeof area);
  memset(area, GUARD, 2 * 64 * KIB + offset + size);
  return area + 64 * KIB + offset;
}

static void check_guards(const unsigned char *buffer, size_t size) {
  ck_assert_msg(all_are(area, GUARD, (size_t)(buffer - area)), "written below a buffer of %zu",
                size);
  ck_assert_msg(all_are(buffer + size, GUARD, 64 * KIB), "written behind a buffer of %zu", size);
}

static void *inside(void *block, const unsigned char *buffer, size_t size) {
  const unsigned char *bytes = block;

  if (block != NULL) {
    ck_assert_msg(bytes >= buffer && bytes + weir_usable_size(block) <= buffer + size,
                  "a block lies outside its buffer");
    ck_assert_uint_eq((uintptr_t)block % 16, 0);
  }
  return block;
}

/* Take blocks of one size until there are no more, each full of its number. */
static size_t take_all(weir_arena_t *arena, size_t size, const unsigned char *buffer,
                       size_t length) {
  size_t count;

  for (count = 0; count < LENGTH(blocks); count++) {
    errno = 0;
    blocks[count] = inside(weir_arena_alloc(arena, size), buffer, length);
    if (blocks[count] == NULL)
      break;
    ck_assert_int_eq(errno, 0);
    memset(blocks[count], (int)(count % 251), weir_usable_size(blocks[count]));
  }
  ck_assert_int_eq(errno, ENOMEM);
  return count;
}

static void check_all(size_t count) {
  size_t i;

  for (i = 0; i < count; i++)
    ck_assert_msg(all_are(blocks[i], (unsigned char)(i % 251), weir_usable_size(blocks[i])),
                  "block %zu of %zu was written to", i, count);
}

static void free_in_random_order(size_t count, uint64_t seed) {
  while (count > 0) {
    size_t one = (size_t)(next_random(&seed) % count);
    weir_free(blocks[one]);
    blocks[one] = blocks[--count];
  }
}

START_TEST(too_small_a_buffer_is_refused) {
  size_t offset, least = weir_arena_buffer_min();

  for (offset = 0; offset < 128; offset++) {
    static const size_t sizes[] = {0, 1, 16, 100, 1000, 4096, 8192};
    unsigned char *buffer = place(offset, least);
    size_t i;
    for (i = 0; i <= LENGTH(sizes); i++) {
      errno = 0;
      ck_assert_ptr_null(
          weir_arena_create_in(buffer, i < LENGTH(sizes) ? sizes[i] : least - 1, NULL));
      ck_assert_int_eq(errno, EINVAL);
    }
    ck_assert(all_are(area, GUARD, 2 * 64 * KIB + offset + least));
  }
  errno = 0;
  ck_assert_ptr_null(weir_arena_create_in(area, ((size_t)1 << 40) + 1, NULL));
  ck_assert_int_eq(errno, EINVAL);
  ck_assert_ptr_null(weir_arena_create_in(area, SIZE_MAX, NULL));
}
END_TEST

/* One block of up to 2 KiB, or several smaller ones of one class. */
static void use_smallest(size_t offset, size_t size) {
  unsigned char *buffer = place(offset, size);
  weir_arena_t *arena = make_in(buffer, size);
  size_t block, count;

  for (block = 2048; block >= 16; block /= 2) {
    count = take_all(arena, block, buffer, size);
    ck_assert_msg(count >= (block > 1024 ? 1 : 2), "%zu blocks of %zu in %zu bytes at %zu", count,
                  block, size, offset);
    check_all(count);
    free_in_random_order(count, offset);
  }
  check_guards(buffer, size);
  weir_arena_destroy(arena);
  check_guards(buffer, size);
}

START_TEST(the_smallest_buffer_at_every_alignment) {
  size_t offset, least = weir_arena_buffer_min();

  for (offset = 0; offset < 128; offset++)
    use_smallest(offset, least);
  for (offset = 256; offset < 64 * KIB; offset += 4040)
    use_smallest(offset, least);
}
END_TEST

START_TEST(every_size_upward) {
  size_t size, least = weir_arena_buffer_min();

  for (size = least; size < least + 130; size += 13)
    use_smallest(size % 128, size);
  for (size = least; size < 150 * KIB; size += 5077)
    use_smallest(size % 128, size);
}
END_TEST

/*
 * How much can be had of 256 KiB, found by trying and held to since: all but the arena's own
 * structures and what aligning to units of 4 KiB takes, which is 28 KiB at most; and of that as
 * many blocks of a power of two as fit side by side.
 */
START_TEST(filled_to_the_last_unit) {
  static const size_t offsets[] = {0, 1, 16, 127, 4096, 5000, 65535};
  size_t offset = offsets[_i];
  unsigned char *buffer = place(offset, PIECE);
  weir_arena_t *arena = make_in(buffer, PIECE);
  size_t room = now(arena).reserved, block, count, whole;

  ck_assert_uint_ge(room, PIECE - 28 * KIB);
  ck_assert_uint_eq(room % 4096, 0);
  for (block = 16; block <= 128 * KIB; block *= 2) {
    count = take_all(arena, block, buffer, PIECE);
    ck_assert_msg(count == room / block, "%zu blocks of %zu in %zu", count, block, room);
    ck_assert_uint_eq(now(arena).live, count * block);
    check_all(count);
    free_in_random_order(count, block);
    ck_assert_uint_eq(now(arena).live, 0);
    /* All of it at once: an eighth may be lost to rounding, as the header says. */
    whole = room / 9 * 8 / 4096 * 4096;
    blocks[0] = inside(weir_arena_alloc(arena, whole), buffer, PIECE);
    ck_assert_msg(blocks[0] != NULL, "after blocks of %zu there is no block of %zu", block, whole);
    memset(blocks[0], 1, whole);
    weir_free(blocks[0]);
  }
  ck_assert_ptr_null(weir_arena_alloc(arena, PIECE));
  check_guards(buffer, PIECE);
  weir_arena_destroy(arena);
  check_guards(buffer, PIECE);
}
END_TEST

/* Sizes at random until not even 16 bytes are left: then nothing lies idle. */
START_TEST(filled_with_mixed_sizes) {
  unsigned char *buffer = place(77, PIECE);
  weir_arena_t *arena = make_in(buffer, PIECE);
  uint64_t state = (uint64_t)_i;
  size_t count = 0, misses = 0, room = now(arena).reserved;
  weir_stats_t stats;

  while (misses < 50) {
    size_t size = next_random_size(&state, 30000);
    blocks[count] = inside(weir_arena_alloc(arena, size), buffer, PIECE);
    if (blocks[count] == NULL) {
      misses++;
      continue;
    }
    memset(blocks[count], (int)(count % 251), weir_usable_size(blocks[count]));
    count++;
  }
  while ((blocks[count] = weir_arena_alloc(arena, 16)) != NULL) {
    memset(blocks[count], (int)(count % 251), weir_usable_size(blocks[count]));
    count++;
  }
  stats = now(arena);
  ck_assert_uint_eq(stats.retained, 0);
  ck_assert_uint_le(stats.live + stats.fragmented, room);
  check_all(count);
  free_in_random_order(count, state);
  blocks[0] = weir_arena_alloc(arena, room / 9 * 8);
  ck_assert_ptr_nonnull(blocks[0]);
  weir_free(blocks[0]);
  check_guards(buffer, PIECE);
  weir_arena_destroy(arena);
}
END_TEST

START_TEST(buffers_side_by_side) {
  enum { ARENAS = 5, ROUNDS = 20000 };
  static const size_t lengths[ARENAS] = {100000, 50001, 33333, 256 << 10, 70007};
  weir_arena_t *arenas[ARENAS];
  unsigned char *starts[ARENAS], *buffer = place(3, 600000);
  static struct {
    void *block;
    size_t size;
    size_t arena;
  } slots[200];
  uint64_t state = 5;
  size_t i, sum = 0;

  for (i = 0; i < ARENAS; i++) {
    starts[i] = buffer + sum;
    sum += lengths[i];
    arenas[i] = make_in(starts[i], lengths[i]);
  }
  memset(buffer + sum, GUARD, 64 * KIB);
  for (i = 0; i < ROUNDS; i++) {
    size_t one = (size_t)(next_random(&state) % LENGTH(slots));
    if (slots[one].block != NULL) {
      ck_assert(holds(slots[one].block, slots[one].size, slots[one].size, one));
      ck_assert_ptr_eq(weir_arena_of(slots[one].block), arenas[slots[one].arena]);
      weir_free(slots[one].block);
    }
    slots[one].arena = (size_t)(next_random(&state) % ARENAS);
    slots[one].size = next_random_size(&state, 20000);
    slots[one].block = inside(weir_arena_alloc(arenas[slots[one].arena], slots[one].size),
                              starts[slots[one].arena], lengths[slots[one].arena]);
    if (slots[one].block != NULL)
      fill(slots[one].block, slots[one].size, one);
    if (i % 5000 == 4999) {
      /* One of them ends and begins again between the others. */
      size_t ended = i / 5000, j;
      for (j = 0; j < LENGTH(slots); j++) {
        if (slots[j].arena == ended)
          slots[j].block = NULL;
      }
      weir_arena_destroy(arenas[ended]);
      memset(starts[ended], GUARD, lengths[ended]);
      arenas[ended] = make_in(starts[ended], lengths[ended]);
    }
  }
  check_guards(buffer, sum);
  for (i = 0; i < ARENAS; i++)
    weir_arena_destroy(arenas[i]);
}
END_TEST

/* An arena inside a block of `outer`; both kinds of block go to every function. */
static void use_inside(weir_arena_t *outer, size_t size) {
  unsigned char *buffer = weir_arena_alloc(outer, size);
  size_t usable = weir_usable_size(buffer);
  weir_arena_t *arena = make_in(buffer, size);
  size_t count = 0, block;

  for (block = 16; (blocks[count] = weir_arena_alloc(arena, block)) != NULL; count++) {
    inside(blocks[count], buffer, size);
    ck_assert_ptr_eq(weir_arena_of(blocks[count]), arena);
    memset(blocks[count], (int)(count % 251), weir_usable_size(blocks[count]));
    block = 16 + (block * 7 + 13) % 3000;
  }
  ck_assert_uint_ge(count, 2);
  check_all(count);
  ck_assert_ptr_eq(weir_arena_of(buffer), outer);
  ck_assert_uint_eq(weir_usable_size(buffer), usable);
  ck_assert_uint_eq(weir_arena_usable_size(arena, buffer), usable);
  weir_free(blocks[0]);
  weir_arena_free(outer, blocks[1]);
  blocks[0] = weir_realloc(weir_arena_alloc(arena, 9), 16);
  ck_assert_ptr_eq(weir_arena_of(blocks[0]), arena);
  weir_arena_free(arena, blocks[0]);
  weir_arena_destroy(arena);
  memset(buffer, 0x42, size);
  ck_assert_uint_eq(weir_usable_size(buffer), usable);
  buffer = weir_realloc(buffer, 3 * size);
  if (buffer != NULL) {
    ck_assert(all_are(buffer, 0x42, size));
    ck_assert_ptr_eq(weir_arena_of(buffer), outer);
    weir_free(buffer);
  }
}

START_TEST(a_buffer_that_is_a_block) {
  weir_arena_t *over_kernel = make_plain();
  weir_arena_t *in_buffer = make_in(place(9, 3 * MIB), 3 * MIB), *middle;
  size_t round;

  for (round = 0; round < 3; round++) {
    use_inside(NULL, 300000);
    use_inside(NULL, 40000);
    use_inside(over_kernel, 300000);
    use_inside(over_kernel, 40000);
    use_inside(in_buffer, 300000);
    use_inside(in_buffer, 40000);
    middle = make_in(weir_arena_alloc(in_buffer, 400000), 400000);
    use_inside(middle, 50000);
    weir_arena_destroy(middle);
    weir_arena_reset(in_buffer);
  }
  ck_assert_uint_eq(now(over_kernel).live, 0);
  check_guards(area + 64 * KIB + 9, 3 * MIB);
  weir_arena_destroy(over_kernel);
  weir_arena_destroy(in_buffer);
}
END_TEST

/* Blocks that others own are live beside it, in the same spans and slabs. */
START_TEST(outer_blocks_are_free_to_come_and_go) {
  void *before = weir_malloc(40000), *buffer = weir_malloc(40000), *after = weir_malloc(40000);
  weir_arena_t *arena = make_in(buffer, 40000);
  void *block = weir_arena_alloc(arena, 100);

  weir_free(before);
  weir_free(after);
  before = weir_malloc(40000);
  memset(before, 1, 40000);
  memset(block, 2, 100);
  ck_assert(all_are(before, 1, 40000));
  weir_free(block);
  weir_free(before);
  weir_arena_destroy(arena);
  weir_free(buffer);
  ck_assert_uint_eq(now(NULL).live, 0);
}
END_TEST

START_TEST(zalloc_is_zero_in_garbage) {
  static const size_t sizes[] = {1, 16, 100, 2000, 5000, 30000, 65536, 70000, 200000};
  unsigned char *buffer = place(8, MIB);
  weir_arena_t *arena = make_in(buffer, MIB);
  size_t i, round;

  for (round = 0; round < 3; round++) {
    for (i = 0; i < LENGTH(sizes); i++) {
      unsigned char *block = weir_arena_zalloc(arena, 1, sizes[i]);
      ck_assert_ptr_nonnull(block);
      ck_assert(all_are(block, 0, sizes[i]));
      memset(block, GUARD, weir_usable_size(block));
      weir_free(block);
      block = weir_arena_alloc(arena, 300000);
      memset(block, GUARD, 300000);
      weir_free(block);
      if (round == 1)
        weir_arena_trim(arena, 0);
      if (round == 2)
        weir_arena_reset(arena);
    }
  }
  check_guards(buffer, MIB);
  weir_arena_destroy(arena);
}
END_TEST

START_TEST(alignment_is_kept) {
  const size_t size = 5 * MIB;
  unsigned char *buffer = place(24, size);
  weir_arena_t *arena = make_in(buffer, size);
  size_t alignment;

  for (alignment = 1; alignment <= MIB; alignment *= 2) {
    void *one = inside(weir_arena_aligned_alloc(arena, alignment, 1), buffer, size);
    void *many = inside(weir_arena_aligned_alloc(arena, alignment, alignment + 1), buffer, size);
    ck_assert_msg(one != NULL && many != NULL, "no block at %zu", alignment);
    ck_assert_uint_eq((uintptr_t)one % alignment, 0);
    ck_assert_uint_eq((uintptr_t)many % alignment, 0);
    memset(one, 1, weir_usable_size(one));
    memset(many, 1, weir_usable_size(many));
    weir_free(one);
    weir_arena_free(arena, many);
  }
  errno = 0;
  ck_assert_ptr_null(weir_arena_aligned_alloc(arena, 64 * MIB, 1));
  ck_assert_int_eq(errno, ENOMEM);
  check_guards(buffer, size);
  weir_arena_destroy(arena);
}
END_TEST

START_TEST(options_in_buffers) {
  unsigned char *buffer = place(40, PIECE);
  weir_arena_options_t wanted = options();
  weir_arena_t *arena = make_in(buffer, PIECE);

  ck_assert_str_eq(weir_arena_name(arena), "");
  ck_assert_uint_eq(weir_arena_retain(arena), WEIR_RETAIN_UNLIMITED);
  weir_arena_destroy(arena);
  wanted.name = "camera";
  wanted.retain = 0;
  wanted.limit = 100000;
  wanted.prefault = 50000;
  arena = weir_arena_create_in(buffer, PIECE, &wanted);
  ck_assert_ptr_nonnull(arena);
  ck_assert_str_eq(weir_arena_name(arena), "camera");
  ck_assert_uint_lt(take_all(arena, 1000, buffer, PIECE), 100);
  ck_assert_uint_gt(now(arena).over_limit, 0);
  ck_assert_uint_le(now(arena).peak_committed, 100000);
  weir_arena_reset(arena);
  weir_arena_set_retain(arena, 10000);
  ck_assert_uint_eq(now(arena).mark, 10000);
  weir_arena_destroy(arena);
  wanted.limit = 50000;
  errno = 0;
  ck_assert_ptr_null(weir_arena_create_in(buffer, PIECE, &wanted));
  ck_assert_int_eq(errno, EINVAL);
  wanted.limit = WEIR_LIMIT_NONE;
  wanted.prefault = PIECE;
  errno = 0;
  ck_assert_ptr_null(weir_arena_create_in(buffer, PIECE, &wanted));
  ck_assert_int_ne(errno, 0);
  check_guards(buffer, PIECE);
}
END_TEST

/* Whatever the mark, a request that fits after joining is served. */
START_TEST(free_memory_is_joined) {
  static const size_t marks[] = {0, 50000, WEIR_RETAIN_UNLIMITED, WEIR_RETAIN_DEFAULT};
  unsigned char *buffer = place(0, PIECE);
  weir_arena_options_t wanted = options();
  weir_arena_t *arena;
  size_t round;

  wanted.retain = marks[_i];
  arena = weir_arena_create_in(buffer, PIECE, &wanted);
  ck_assert_ptr_nonnull(arena);
  for (round = 0; round < 10; round++) {
    size_t size = round % 2 == 0 ? 100000 : 40 + round * 100;
    size_t count = take_all(arena, size, buffer, PIECE);
    ck_assert_uint_ge(count * size, PIECE / 4 * 3 - 30000);
    check_all(count);
    free_in_random_order(count, round);
  }
  ck_assert_uint_eq(calls(arena), 0);
  weir_arena_destroy(arena);
}
END_TEST

static void *take_or_not(void *arena) {
  void *block;

  errno = 0;
  block = weir_arena_alloc(arena, 100);
  ck_assert_int_eq(errno, block == NULL ? ENOMEM : 0);
  weir_free(block);
  return NULL;
}

static void *use_all(void *argument) {
  weir_arena_t *arena = argument;
  void *own[50] = {0};
  uint64_t state = (uint64_t)(uintptr_t)&state;
  size_t i;

  for (i = 0; i < 5000; i++) {
    size_t one = (size_t)(next_random(&state) % LENGTH(own)),
           size = next_random_size(&state, 30000);
    weir_free(own[one]);
    own[one] = weir_arena_alloc(arena, size);
    if (own[one] != NULL)
      memset(own[one], 1, size);
  }
  for (i = 0; i < LENGTH(own); i++)
    weir_free(own[i]);
  return NULL;
}

START_TEST(threads_in_a_buffer) {
  unsigned char *buffer = place(5, MIB);
  weir_arena_t *arena = make_in(buffer, MIB);
  size_t round, i;

  for (round = 0; round < 4; round++) {
    pthread_t threads[4];
    for (i = 0; i < 4; i++)
      ck_assert_int_eq(pthread_create(&threads[i], NULL, use_all, arena), 0);
    for (i = 0; i < 4; i++)
      pthread_join(threads[i], NULL);
    ck_assert_uint_eq(now(arena).live, 0);
  }
  for (i = 0; i < 200; i++)
    elsewhere(take_or_not, arena);
  /* The threads that are gone have left nothing but their heaps, for the next ones. */
  ck_assert_uint_eq(calls(arena), 0);
  blocks[0] = weir_arena_alloc(arena, MIB / 9 * 7);
  ck_assert_ptr_nonnull(blocks[0]);
  check_guards(buffer, MIB);
  weir_arena_destroy(arena);
}
END_TEST

static void *give(void *block) {
  weir_free(block);
  return NULL;
}

/* Where there is no room for a second thread's heap it is refused, and can free all the same. */
START_TEST(threads_in_the_smallest_buffer) {
  size_t least = weir_arena_buffer_min(), i;
  unsigned char *buffer = place(1, least);
  weir_arena_t *arena = make_in(buffer, least);

  for (i = 0; i < 100; i++) {
    void *block = weir_arena_alloc(arena, 2000);
    ck_assert_ptr_nonnull(block);
    memset(block, 3, 2000);
    elsewhere(take_or_not, arena);
    elsewhere(give, block);
  }
  ck_assert_uint_eq(now(arena).live, 0);
  check_guards(buffer, least);
  weir_arena_destroy(arena);
}
END_TEST

/* Nothing of the arena is left in the process: the bytes can be anything, and an arena again. */
START_TEST(the_buffer_is_the_callers_again) {
  unsigned char *buffer = place(11, PIECE);
  size_t round;

  for (round = 0; round < 300; round++) {
    weir_arena_t *arena = make_in(buffer, PIECE);
    ck_assert_uint_eq(now(arena).live, 0);
    blocks[0] = weir_arena_alloc(arena, 100);
    blocks[1] = weir_arena_alloc(arena, 100000);
    memset(blocks[1], 1, 100000);
    ck_assert_ptr_eq(weir_arena_of(blocks[0]), arena);
    if (round % 8 == 0)
      elsewhere(take_or_not, arena);
    ck_assert_uint_eq(calls(arena), 0);
    weir_arena_destroy(arena);
    memset(buffer, round % 2 == 0 ? 0xff : 0, PIECE);
  }
  check_guards(buffer, PIECE);
  weir_free(weir_malloc(100));
}
END_TEST

/* Address space that nobody has: only what is used becomes resident. */
START_TEST(a_huge_buffer) {
  const size_t size = (size_t)16 << 30;
  unsigned char *buffer =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  weir_arena_t *arena;
  size_t before, i;

  if (buffer == MAP_FAILED)
    return;
  before = resident();
  arena = make_in(buffer, size);
  for (i = 0; i < 1000; i++) {
    blocks[i] = inside(weir_arena_alloc(arena, i * 1000), buffer, size);
    ck_assert_ptr_nonnull(blocks[i]);
    fill(blocks[i], i * 1000, i);
  }
  blocks[i] = inside(weir_arena_alloc(arena, size / 2), buffer, size);
  ck_assert_ptr_nonnull(blocks[i]);
  fill(blocks[i], size / 2, i);
  for (i = 0; i < 1000; i++)
    ck_assert(holds(blocks[i], i * 1000, i * 1000, i));
  free_in_random_order(1001, 4);
  if (!SANITIZED)
    ck_assert_uint_le(resident(), before + 100 * MIB);
  weir_arena_destroy(arena);
  munmap(buffer, size);
}
END_TEST

static Suite *buffer_suite(void) {
  Suite *suite = suite_create("arena_buffer");
  TCase *tests = tcase_create("buffers");

  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, too_small_a_buffer_is_refused);
  tcase_add_test(tests, the_smallest_buffer_at_every_alignment);
  tcase_add_test(tests, every_size_upward);
  tcase_add_loop_test(tests, filled_to_the_last_unit, 0, 7);
  tcase_add_loop_test(tests, filled_with_mixed_sizes, 0, 20);
  tcase_add_test(tests, buffers_side_by_side);
  tcase_add_test(tests, a_buffer_that_is_a_block);
  tcase_add_test(tests, outer_blocks_are_free_to_come_and_go);
  tcase_add_test(tests, zalloc_is_zero_in_garbage);
  tcase_add_test(tests, alignment_is_kept);
  tcase_add_test(tests, options_in_buffers);
  tcase_add_loop_test(tests, free_memory_is_joined, 0, 4);
  tcase_add_test(tests, threads_in_a_buffer);
  tcase_add_test(tests, threads_in_the_smallest_buffer);
  tcase_add_test(tests, the_buffer_is_the_callers_again);
  tcase_add_test(tests, a_huge_buffer);
  suite_add_tcase(suite, tests);
  return suite;
}

int main(void) {
  return run_suite(buffer_suite());
}
