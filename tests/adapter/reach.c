/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of ROS's C libraries allocates where, for reach.sh: runs one part after another, and prints
 * for each how many bytes more are live in the arena "rcutils" while what it made exists, and which
 * files called malloc, calloc or realloc meanwhile (callers.c). Linked with rcutils, rosidl's C
 * runtime, and with HAVE_MESSAGES a library of messages that rosidl generated.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <rcutils/env.h>
#include <rcutils/filesystem.h>
#include <rcutils/logging.h>
#include <rcutils/shared_library.h>
#include <rcutils/strdup.h>
#include <rcutils/types/hash_map.h>
#include <rcutils/types/string_map.h>
#include <rosidl_runtime_c/primitives_sequence_functions.h>
#include <rosidl_runtime_c/string_functions.h>
#include <rosidl_runtime_c/u16string_functions.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/arena.h>
#ifdef HAVE_MESSAGES
#include <rosidl_typesupport_introspection_c/message_introspection.h>

#include "reach_msgs/msg/detail/sample__rosidl_typesupport_introspection_c.h"
#include "reach_msgs/msg/sample.h"
#endif

static weir_arena_t *arena;
static void (*arena_stats)(weir_arena_t *, weir_stats_t *, size_t);
static uint64_t live_before;

static uint64_t live(void) {
  weir_stats_t stats = {.live = 0};
  if (arena != NULL)
    arena_stats(arena, &stats, sizeof stats);
  return stats.live;
}

static void call(const char *name) {
  void (*function)(void) = dlsym(RTLD_DEFAULT, name);
  if (function != NULL)
    function();
}

static void require(bool condition, const char *what) {
  if (condition)
    return;
  printf("%s failed\n", what);
  exit(EXIT_FAILURE);
}

/* What stands between the two is the part. */
static void begin(void) {
  fflush(stdout);
  live_before = live();
  call("callers_begin");
}

static void made(const char *part) {
  uint64_t more = live() - live_before;
  printf("%s: arena %llu, malloc by", part, (unsigned long long)more);
  call("callers_print");
  printf("\n");
}

static void rcutils_parts(void) {
  rcutils_allocator_t allocator = rcutils_get_default_allocator();
  rcutils_string_map_t map = rcutils_get_zero_initialized_string_map();
  rcutils_dir_iter_t *entries;
  rcutils_shared_library_t library = rcutils_get_zero_initialized_shared_library();

  begin();
  require(rcutils_string_map_init(&map, 4, allocator) == 0 &&
              rcutils_string_map_set(&map, "key", "value") == 0,
          "string map");
  made("rcutils string map");
  require(rcutils_string_map_fini(&map) == 0, "string map");

  begin();
  require(rcutils_logging_initialize() == 0 &&
              rcutils_logging_set_logger_level("robot", RCUTILS_LOG_SEVERITY_WARN) == 0,
          "logging");
  made("rcutils logging");
  require(rcutils_logging_shutdown() == 0, "logging");

  /* Those that go on to the C library. */
  begin();
  require(rcutils_set_env("REACH", "some value of the environment"), "environment");
  made("rcutils environment");
  begin();
  entries = rcutils_dir_iter_start("/", allocator);
  require(entries != NULL, "directory");
  made("rcutils directory");
  rcutils_dir_iter_end(entries);
  begin();
  require(rcutils_load_shared_library(&library, "libm.so.6", allocator) == 0, "library");
  made("rcutils shared library");
  require(rcutils_unload_shared_library(&library) == 0, "library");
}

static void rosidl_parts(void) {
  rosidl_runtime_c__String__Sequence strings;
  rosidl_runtime_c__U16String wide;
  rosidl_runtime_c__uint8__Sequence bytes;

  begin();
  require(rosidl_runtime_c__String__Sequence__init(&strings, 3) &&
              rosidl_runtime_c__String__assign(&strings.data[0], "a string of some length"),
          "strings");
  made("rosidl strings");
  rosidl_runtime_c__String__Sequence__fini(&strings);

  begin();
  require(rosidl_runtime_c__U16String__init(&wide) &&
              rosidl_runtime_c__U16String__resize(&wide, 50),
          "wide string");
  made("rosidl wide string");
  rosidl_runtime_c__U16String__fini(&wide);

  begin();
  require(rosidl_runtime_c__uint8__Sequence__init(&bytes, 1 << 20), "bytes");
  made("rosidl bytes");
  rosidl_runtime_c__uint8__Sequence__fini(&bytes);
}

#ifdef HAVE_MESSAGES
static void message_parts(void) {
  reach_msgs__msg__Sample *message, *copy;
  reach_msgs__msg__Sample__Sequence *messages;

  begin();
  message = reach_msgs__msg__Sample__create();
  copy = reach_msgs__msg__Sample__create();
  require(message != NULL && copy != NULL &&
              rosidl_runtime_c__uint8__Sequence__init(&message->data, 1 << 20) &&
              rosidl_runtime_c__String__assign(&message->frame, "camera_link") &&
              reach_msgs__msg__Sample__copy(message, copy),
          "message");
  made("message in C");
  reach_msgs__msg__Sample__destroy(message);
  reach_msgs__msg__Sample__destroy(copy);

  begin();
  messages = reach_msgs__msg__Sample__Sequence__create(4);
  require(messages != NULL, "messages");
  made("messages in C");
  reach_msgs__msg__Sample__Sequence__destroy(messages);
}

/* By the functions that middlewares without generated code use. */
static void introspection_part(void) {
  const rosidl_typesupport_introspection_c__MessageMembers *members =
      ROSIDL_TYPESUPPORT_INTERFACE__MESSAGE_SYMBOL_NAME(rosidl_typesupport_introspection_c,
                                                        reach_msgs, msg, Sample)()
          ->data;
  void *message = calloc(1, members->size_of_);
  begin();
  require(message != NULL, "memory");
  members->init_function(message, ROSIDL_RUNTIME_C_MSG_INIT_ALL);
  for (uint32_t i = 0; i < members->member_count_; i++) {
    const rosidl_typesupport_introspection_c__MessageMember *member = &members->members_[i];
    if (member->resize_function != NULL)
      require(member->resize_function((char *)message + member->offset_, 1000), "resize");
  }
  made("message by introspection");
  members->fini_function(message);
  free(message);
}
#endif

int main(int argc, char **argv) {
  void *cxx = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
  void (*cxx_part)(void (*)(void), void (*)(const char *)) =
      cxx != NULL ? dlsym(cxx, "reach_cxx") : NULL;
  weir_arena_t *(*rcutils_arena)(void) = dlsym(RTLD_DEFAULT, "weir_rcutils_arena");
  arena_stats = dlsym(RTLD_DEFAULT, "weir_arena_stats");
  require(argc < 2 || cxx_part != NULL, "the library of C++");
  if (rcutils_arena != NULL)
    arena = rcutils_arena();
  /* Its buffer comes from malloc. */
  printf("arena: %s\n", arena != NULL ? "yes" : "no");
  rcutils_parts();
  rosidl_parts();
#ifdef HAVE_MESSAGES
  message_parts();
  introspection_part();
#endif
  if (cxx_part != NULL)
    cxx_part(begin, made);
  printf("left: %llu\n", (unsigned long long)live());
  return EXIT_SUCCESS;
}
