/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of weir/memory_resource.hpp share: the suites' names; arenas that come empty and
 * must be left empty; what lies in an arena; and elements of which each knows its number.
 */
#ifndef TESTS_CXX_ARENAS_H
#define TESTS_CXX_ARENAS_H

#include <check.h>
#undef fail /* a name of the standard library's, too */

#include <cstring>
#include <string>
#include <utility>
#include <weir/memory_resource.hpp>

Suite *suite_allocator();
Suite *suite_containers();
Suite *suite_limits();
Suite *suite_random();
Suite *suite_rclcpp();
Suite *suite_resource();

/* Bytes in live blocks of an arena; nullptr: the default arena. */
inline uint64_t live(weir_arena_t *arena) {
  weir_stats_t stats;

  weir_arena_stats(arena, &stats, sizeof stats);
  return stats.live;
}

/* An arena for as long as a test lasts, that nothing may be left in. */
class scratch_arena {
public:
  explicit scratch_arena(size_t limit = WEIR_LIMIT_NONE) {
    weir_arena_options_t options = WEIR_ARENA_OPTIONS_INIT;

    options.name = "scratch";
    options.limit = limit;
    arena_ = weir_arena_create(&options);
    ck_assert_msg(arena_ != nullptr, "no arena");
    ck_assert_uint_eq(live(arena_), 0);
  }

  /* One in the caller's buffer. */
  scratch_arena(void *buffer, size_t size) : arena_(weir_arena_create_in(buffer, size, nullptr)) {
    ck_assert_msg(arena_ != nullptr, "no arena in %zu bytes", size);
  }

  scratch_arena(const scratch_arena &) = delete;
  scratch_arena &operator=(const scratch_arena &) = delete;

  ~scratch_arena() {
    ck_assert_uint_eq(live(arena_), 0);
    weir_arena_destroy(arena_);
  }

  weir_arena_t *get() const {
    return arena_;
  }

  operator weir_arena_t *() const {
    return arena_;
  }

private:
  weir_arena_t *arena_;
};

/* That the default arena holds at the end of a test what it held at its beginning. */
class default_balance {
public:
  default_balance() : before_(live(nullptr)) {}
  default_balance(const default_balance &) = delete;
  default_balance &operator=(const default_balance &) = delete;
  ~default_balance() {
    ck_assert_uint_eq(live(nullptr), before_);
  }

private:
  uint64_t before_;
};

using arena_string = std::basic_string<char, std::char_traits<char>, weir::allocator<char>>;

/* An element over a cache line, with a number. */
struct record {
  int number;
  char text[76];

  bool operator==(const record &other) const {
    return number == other.number && std::strcmp(text, other.text) == 0;
  }
  bool operator<(const record &other) const {
    return number < other.number;
  }
};

namespace std {
template <> struct hash<record> {
  size_t operator()(const record &one) const {
    return static_cast<size_t>(one.number);
  }
};
} // namespace std

/* The element of that number, of each type that the tests put into containers. */
template <typename T> struct element_of {
  static T make(int number) {
    return static_cast<T>(number);
  }
};

template <> struct element_of<char> {
  static char make(int number) {
    return static_cast<char>('a' + number % 26);
  }
};

template <> struct element_of<record> {
  static record make(int number) {
    record one;

    one.number = number;
    std::memset(one.text, 'a' + number % 26, sizeof one.text);
    one.text[sizeof one.text - 1] = '\0';
    return one;
  }
};

template <typename Key, typename Value> struct element_of<std::pair<const Key, Value>> {
  static std::pair<const Key, Value> make(int number) {
    return {element_of<Key>::make(number), element_of<Value>::make(number)};
  }
};

/* Whether the first `count` bytes of a block are all the same. (A check of Check's costs a system
 * call: loops over many of anything have one result.) */
inline bool all_are(const void *block, unsigned char value, size_t count) {
  auto *bytes = static_cast<const unsigned char *>(block);

  for (size_t i = 0; i < count; i++) {
    if (bytes[i] != value)
      return false;
  }
  return true;
}

/* Put the elements of the numbers from `first` on, `count` of them, into any container. */
template <typename Container> void fill(Container &container, int first, int count) {
  for (int i = first; i < first + count; i++)
    container.insert(container.end(), element_of<typename Container::value_type>::make(i));
}

/* Whether a container holds just these, in order where it has one. */
template <typename Container> bool holds(const Container &container, int count) {
  Container expected(container.get_allocator());

  fill(expected, 0, count);
  return container == expected;
}

#endif
