/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations for bomb.c: strings and sequences of rosidl's C runtime, which takes its memory from
 * rcutils' default allocator. No lock: see bomb.h.
 */
#include <rosidl_runtime_c/primitives_sequence_functions.h>
#include <rosidl_runtime_c/string_functions.h>
#include <rosidl_runtime_c/u16string_functions.h>
#include <string.h>

#include "bomb.h"

/* ---- strings ---- */

static bool use_string(rosidl_runtime_c__String *string, rosidl_runtime_c__String *copy) {
  if (!rosidl_runtime_c__String__assign(string, "short") ||
      !rosidl_runtime_c__String__assignn(string, "camera_link and more", 11) ||
      !rosidl_runtime_c__String__copy(string, copy))
    return false;
  BOMB_CHECK(strcmp(copy->data, "camera_link") == 0 && copy->size == 11 && copy->capacity == 12);
  BOMB_CHECK(rosidl_runtime_c__String__are_equal(string, copy));
  return true;
}

static bool rosidl_string(rcutils_allocator_t allocator) {
  rosidl_runtime_c__String string, copy;
  bool done;
  (void)allocator;
  if (!rosidl_runtime_c__String__init(&string))
    return false;
  done = rosidl_runtime_c__String__init(&copy);
  if (done) {
    done = use_string(&string, &copy);
    rosidl_runtime_c__String__fini(&copy);
  }
  rosidl_runtime_c__String__fini(&string);
  return done;
}

static bool use_strings(rosidl_runtime_c__String__Sequence *strings,
                        rosidl_runtime_c__String__Sequence *copy) {
  if (!rosidl_runtime_c__String__assign(&strings->data[0], "first") ||
      !rosidl_runtime_c__String__assign(&strings->data[2], "third") ||
      !rosidl_runtime_c__String__Sequence__copy(strings, copy))
    return false;
  BOMB_CHECK(copy->size == 3 && strcmp(copy->data[2].data, "third") == 0);
  BOMB_CHECK(rosidl_runtime_c__String__Sequence__are_equal(strings, copy));
  return true;
}

static bool rosidl_strings(rcutils_allocator_t allocator) {
  rosidl_runtime_c__String__Sequence strings, copy;
  bool done;
  (void)allocator;
  if (!rosidl_runtime_c__String__Sequence__init(&strings, 3))
    return false;
  done = rosidl_runtime_c__String__Sequence__init(&copy, 1);
  if (done) {
    done = use_strings(&strings, &copy);
    rosidl_runtime_c__String__Sequence__fini(&copy);
  }
  rosidl_runtime_c__String__Sequence__fini(&strings);
  return done;
}

static bool rosidl_strings_made(rcutils_allocator_t allocator) {
  rosidl_runtime_c__String__Sequence *strings = rosidl_runtime_c__String__Sequence__create(2);
  (void)allocator;
  if (strings == NULL)
    return false;
  BOMB_CHECK(strings->size == 2 && strings->data[1].data[0] == '\0');
  rosidl_runtime_c__String__Sequence__destroy(strings);
  return true;
}

/* ---- wide strings ---- */

static bool use_u16string(rosidl_runtime_c__U16String *string, rosidl_runtime_c__U16String *copy) {
  static const uint16_t wide[] = {'w', 'i', 'd', 'e', 0};
  if (!rosidl_runtime_c__U16String__assign(string, wide) ||
      !rosidl_runtime_c__U16String__assignn(string, wide, 2) ||
      !rosidl_runtime_c__U16String__assignn_from_char(string, "wi", 2) ||
      !rosidl_runtime_c__U16String__resize(string, 40) ||
      !rosidl_runtime_c__U16String__assign(string, wide) ||
      !rosidl_runtime_c__U16String__copy(string, copy))
    return false;
  BOMB_CHECK(copy->size == 4 && memcmp(copy->data, wide, sizeof wide) == 0);
  BOMB_CHECK(rosidl_runtime_c__U16String__are_equal(string, copy));
  return true;
}

static bool rosidl_u16string(rcutils_allocator_t allocator) {
  rosidl_runtime_c__U16String string, copy;
  bool done;
  (void)allocator;
  if (!rosidl_runtime_c__U16String__init(&string))
    return false;
  done = rosidl_runtime_c__U16String__init(&copy);
  if (done) {
    done = use_u16string(&string, &copy);
    rosidl_runtime_c__U16String__fini(&copy);
  }
  rosidl_runtime_c__U16String__fini(&string);
  return done;
}

static bool use_u16strings(rosidl_runtime_c__U16String__Sequence *strings,
                           rosidl_runtime_c__U16String__Sequence *copy) {
  static const uint16_t wide[] = {'w', 'i', 'd', 'e', 0};
  if (!rosidl_runtime_c__U16String__assign(&strings->data[2], wide) ||
      !rosidl_runtime_c__U16String__Sequence__copy(strings, copy))
    return false;
  BOMB_CHECK(copy->size == 3 && memcmp(copy->data[2].data, wide, sizeof wide) == 0);
  BOMB_CHECK(rosidl_runtime_c__U16String__Sequence__are_equal(strings, copy));
  return true;
}

static bool rosidl_u16strings(rcutils_allocator_t allocator) {
  rosidl_runtime_c__U16String__Sequence strings, copy;
  bool done;
  (void)allocator;
  if (!rosidl_runtime_c__U16String__Sequence__init(&strings, 3))
    return false;
  done = rosidl_runtime_c__U16String__Sequence__init(&copy, 1);
  if (done) {
    done = use_u16strings(&strings, &copy);
    rosidl_runtime_c__U16String__Sequence__fini(&copy);
  }
  rosidl_runtime_c__U16String__Sequence__fini(&strings);
  return done;
}

static bool rosidl_u16strings_made(rcutils_allocator_t allocator) {
  rosidl_runtime_c__U16String__Sequence *strings = rosidl_runtime_c__U16String__Sequence__create(2);
  (void)allocator;
  if (strings == NULL)
    return false;
  BOMB_CHECK(strings->size == 2 && strings->data[1].data[0] == 0);
  rosidl_runtime_c__U16String__Sequence__destroy(strings);
  return true;
}

/* ---- sequences of numbers ---- */

/* For each type of number: a sequence that is made, copied over a shorter one, and compared. */
#define NUMBERS(X) \
  X(float) \
  X(double) \
  X(long_double) \
  X(char) \
  X(wchar) \
  X(boolean) \
  X(octet) \
  X(uint8) \
  X(int8) \
  X(uint16) \
  X(int16) \
  X(uint32) \
  X(int32) \
  X(uint64) \
  X(int64)

#define DEFINE(type) \
  static bool sequence_of_##type(rcutils_allocator_t allocator) { \
    rosidl_runtime_c__##type##__Sequence numbers, copy; \
    bool done; \
    (void)allocator; \
    if (!rosidl_runtime_c__##type##__Sequence__init(&numbers, 1000)) \
      return false; \
    memset(numbers.data, 0, 1000 * sizeof numbers.data[0]); \
    numbers.data[999] = 1; \
    done = rosidl_runtime_c__##type##__Sequence__init(&copy, 1); \
    if (done) { \
      done = rosidl_runtime_c__##type##__Sequence__copy(&numbers, &copy); \
      if (done) \
        BOMB_CHECK(copy.size == 1000 && copy.data[999] == 1 && \
                   rosidl_runtime_c__##type##__Sequence__are_equal(&numbers, &copy)); \
      rosidl_runtime_c__##type##__Sequence__fini(&copy); \
    } \
    rosidl_runtime_c__##type##__Sequence__fini(&numbers); \
    return done; \
  }
NUMBERS(DEFINE)
#undef DEFINE

/* A sequence of none, and one of a payload's size, as an image has. */
static bool sequence_of_payload(rcutils_allocator_t allocator) {
  rosidl_runtime_c__uint8__Sequence none, image;
  bool done;
  (void)allocator;
  if (!rosidl_runtime_c__uint8__Sequence__init(&none, 0))
    return false;
  done = rosidl_runtime_c__uint8__Sequence__init(&image, 1 << 20);
  if (done) {
    memset(image.data, 9, image.size);
    done = rosidl_runtime_c__uint8__Sequence__copy(&image, &none);
    if (done)
      BOMB_CHECK(rosidl_runtime_c__uint8__Sequence__are_equal(&image, &none));
    rosidl_runtime_c__uint8__Sequence__fini(&image);
  }
  rosidl_runtime_c__uint8__Sequence__fini(&none);
  return done;
}

const struct bomb_op bomb_rosidl[] = {
    {"rosidl_string", rosidl_string},
    {"rosidl_strings", rosidl_strings},
    {"rosidl_strings_made", rosidl_strings_made},
    {"rosidl_u16string", rosidl_u16string},
    {"rosidl_u16strings", rosidl_u16strings},
    {"rosidl_u16strings_made", rosidl_u16strings_made},
#define DEFINE(type) {"sequence_of_" #type, sequence_of_##type},
    NUMBERS(DEFINE)
#undef DEFINE
        {"sequence_of_payload", sequence_of_payload},
    {NULL, NULL},
};
