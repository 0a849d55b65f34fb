/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node that takes frames, and gives them back with free(): its malloc is weir's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rcutils/strdup.h>
#include <weir/weir.h>
#include <weir_example/frames.h>

int main(void) {
  rcutils_allocator_t allocator = frames_allocator();
  char *name = rcutils_strdup("camera_front", allocator);
  weir_stats_t stats;
  int i;

  for (i = 0; i < 100; i++) {
    void *frame = frames_take(1 << 20);

    if (frame == NULL || name == NULL)
      return EXIT_FAILURE;
    memset(frame, i, 1 << 20);
    free(frame);
  }
  printf("%s: %d frames, %zu bytes in use\n", name, i, frames_live());
  allocator.deallocate(name, allocator.state);

  name = malloc(1000);
  weir_stats(&stats, sizeof stats);
  printf("malloc is %s\n", stats.live >= 1000 ? "weir's" : "not weir's");
  free(name);
  return stats.live >= 1000 && frames_live() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
