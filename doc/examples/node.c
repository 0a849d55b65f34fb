/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two nodes in one process, each with an arena of its own: a camera whose payloads may take up to
 * 8 MiB, and its driver's settings, kept in rcutils' containers, 512 KiB. Each is measured by
 * itself, and neither can use up what is the other's.
 *
 *     cc node.c $(pkg-config --cflags --libs weir) -I/opt/ros/$ROS_DISTRO/include/rcutils \
 *       -L/opt/ros/$ROS_DISTRO/lib -lrcutils
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rcutils/split.h>
#include <rcutils/types/string_map.h>
#include <weir/rcutils.h>

enum { MIB = 1 << 20, MESSAGES = 1000 };

/* An arena for one part of the program: with a name for the reports, and a budget. */
static weir_arena_t *make_arena(const char *name, size_t limit) {
  weir_arena_options_t options = WEIR_ARENA_OPTIONS_INIT;
  weir_arena_t *arena;

  options.name = name;
  options.limit = limit; /* what may be resident: blocks, free memory kept, the arena's own */
  arena = weir_arena_create(&options);
  if (arena == NULL) {
    perror(name);
    exit(EXIT_FAILURE);
  }
  return arena;
}

static void print_use(weir_arena_t *arena, const char *when) {
  weir_stats_t stats;

  weir_arena_stats(arena, &stats, sizeof stats);
  printf("%-8s %s: %llu bytes live, at most %llu resident, %llu refused\n", weir_arena_name(arena),
         when, (unsigned long long)stats.live, (unsigned long long)stats.peak_committed,
         (unsigned long long)stats.out_of_memory);
}

/* rcutils, and with it rcl, rclc and rmw, take an allocator. This one is an arena. */
static int settings(weir_arena_t *arena) {
  rcutils_allocator_t allocator = weir_rcutils_allocator(arena);
  rcutils_string_array_t words = rcutils_get_zero_initialized_string_array();
  rcutils_string_map_t map = rcutils_get_zero_initialized_string_map();
  size_t i;

  if (rcutils_string_map_init(&map, 8, allocator) != RCUTILS_RET_OK)
    return 1;
  if (rcutils_split("width 1024 height 768 encoding rgb8", ' ', allocator, &words) !=
      RCUTILS_RET_OK)
    return 1;
  for (i = 0; i + 1 < words.size; i += 2)
    if (rcutils_string_map_set(&map, words.data[i], words.data[i + 1]) != RCUTILS_RET_OK)
      return 1;
  printf("%zu settings, width %s\n", i / 2, rcutils_string_map_get(&map, "width"));
  print_use(arena, "in use");

  return rcutils_string_array_fini(&words) != RCUTILS_RET_OK ||
         rcutils_string_map_fini(&map) != RCUTILS_RET_OK;
}

/* A message: two payloads of 1 MiB at once, as the middleware's buffer and the message are. */
static int message(weir_arena_t *arena) {
  char *received = weir_arena_alloc(arena, MIB), *image = weir_arena_alloc(arena, MIB);

  if (received == NULL || image == NULL) {
    weir_arena_free(arena, image);
    weir_arena_free(arena, received);
    return 1;
  }
  memset(received, 1, MIB);
  memcpy(image, received, MIB);
  weir_arena_free(arena, image);
  weir_arena_free(arena, received);
  return 0;
}

/* A queue that nobody reads stops at the limit instead of taking the other nodes' memory. */
static void overrun(weir_arena_t *arena) {
  void *queue[16];
  int count = 0;

  while (count < 16 && (queue[count] = weir_arena_alloc(arena, MIB)) != NULL)
    count++;
  printf("%d images of 1 MiB fit, then: %s\n", count, count < 16 ? strerror(errno) : "no limit");
  while (count > 0)
    weir_arena_free(arena, queue[--count]);
}

int main(void) {
  weir_arena_t *driver = make_arena("driver", MIB / 2), *camera = make_arena("camera", 8 * MIB);
  weir_stats_t warm, end;
  int i;

  if (settings(driver) != 0)
    return EXIT_FAILURE;
  for (i = 0; i < MESSAGES; i++) {
    if (i == 2)
      weir_arena_stats(camera, &warm, sizeof warm);
    if (message(camera) != 0)
      return EXIT_FAILURE;
  }
  weir_arena_stats(camera, &end, sizeof end);
  printf("messages 3 to %d: %llu bytes of fresh memory, %llu given back\n", MESSAGES,
         (unsigned long long)(end.fresh_bytes - warm.fresh_bytes),
         (unsigned long long)(end.purged_bytes - warm.purged_bytes));
  overrun(camera);

  print_use(driver, "at the end");
  print_use(camera, "at the end");
  weir_arena_destroy(camera);
  weir_arena_destroy(driver);
  return EXIT_SUCCESS;
}
