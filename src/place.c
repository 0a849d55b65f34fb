/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The zone of arenas: see place.h. A bit for each 64 KiB; the first gap that is long enough is
 * taken.
 */
#include "place.h"

#include <stdbool.h>
#include <stdint.h>

#include "bits.h"
#include "lock.h"

#define UNIT_SHIFT 16
#define UNIT ((size_t)1 << UNIT_SHIFT)
#define UNITS ((size_t)4096)
#define GIBIBYTE ((uintptr_t)1 << 30)

static struct wr_lock lock;
static uintptr_t zone; /* 0: there is none */
static uint64_t taken[UNITS / 64];

void wr_place_init(void *hint) {
  zone =
      hint != NULL ? wr_bits_down((uintptr_t)hint, GIBIBYTE) + GIBIBYTE - (UNITS << UNIT_SHIFT) : 0;
}

static void set(size_t first, size_t count, bool whether) {
  for (size_t unit = first; unit < first + count; unit++) {
    if (whether)
      wr_bits_include(taken, unit);
    else
      wr_bits_exclude(taken, unit);
  }
}

/* The first of so many units that are free; UNITS when there are none. */
static size_t find(size_t count) {
  size_t free = 0;
  for (size_t unit = 0; unit < UNITS; unit++) {
    /* Past 64 that are taken at once. */
    if (unit % 64 == 0 && taken[unit / 64] == UINT64_MAX) {
      unit += 63;
      free = 0;
      continue;
    }
    free = wr_bits_has(taken, unit) ? 0 : free + 1;
    if (free == count)
      return unit + 1 - count;
  }
  return UNITS;
}

void *wr_place_take(size_t length) {
  size_t count = length >> UNIT_SHIFT, first = UNITS;
  if (zone == 0 || count == 0 || count > UNITS)
    return NULL;
  wr_lock_take(&lock);
  first = find(count);
  if (first < UNITS)
    set(first, count, true);
  wr_lock_give(&lock);
  return first < UNITS ? (void *)(zone + (first << UNIT_SHIFT)) : NULL;
}

void *wr_place_around(void *address, size_t length) {
  uintptr_t from = (uintptr_t)address, end = zone + (UNITS << UNIT_SHIFT);
  bool inside = zone != 0 && from < end && (from >= zone || length > zone - from);
  return inside ? (void *)end : address;
}

void wr_place_give(void *address, size_t length) {
  uintptr_t from = wr_bits_max((uintptr_t)address, zone);
  uintptr_t end = wr_bits_min((uintptr_t)address + length, zone + (UNITS << UNIT_SHIFT));
  if (zone == 0 || from >= end)
    return;
  wr_lock_take(&lock);
  set((from - zone) >> UNIT_SHIFT, (end - from) >> UNIT_SHIFT, false);
  wr_lock_give(&lock);
}

void wr_place_lock(void) {
  wr_lock_hold(&lock);
}

void wr_place_unlock(void) {
  wr_lock_give(&lock);
}

void wr_place_forked(void) {
  wr_lock_init(&lock);
}
