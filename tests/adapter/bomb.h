/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocator whose n-th call fails, put under operations of ROS's C libraries: each runs once
 * with every n, until all its calls succeed. Each run is a process of its own with one thread, so
 * no lock is needed.
 */
#ifndef BOMB_H
#define BOMB_H

#include <stdbool.h>
#include <stddef.h>
#include <weir/rcutils.h>

/*
 * An operation. Takes memory through `allocator`, and through rcutils_get_default_allocator, which
 * is the same while it runs; looks at what it made by BOMB_CHECK; gives all of it back, as the
 * libraries' documentation asks for, also when something failed. Returns whether nothing failed.
 */
struct bomb_op {
  const char *name;
  bool (*run)(rcutils_allocator_t allocator);
};

/* The operations, a list for each file that has some; the last has no name. */
extern const struct bomb_op bomb_types[], bomb_system[], bomb_rosidl[];

/* Whether rcutils says that it is done. What it says otherwise is read, so that the next function
 * that fails does not complain of it. */
bool bomb_ok(int ret);

/* Ends the run, with the place, where a result is wrong. */
#define BOMB_CHECK(condition) \
  do { \
    if (!(condition)) \
      bomb_wrong(__FILE__, __LINE__, #condition); \
  } while (0)
_Noreturn void bomb_wrong(const char *file, int line, const char *what);

#endif
