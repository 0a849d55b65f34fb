/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page sources: alignment, hints, failures, counts, huge pages; and the operating system as one.
 */
#include "source.h"

#include <errno.h>
#include <string.h>

#include "fake.h"
#include "unit.h"

#define MIB ((size_t)1 << 20)

static struct wr_source source;

static void begin(size_t page) {
  memset(&source, 0, sizeof source);
  fake_begin(page);
  fake_source(&source);
}

/* The source's own counts agree with what the fake saw. */
static void check_counts(void) {
  ck_assert_uint_eq(wr_counter_read(&source.maps), fake_calls(FAKE_MAP));
  ck_assert_uint_eq(wr_counter_read(&source.unmaps), fake_calls(FAKE_UNMAP));
  ck_assert_uint_eq(wr_counter_read(&source.purges), fake_calls(FAKE_PURGE));
  ck_assert_uint_eq(wr_counter_read(&source.moves), fake_calls(FAKE_MOVE));
  ck_assert_uint_eq(wr_counter_read(&source.probes), fake_calls(FAKE_RESIDENT));
  ck_assert_uint_eq(wr_counter_read(&source.advices), fake_calls(FAKE_HUGE));
  ck_assert_uint_eq(wr_counter_read(&source.mapped), fake_mapped());
}

START_TEST(mappings_are_aligned_and_exact) {
  for (const size_t *page = fake_pages; *page != 0; page++) {
    begin(*page);
    for (size_t alignment = *page; alignment <= 16 * MIB; alignment *= 2)
      for (fake.skew = 0; fake.skew < 3; fake.skew++)
        for (size_t length = *page; length <= MIB; length *= 4) {
          size_t before = fake_mapped();
          void *address = NULL;
          ck_assert_int_eq(wr_source_map(&source, NULL, length, alignment, &address), 0);
          ck_assert_uint_eq((uintptr_t)address % alignment, 0);
          ck_assert_uint_eq(fake_mapped(), before + length);
          memset(address, 1, length);
          wr_source_unmap(&source, address, length);
          ck_assert_uint_eq(fake_mapped(), before);
          fake.calls = 0;
        }
  }
}
END_TEST

START_TEST(a_free_hint_is_taken) {
  void *first, *second, *third;
  begin(4096);
  ck_assert_int_eq(wr_source_map(&source, NULL, MIB, 65536, &first), 0);
  ck_assert_int_eq(wr_source_map(&source, (char *)first + MIB, MIB, 65536, &second), 0);
  ck_assert_ptr_eq(second, (char *)first + MIB);
  /* One that is not free is no failure. */
  ck_assert_int_eq(wr_source_map(&source, first, MIB, 65536, &third), 0);
  ck_assert_ptr_ne(third, first);
  check_counts();
}
END_TEST

START_TEST(a_failed_map_leaves_nothing) {
  for (size_t n = 1; n <= 2; n++) {
    void *address = &source;
    begin(4096);
    fake.skew = 1;
    fake_fail(FAKE_MAP, n, 1);
    ck_assert_int_eq(wr_source_map(&source, NULL, MIB, 65536, &address), ENOMEM);
    ck_assert(fake_failed());
    ck_assert_uint_eq(fake_mapped(), 0);
    check_counts();
    ck_assert_int_eq(wr_source_map(&source, NULL, MIB, 65536, &address), 0);
    check_counts();
  }
}
END_TEST

START_TEST(a_failed_unmap_stays_counted) {
  void *address;
  begin(4096);
  ck_assert_int_eq(wr_source_map(&source, NULL, MIB, 65536, &address), 0);
  fake_fail(FAKE_UNMAP, 1, 1);
  wr_source_unmap(&source, address, MIB);
  ck_assert(fake_failed());
  check_counts();
  wr_source_unmap(&source, address, MIB);
  check_counts();
  /* Nothing is no call. */
  wr_source_unmap(&source, address, 0);
  ck_assert_uint_eq(fake_calls(FAKE_UNMAP), 2);
}
END_TEST

START_TEST(impossible_lengths_are_no_call) {
  void *address;
  begin(4096);
  ck_assert_int_eq(wr_source_map(&source, NULL, SIZE_MAX - 4095, 65536, &address), ENOMEM);
  ck_assert_uint_eq(fake_calls(FAKE_ANY), 0);
}
END_TEST

START_TEST(huge_pages_are_asked_for_as_the_source_says) {
  for (int thp = WR_THP_DEFAULT; thp <= WR_THP_ALWAYS; thp++) {
    void *address;
    begin(4096);
    source.thp = (enum wr_thp)thp;
    ck_assert_int_eq(wr_source_map(&source, NULL, MIB, 65536, &address), 0);
    ck_assert_uint_eq(fake_calls(FAKE_HUGE), thp != WR_THP_DEFAULT);
    if (thp != WR_THP_DEFAULT) {
      ck_assert(fake_call(FAKE_HUGE, 0)->huge == (thp == WR_THP_ALWAYS));
      ck_assert_ptr_eq(fake_call(FAKE_HUGE, 0)->address, address);
      ck_assert_uint_eq(fake_call(FAKE_HUGE, 0)->length, MIB);
      /* A kernel that has none is no reason to fail. */
      fake_fail(FAKE_HUGE, 1, 1);
      ck_assert_int_eq(wr_source_map(&source, NULL, MIB, 65536, &address), 0);
      ck_assert(fake_failed());
    }
    check_counts();
  }
}
END_TEST

START_TEST(purge_and_probe_hand_on) {
  void *address;
  size_t end = 99;
  begin(16384);
  ck_assert_int_eq(wr_source_map(&source, NULL, MIB, 65536, &address), 0);
  ck_assert_int_eq(wr_source_resident(&source, address, MIB, &end), 0);
  ck_assert_uint_eq(end, 0);
  fake_touch((char *)address + 40000, 1);
  ck_assert_int_eq(wr_source_resident(&source, address, MIB, &end), 0);
  ck_assert_uint_eq(end, 49152);
  ck_assert_int_eq(wr_source_purge(&source, address, MIB), 0);
  ck_assert_int_eq(((char *)address)[40000], 0);
  fake_fail(FAKE_PURGE, 1, 1);
  ck_assert_int_eq(wr_source_purge(&source, address, MIB), EINVAL);
  fake_fail(FAKE_RESIDENT, 1, 1);
  ck_assert_int_eq(wr_source_resident(&source, address, MIB, &end), EAGAIN);
  check_counts();
}
END_TEST

START_TEST(the_operating_system) {
  void *address;
  char *bytes;
  size_t page, end = 99;
  memset(&source, 0, sizeof source);
  wr_source_init_os(&source, WR_THP_NEVER);
  page = source.page;
  ck_assert_uint_eq(page & (page - 1), 0);
  ck_assert_uint_ge(page, 4096);
  ck_assert_uint_le(page, 65536);
  errno = 42;
  ck_assert_int_eq(wr_source_map(&source, NULL, 16 * MIB, 65536, &address), 0);
  bytes = address;
  for (size_t i = 0; i < 16 * MIB; i += MIB)
    ck_assert_int_eq(bytes[i], 0);
  ck_assert_int_eq(wr_source_purge(&source, address, 16 * MIB), 0);
  ck_assert_int_eq(wr_source_resident(&source, address, 16 * MIB, &end), 0);
  ck_assert_uint_eq(end, 0);
  memset(bytes, 1, 3 * page);
  ck_assert_int_eq(wr_source_resident(&source, address, 16 * MIB, &end), 0);
  ck_assert_uint_eq(end, 3 * page);
  ck_assert_int_eq(wr_source_purge(&source, bytes + page, page), 0);
  ck_assert_int_eq(bytes[0], 1);
  ck_assert_int_eq(bytes[page], 0);
  ck_assert_int_eq(bytes[2 * page], 1);
  ck_assert_uint_eq(wr_counter_read(&source.mapped), 16 * MIB);
  wr_source_unmap(&source, address, 16 * MIB);
  ck_assert_uint_eq(wr_counter_read(&source.mapped), 0);
  /* More than any address space has. */
  ck_assert_int_ne(wr_source_map(&source, NULL, (size_t)1 << 62, 65536, &address), 0);
  ck_assert_int_eq(errno, 42);
}
END_TEST

START_TEST(every_mapping_of_a_source_that_locks_is_locked) {
  void *address;
  begin(4096);
  source.lock = true;
  fake.skew = 1;
  ck_assert_int_eq(wr_source_map(&source, NULL, MIB, 65536, &address), 0);
  ck_assert_uint_eq(fake_calls(FAKE_LOCK), 1);
  ck_assert_ptr_eq(fake_call(FAKE_LOCK, 0)->address, address);
  ck_assert_uint_eq(fake_call(FAKE_LOCK, 0)->length, MIB);
  ck_assert(!source.unlockable);
  /* What cannot be locked is not had. */
  fake_fail(FAKE_LOCK, 1, 1);
  ck_assert_int_eq(wr_source_map(&source, NULL, MIB, 65536, &address), EPERM);
  ck_assert(source.unlockable);
  ck_assert_uint_eq(fake_mapped(), MIB);
  ck_assert_uint_eq(wr_counter_read(&source.mapped), MIB);
}
END_TEST

START_TEST(a_buffer_is_handed_out_once) {
  static WR_ALIGNED(65536) char buffer[1 << 20];
  void *first, *second, *none;
  size_t end = 0;
  memset(&source, 0, sizeof source);
  wr_source_init_buffer(&source, buffer, sizeof buffer, 4096);
  ck_assert_uint_eq(source.page, 4096);
  ck_assert_int_eq(wr_source_map(&source, NULL, 65536, 65536, &first), 0);
  ck_assert_int_eq(wr_source_map(&source, buffer, sizeof buffer - 65536, 4096, &second), 0);
  ck_assert_ptr_eq(first, buffer);
  ck_assert_ptr_eq(second, buffer + 65536);
  ck_assert_int_eq(wr_source_map(&source, NULL, 4096, 4096, &none), ENOMEM);
  memset(buffer, 7, sizeof buffer);
  ck_assert_int_eq(wr_source_purge(&source, first, 65536), 0);
  ck_assert_int_ne(wr_source_unmap(&source, first, 65536), 0);
  ck_assert_int_eq(wr_source_move(&source, first, second, 65536), ENOSYS);
  ck_assert_int_eq(wr_source_resident(&source, first, 65536, &end), 0);
  ck_assert_uint_eq(end, 65536);
  ck_assert_uint_eq(wr_counter_read(&source.mapped), sizeof buffer);
  for (size_t i = 0; i < sizeof buffer; i++)
    ck_assert_int_eq(buffer[i], 7);
}
END_TEST

UNIT_SUITE(source, mappings_are_aligned_and_exact, a_free_hint_is_taken,
           a_failed_map_leaves_nothing, a_failed_unmap_stays_counted,
           impossible_lengths_are_no_call, huge_pages_are_asked_for_as_the_source_says,
           purge_and_probe_hand_on, the_operating_system,
           every_mapping_of_a_source_that_locks_is_locked, a_buffer_is_handed_out_once)
