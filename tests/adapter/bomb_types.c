/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations for bomb.c: rcutils' types and its functions of strings. Each is a life: made, grown,
 * used, copied where it can be, taken down. No lock: see bomb.h.
 */
#include <rcutils/format_string.h>
#include <rcutils/logging.h>
#include <rcutils/qsort.h>
#include <rcutils/repl_str.h>
#include <rcutils/split.h>
#include <rcutils/strdup.h>
#include <rcutils/types.h>
#include <rcutils/types/hash_map.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bomb.h"

/* ---- string arrays ---- */

static bool set_string(rcutils_string_array_t *array, size_t index, const char *string,
                       rcutils_allocator_t allocator) {
  array->data[index] = rcutils_strdup(string, allocator);
  return array->data[index] != NULL;
}

static bool use_string_array(rcutils_string_array_t *array, rcutils_string_array_t *other,
                             rcutils_allocator_t allocator) {
  int order = 0;
  if (!bomb_ok(rcutils_string_array_init(array, 3, &allocator)) ||
      !set_string(array, 0, "camera", allocator) || !set_string(array, 1, "arm", allocator) ||
      !set_string(array, 2, "base", allocator) || !bomb_ok(rcutils_string_array_resize(array, 6)) ||
      !set_string(array, 5, "wheel", allocator) || !bomb_ok(rcutils_string_array_sort(array)))
    return false;
  BOMB_CHECK(strcmp(array->data[0], "arm") == 0 && strcmp(array->data[3], "wheel") == 0);
  BOMB_CHECK(array->data[4] == NULL && array->data[5] == NULL && array->size == 6);
  if (!bomb_ok(rcutils_string_array_resize(array, 1)) ||
      !bomb_ok(rcutils_string_array_init(other, 1, &allocator)) ||
      !set_string(other, 0, "arm", allocator))
    return false;
  BOMB_CHECK(bomb_ok(rcutils_string_array_cmp(array, other, &order)) && order == 0);
  return true;
}

static bool string_array(rcutils_allocator_t allocator) {
  rcutils_string_array_t array = rcutils_get_zero_initialized_string_array();
  rcutils_string_array_t other = rcutils_get_zero_initialized_string_array();
  bool done = use_string_array(&array, &other, allocator);
  BOMB_CHECK(bomb_ok(rcutils_string_array_fini(&array)));
  BOMB_CHECK(bomb_ok(rcutils_string_array_fini(&other)));
  return done;
}

static bool split(rcutils_allocator_t allocator) {
  rcutils_string_array_t parts = rcutils_get_zero_initialized_string_array();
  bool done = bomb_ok(rcutils_split("/robot/arm/joint/", '/', allocator, &parts));
  if (done)
    BOMB_CHECK(parts.size == 3 && strcmp(parts.data[1], "arm") == 0);
  BOMB_CHECK(bomb_ok(rcutils_string_array_fini(&parts)));
  return done;
}

static bool split_last(rcutils_allocator_t allocator) {
  rcutils_string_array_t parts = rcutils_get_zero_initialized_string_array();
  bool done = bomb_ok(rcutils_split_last("robot/arm/joint", '/', allocator, &parts));
  if (done)
    BOMB_CHECK(parts.size == 2 && strcmp(parts.data[0], "robot/arm") == 0 &&
               strcmp(parts.data[1], "joint") == 0);
  BOMB_CHECK(bomb_ok(rcutils_string_array_fini(&parts)));
  return done;
}

/* ---- maps ---- */

static bool use_string_map(rcutils_string_map_t *map, rcutils_string_map_t *copy) {
  size_t capacity = 0, size = 0;
  if (!bomb_ok(rcutils_string_map_set(map, "one", "1")) ||
      !bomb_ok(rcutils_string_map_set(map, "two", "2")) ||
      !bomb_ok(rcutils_string_map_set(map, "three", "3")) ||
      !bomb_ok(rcutils_string_map_set(map, "one", "a longer value than before")) ||
      !bomb_ok(rcutils_string_map_unset(map, "two")) ||
      !bomb_ok(rcutils_string_map_set_no_resize(map, "four", "4")) ||
      !bomb_ok(rcutils_string_map_reserve(map, 16)) || !bomb_ok(rcutils_string_map_copy(map, copy)))
    return false;
  BOMB_CHECK(strcmp(rcutils_string_map_get(copy, "one"), "a longer value than before") == 0);
  BOMB_CHECK(strcmp(rcutils_string_map_get(copy, "four"), "4") == 0);
  BOMB_CHECK(!rcutils_string_map_key_exists(copy, "two"));
  BOMB_CHECK(bomb_ok(rcutils_string_map_get_size(copy, &size)) && size == 3);
  BOMB_CHECK(bomb_ok(rcutils_string_map_get_capacity(map, &capacity)) && capacity == 16);
  BOMB_CHECK(rcutils_string_map_get_next_key(map, NULL) != NULL);
  return bomb_ok(rcutils_string_map_clear(map));
}

static bool string_map(rcutils_allocator_t allocator) {
  rcutils_string_map_t map = rcutils_get_zero_initialized_string_map();
  rcutils_string_map_t copy = rcutils_get_zero_initialized_string_map();
  bool done = bomb_ok(rcutils_string_map_init(&map, 2, allocator)) &&
              bomb_ok(rcutils_string_map_init(&copy, 0, allocator)) && use_string_map(&map, &copy);
  BOMB_CHECK(bomb_ok(rcutils_string_map_fini(&map)));
  BOMB_CHECK(bomb_ok(rcutils_string_map_fini(&copy)));
  return done;
}

static bool use_hash_map(rcutils_hash_map_t *map) {
  static const char *const names[] = {"tf",    "scan", "image", "odom", "cmd",
                                      "joint", "imu",  "map",   "plan", "goal"};
  size_t count = sizeof names / sizeof names[0], size = 0, seen = 0;
  const char *key, **last = NULL;
  int value = 0;
  for (size_t i = 0; i < count; i++) {
    value = (int)i;
    if (!bomb_ok(rcutils_hash_map_set(map, &names[i], &value)))
      return false;
  }
  value = 33;
  if (!bomb_ok(rcutils_hash_map_set(map, &names[3], &value)) ||
      !bomb_ok(rcutils_hash_map_unset(map, &names[0])))
    return false;
  for (size_t i = 1; i < count; i++) {
    BOMB_CHECK(bomb_ok(rcutils_hash_map_get(map, &names[i], &value)));
    BOMB_CHECK(value == (i == 3 ? 33 : (int)i));
  }
  BOMB_CHECK(!rcutils_hash_map_key_exists(map, &names[0]));
  while (rcutils_hash_map_get_next_key_and_data(map, last, &key, &value) == RCUTILS_RET_OK) {
    last = &key;
    seen++;
  }
  rcutils_reset_error();
  return bomb_ok(rcutils_hash_map_get_size(map, &size)) && seen == size && size == count - 1;
}

static bool hash_map(rcutils_allocator_t allocator) {
  rcutils_hash_map_t map = rcutils_get_zero_initialized_hash_map();
  bool done;
  if (!bomb_ok(rcutils_hash_map_init(&map, 2, sizeof(char *), sizeof(int),
                                     rcutils_hash_map_string_hash_func,
                                     rcutils_hash_map_string_cmp_func, &allocator)))
    return false;
  done = use_hash_map(&map);
  BOMB_CHECK(bomb_ok(rcutils_hash_map_fini(&map)));
  /* rcutils_hash_map_set has brought it up, though it had nothing to log. */
  BOMB_CHECK(bomb_ok(rcutils_logging_shutdown()));
  return done;
}

/* ---- lists of bytes ---- */

static bool use_array_list(rcutils_array_list_t *list) {
  size_t size = 0;
  int value;
  for (value = 0; value < 9; value++)
    if (!bomb_ok(rcutils_array_list_add(list, &value)))
      return false;
  value = 44;
  BOMB_CHECK(bomb_ok(rcutils_array_list_set(list, 4, &value)));
  /* One before the last: rcutils moves what is behind it by memcpy, which for more than one would
   * overlap, and AddressSanitizer stops that. */
  BOMB_CHECK(bomb_ok(rcutils_array_list_remove(list, 7)));
  BOMB_CHECK(bomb_ok(rcutils_array_list_get(list, 4, &value)) && value == 44);
  BOMB_CHECK(bomb_ok(rcutils_array_list_get(list, 7, &value)) && value == 8);
  BOMB_CHECK(bomb_ok(rcutils_array_list_get_size(list, &size)) && size == 8);
  return true;
}

static bool array_list(rcutils_allocator_t allocator) {
  rcutils_array_list_t list = rcutils_get_zero_initialized_array_list();
  bool done;
  if (!bomb_ok(rcutils_array_list_init(&list, 2, sizeof(int), &allocator)))
    return false;
  done = use_array_list(&list);
  BOMB_CHECK(bomb_ok(rcutils_array_list_fini(&list)));
  return done;
}

static bool print_into(rcutils_char_array_t *array, const char *format, ...) {
  va_list arguments;
  bool done;
  va_start(arguments, format);
  done = bomb_ok(rcutils_char_array_vsprintf(array, format, arguments));
  va_end(arguments);
  return done;
}

static bool use_char_array(rcutils_char_array_t *array) {
  static const char text[] = "[INFO] [camera]: ";
  if (!bomb_ok(rcutils_char_array_strcpy(array, text)) ||
      !bomb_ok(rcutils_char_array_strcat(array, "exposure set, ")) ||
      !bomb_ok(rcutils_char_array_strncat(array, "gain not set", 4)))
    return false;
  BOMB_CHECK(strcmp(array->buffer, "[INFO] [camera]: exposure set, gain") == 0);
  if (!bomb_ok(rcutils_char_array_resize(array, 1000)) ||
      !bomb_ok(rcutils_char_array_expand_as_needed(array, 5000)) ||
      !bomb_ok(rcutils_char_array_memcpy(array, text, sizeof text)))
    return false;
  BOMB_CHECK(strcmp(array->buffer, text) == 0 && array->buffer_capacity >= 5000);
  if (!print_into(array, "%06000d.", 7))
    return false;
  BOMB_CHECK(strlen(array->buffer) == 6001 && strcmp(array->buffer + 5999, "7.") == 0);
  return true;
}

static bool char_array(rcutils_allocator_t allocator) {
  rcutils_char_array_t array = rcutils_get_zero_initialized_char_array();
  bool done = bomb_ok(rcutils_char_array_init(&array, 0, &allocator)) && use_char_array(&array);
  BOMB_CHECK(bomb_ok(rcutils_char_array_fini(&array)));
  return done;
}

/* As the log lines of rcutils begin: in a buffer of the caller's. */
static bool char_array_of_caller(rcutils_allocator_t allocator) {
  char buffer[16] = "";
  rcutils_char_array_t array = {buffer, false, 0, sizeof buffer, allocator};
  bool done = use_char_array(&array);
  if (array.owns_buffer)
    BOMB_CHECK(array.buffer != buffer);
  BOMB_CHECK(bomb_ok(rcutils_char_array_fini(&array)));
  return done;
}

/* What rmw calls a serialized message. */
static bool use_uint8_array(rcutils_uint8_array_t *array) {
  memset(array->buffer, 7, array->buffer_capacity);
  array->buffer_length = array->buffer_capacity;
  if (!bomb_ok(rcutils_uint8_array_resize(array, 200000)))
    return false;
  BOMB_CHECK(array->buffer[99] == 7 && array->buffer_length == 100);
  if (!bomb_ok(rcutils_uint8_array_resize(array, 10)))
    return false;
  BOMB_CHECK(array->buffer[9] == 7 && array->buffer_length == 10);
  return true;
}

static bool uint8_array(rcutils_allocator_t allocator) {
  rcutils_uint8_array_t array = rcutils_get_zero_initialized_uint8_array();
  bool done;
  if (!bomb_ok(rcutils_uint8_array_init(&array, 100, &allocator)))
    return false;
  done = use_uint8_array(&array);
  BOMB_CHECK(bomb_ok(rcutils_uint8_array_fini(&array)));
  return done;
}

/* ---- strings ---- */

/* Looks at a string that a function made, and gives it back. */
static bool is_string(char *string, const char *want, rcutils_allocator_t allocator) {
  if (string == NULL)
    return false;
  BOMB_CHECK(strcmp(string, want) == 0);
  allocator.deallocate(string, allocator.state);
  return true;
}

static bool copies(rcutils_allocator_t allocator) {
  BOMB_CHECK(rcutils_strdup(NULL, allocator) == NULL);
  return is_string(rcutils_strdup("", allocator), "", allocator) &&
         is_string(rcutils_strdup("lidar", allocator), "lidar", allocator) &&
         is_string(rcutils_strndup("lidar", 3, allocator), "lid", allocator);
}

static bool replacement(rcutils_allocator_t allocator) {
  /* More matches than it has room for at first. */
  static const char many[] = "aXaXaXaXaXaXaXaXaXaXaXaXaXaXaXaXaXaXaXaX";
  char want[3 * sizeof many];
  size_t used = 0;
  for (const char *at = many; *at != '\0'; at++)
    used += (size_t)snprintf(want + used, sizeof want - used, "%s", *at == 'X' ? "--" : "a");
  return is_string(rcutils_repl_str("{node}/image", "{node}", "camera", &allocator), "camera/image",
                   allocator) &&
         is_string(rcutils_repl_str("none here", "X", "--", &allocator), "none here", allocator) &&
         is_string(rcutils_repl_str(many, "X", "--", &allocator), want, allocator);
}

static bool format_string(rcutils_allocator_t allocator) {
  char *cut;
  if (!is_string(rcutils_format_string(allocator, "%s/%d", "camera", 3), "camera/3", allocator))
    return false;
  cut = rcutils_format_string_limit(allocator, 5, "%s", "camera");
  return is_string(cut, "came", allocator);
}

static bool reallocf(rcutils_allocator_t allocator) {
  char *block = allocator.allocate(10, allocator.state);
  if (block == NULL)
    return false;
  memcpy(block, "contents", sizeof "contents");
  /* Frees the block when it fails. */
  return is_string(rcutils_reallocf(block, 100000, &allocator), "contents", allocator);
}

const struct bomb_op bomb_types[] = {
    {"string_array", string_array}, {"split", split},
    {"split_last", split_last},     {"string_map", string_map},
    {"hash_map", hash_map},         {"array_list", array_list},
    {"char_array", char_array},     {"char_array_of_caller", char_array_of_caller},
    {"uint8_array", uint8_array},   {"copies", copies},
    {"replacement", replacement},   {"format_string", format_string},
    {"reallocf", reallocf},         {NULL, NULL},
};
