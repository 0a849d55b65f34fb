/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libweir_rcutils, to be preloaded: the one function by which ROS's C libraries come to an
 * allocator that nobody gave them, over the arena "rcutils". Nothing is kept here, so no lock is
 * needed; the functions of weir are those of libweir_malloc where that is in the process.
 */
#include <weir/rcutils.h>

#include "../attr.h"

WR_EXPORT rcutils_allocator_t rcutils_get_default_allocator(void) {
  return weir_rcutils_allocator(weir_rcutils_arena());
}
