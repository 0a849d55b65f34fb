/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rclcpp does with an allocator, done to weir::allocator: functions of C that are given a
 * number of bytes and pass it on as a number of elements, free with a count of 1, reallocate by
 * freeing first, and reach the allocator through a pointer that may dangle by then; allocators in
 * shared pointers, rebound back and forth; deleters that count in bytes; the executor's lists.
 */
#include "arenas.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <random>
#include <vector>

namespace {

/* What rcl takes: functions over a state. */
struct c_allocator {
  void *(*allocate)(size_t size, void *state);
  void (*deallocate)(void *block, void *state);
  void *(*reallocate)(void *block, size_t size, void *state);
  void *(*zero_allocate)(size_t count, size_t size, void *state);
  void *state;
};

template <typename Alloc> using value_of = typename std::allocator_traits<Alloc>::value_type;

template <typename Alloc> void *bridge_allocate(size_t size, void *state) {
  return std::allocator_traits<Alloc>::allocate(*static_cast<Alloc *>(state), size);
}

template <typename Alloc> void bridge_deallocate(void *block, void *state) {
  std::allocator_traits<Alloc>::deallocate(*static_cast<Alloc *>(state),
                                           static_cast<value_of<Alloc> *>(block), 1);
}

template <typename Alloc> void *bridge_reallocate(void *block, size_t size, void *state) {
  bridge_deallocate<Alloc>(block, state);
  return bridge_allocate<Alloc>(size, state);
}

template <typename Alloc> void *bridge_zero_allocate(size_t count, size_t size, void *state) {
  void *block = bridge_allocate<Alloc>(count * size, state);

  if (block != nullptr)
    std::memset(block, 0, count * size);
  return block;
}

template <typename Alloc> c_allocator bridge(Alloc &allocator) {
  return {bridge_allocate<Alloc>, bridge_deallocate<Alloc>, bridge_reallocate<Alloc>,
          bridge_zero_allocate<Alloc>, &allocator};
}

template <typename T, typename Alloc>
using rebound = typename std::allocator_traits<Alloc>::template rebind_alloc<T>;
template <typename T, typename Alloc>
using rebound_traits = typename std::allocator_traits<Alloc>::template rebind_traits<T>;

struct message {
  char text[100];
  explicit message(char letter = 'm') {
    std::memset(text, letter, sizeof text);
  }
};

struct alignas(64) wide_message {
  float values[32];
};

template <typename T> constexpr size_t size_of() {
  return sizeof(T);
}
template <> constexpr size_t size_of<void>() {
  return 1;
}

/* Random calls of all four functions, with sizes that cross classes; blocks keep what is written.
 */
template <typename T> void check_bridge(weir_arena_t *arena) {
  weir::allocator<T> allocator(arena);
  c_allocator c = bridge(allocator);
  std::mt19937 random(1);
  struct block {
    unsigned char *at;
    size_t size;
    unsigned char value;
  };
  std::vector<block> blocks;
  uint64_t before = live(arena);
  bool good = true;

  for (int i = 0; i < 20000; i++) {
    size_t size = random() % (random() % 64 == 0 ? 5000 : 200);
    unsigned char value = static_cast<unsigned char>(i);
    block one = {nullptr, size, value};
    switch (blocks.size() < 20 ? random() % 2 : random() % 5) {
    case 0:
      one.at = static_cast<unsigned char *>(c.allocate(size, c.state));
      break;
    case 1:
      one.at = static_cast<unsigned char *>(c.zero_allocate(1, size, c.state));
      good = good && all_are(one.at, 0, size);
      break;
    case 2:
      one.at = static_cast<unsigned char *>(c.reallocate(blocks.back().at, size, c.state));
      blocks.pop_back();
      break;
    default:
      std::swap(blocks[random() % blocks.size()], blocks.back());
      one = blocks.back();
      good = good && all_are(one.at, one.value, one.size);
      c.deallocate(one.at, c.state);
      blocks.pop_back();
      continue;
    }
    good = good && one.at != nullptr && weir_arena_of(one.at) == arena &&
           weir_usable_size(one.at) >= size * size_of<T>();
    std::memset(one.at, value, size);
    blocks.push_back(one);
  }
  for (const block &one : blocks)
    c.deallocate(one.at, c.state);
  ck_assert(good);
  ck_assert_uint_eq(live(arena), before);
}

START_TEST(bytes_for_elements) {
  default_balance balance;
  scratch_arena arena;

  for (weir_arena_t *of : {arena.get(), static_cast<weir_arena_t *>(nullptr)}) {
    check_bridge<char>(of);
    check_bridge<void>(of);
    check_bridge<void *>(of);
    check_bridge<message>(of);
    check_bridge<wide_message>(of);
  }
}
END_TEST

/* NULL may be reallocated and freed. */
START_TEST(bridge_takes_null) {
  scratch_arena arena;
  weir::allocator<char> allocator(arena);
  c_allocator c = bridge(allocator);

  c.deallocate(nullptr, c.state);
  void *block = c.reallocate(nullptr, 100, c.state);
  ck_assert_uint_ge(weir_usable_size(block), 100);
  c.deallocate(block, c.state);
}
END_TEST

/* A size in bytes that overflows as a number of messages must not come back as a short block. */
START_TEST(bridge_overflows_in_the_open) {
  scratch_arena arena;
  weir::allocator<message> allocator(arena);
  c_allocator c = bridge(allocator);
  int thrown = 0;

  for (size_t size : {SIZE_MAX / 2, SIZE_MAX / sizeof(message) + 1, SIZE_MAX / sizeof(message)}) {
    try {
      c.deallocate(c.allocate(size, c.state), c.state);
    } catch (const std::bad_alloc &) {
      thrown++;
    }
  }
  ck_assert_int_eq(thrown, 3);
}
END_TEST

/* The structure is copied, and the allocator that its copies point to is destroyed and overwritten
 * before the last blocks are given back: all the same to them. */
START_TEST(bridge_outlives_its_allocator) {
  scratch_arena arena;
  using allocator_type = weir::allocator<char>;
  alignas(allocator_type) unsigned char place[sizeof(allocator_type)];
  auto *allocator = new (place) allocator_type(arena);
  c_allocator first = bridge(*allocator), second = first, third = second;
  std::vector<void *> blocks;

  for (size_t size = 0; size < 200; size++) {
    blocks.push_back(first.allocate(size * size, first.state));
    blocks.push_back(third.zero_allocate(size, size, third.state));
  }
  allocator->~allocator_type();
  std::memset(place, 0xdb, sizeof place);
  for (size_t i = 0; i < blocks.size(); i++)
    (i % 2 == 0 ? second : third).deallocate(blocks[i], place);
  ck_assert_uint_eq(live(arena), 0);
}
END_TEST

/* Options that make their allocators when they are asked for the first time, and keep them. */
template <typename Alloc> class options {
public:
  std::shared_ptr<Alloc> allocator;

  std::shared_ptr<Alloc> get_allocator() const {
    if (allocator)
      return allocator;
    if (!storage_)
      storage_ = std::make_shared<Alloc>();
    return storage_;
  }

  c_allocator get_c_allocator() const {
    if (!plain_storage_)
      plain_storage_ = std::make_shared<rebound<char, Alloc>>(*get_allocator());
    return bridge(*plain_storage_);
  }

private:
  mutable std::shared_ptr<Alloc> storage_;
  mutable std::shared_ptr<rebound<char, Alloc>> plain_storage_;
};

/* The handle of rcl is the base's, and goes after the options of the class on top, with which its
 * allocator goes. */
class endpoint_base {
public:
  explicit endpoint_base(c_allocator c) : c_(c), handle_(c.zero_allocate(1, 200, c.state)) {}
  endpoint_base(const endpoint_base &) = delete;
  endpoint_base &operator=(const endpoint_base &) = delete;
  virtual ~endpoint_base() {
    c_.deallocate(handle_, c_.state);
  }

protected:
  c_allocator c_;
  void *handle_;
};

template <typename Alloc> class endpoint : public endpoint_base {
public:
  explicit endpoint(const options<Alloc> &given)
      : endpoint_base(given.get_c_allocator()), options_(given), messages_(*given.get_allocator()) {
  }

  rebound<message, Alloc> &messages() {
    return messages_;
  }

  weir_arena_t *arena_of_handle() const {
    return weir_arena_of(handle_);
  }

private:
  options<Alloc> options_;
  rebound<message, Alloc> messages_;
};

START_TEST(endpoints_outlive_their_options) {
  default_balance balance;
  scratch_arena arena;
  using alloc = weir::allocator<>;
  std::vector<std::unique_ptr<endpoint<alloc>>> all;

  for (int i = 0; i < 100; i++) {
    options<alloc> given;
    if (i % 2 == 0)
      given.allocator = std::make_shared<alloc>(arena);
    all.emplace_back(new endpoint<alloc>(given));
    ck_assert(all.back()->arena_of_handle() == (i % 2 == 0 ? arena.get() : nullptr));
    ck_assert(all.back()->messages().arena() == all.back()->arena_of_handle());
  }
  ck_assert_uint_ge(live(arena), 50 * 200);
  all.clear();
}
END_TEST

/* An allocator that is rebound from type to type stays with its arena. */
START_TEST(rebinding_keeps_the_arena) {
  scratch_arena arena;
  auto given = std::make_shared<weir::allocator<>>(arena);
  rebound<message, weir::allocator<>> messages(*given);
  rebound<void *, decltype(messages)> pointers(messages);
  rebound<char, decltype(pointers)> bytes(pointers);
  rebound<void, decltype(bytes)> back(bytes);
  using again = rebound_traits<message, decltype(back)>::allocator_type;

  static_assert(std::is_same<again, decltype(messages)>::value, "");
  static_assert(std::is_same<decltype(back), weir::allocator<>>::value, "");
  ck_assert(messages.arena() == arena && back == *given && again(back) == messages);
  given.reset();
  message *one = std::allocator_traits<again>::allocate(messages, 1);
  std::allocator_traits<again>::construct(messages, one, 'x');
  ck_assert_int_eq(one->text[99], 'x');
  std::allocator_traits<again>::destroy(messages, one);
  bytes.deallocate(reinterpret_cast<char *>(one), 1);
}
END_TEST

/* A deleter that knows the allocator by its address and gives back sizeof(T) elements. */
template <typename Alloc> class deleter {
public:
  explicit deleter(Alloc *allocator = nullptr) : allocator_(allocator) {}

  void operator()(value_of<Alloc> *one) {
    std::allocator_traits<Alloc>::destroy(*allocator_, one);
    std::allocator_traits<Alloc>::deallocate(*allocator_, one, sizeof *one);
  }

private:
  Alloc *allocator_;
};

START_TEST(messages_with_deleters) {
  scratch_arena arena;
  weir::allocator<message> allocator(arena);
  using traits = std::allocator_traits<weir::allocator<message>>;
  using owner = std::unique_ptr<message, deleter<weir::allocator<message>>>;
  std::vector<std::shared_ptr<const message>> queue;

  for (int i = 0; i < 1000; i++) {
    message *one = traits::allocate(allocator, 1);
    traits::construct(allocator, one, static_cast<char>(i));
    owner unique(one, deleter<weir::allocator<message>>(&allocator));
    if (i % 3 != 0)
      queue.emplace_back(std::move(unique)); /* promoted, as between nodes of one process */
    if (queue.size() > 10)
      queue.erase(queue.begin());
  }
  ck_assert_uint_ge(live(arena), 10 * sizeof(message));
  queue.clear();
  ck_assert_uint_eq(live(arena), 0);
}
END_TEST

/* Messages that wait in a subscription's queue outlive the publisher, whose allocator their
 * deleters point to. */
START_TEST(messages_outlive_their_publisher) {
  scratch_arena arena;
  using allocator_type = weir::allocator<message>;
  using owner = std::unique_ptr<message, deleter<allocator_type>>;
  alignas(allocator_type) unsigned char place[sizeof(allocator_type)];
  auto *allocator = new (place) allocator_type(arena);
  std::vector<owner> queue;

  for (int i = 0; i < 100; i++) {
    queue.emplace_back(new (allocator->allocate(1)) message, deleter<allocator_type>(allocator));
    queue.emplace_back(new (allocator->allocate(700)) message, deleter<allocator_type>(allocator));
  }
  allocator->~allocator_type();
  std::memset(place, 0xdb, sizeof place);
  queue.clear();
  ck_assert_uint_eq(live(arena), 0);
}
END_TEST

/* The executor's lists of handles are filled, filtered into a temporary, swapped with it, and
 * emptied, and what it runs next is made by allocate_shared: all over one shared allocator. */
template <typename Alloc> class strategy {
public:
  explicit strategy(const std::shared_ptr<Alloc> &given)
      : executables_(std::make_shared<rebound<message, Alloc>>(*given)),
        pointers_(std::make_shared<rebound<void *, Alloc>>(*given)), handles_(*pointers_) {}

  std::shared_ptr<message> turn(size_t count) {
    for (size_t i = 0; i < count; i++)
      handles_.push_back(i % 3 == 0 ? nullptr : this);
    list ready(*pointers_);
    for (void *one : handles_) {
      if (one != nullptr)
        ready.push_back(one);
    }
    handles_.swap(ready);
    ck_assert_uint_eq(handles_.size(), count - (count + 2) / 3);
    handles_.clear();
    return std::allocate_shared<message>(*executables_);
  }

  c_allocator get_c_allocator() {
    return bridge(*pointers_);
  }

private:
  using list = std::vector<void *, rebound<void *, Alloc>>;

  std::shared_ptr<rebound<message, Alloc>> executables_;
  std::shared_ptr<rebound<void *, Alloc>> pointers_;
  list handles_;
};

START_TEST(executors_memory) {
  default_balance balance;
  scratch_arena arena;
  {
    strategy<weir::allocator<>> one(std::make_shared<weir::allocator<>>(arena));
    strategy<weir::allocator<>> other(std::make_shared<weir::allocator<>>());
    std::shared_ptr<message> last;
    for (size_t i = 0; i < 300; i++) {
      last = one.turn(i % 40);
      other.turn(i % 7);
    }
    c_allocator c = one.get_c_allocator();
    void *block = c.allocate(10, c.state);
    ck_assert_uint_ge(weir_usable_size(block), 10 * sizeof(void *));
    c.deallocate(block, c.state);
    ck_assert_uint_gt(live(arena), 0);
  }
  ck_assert_uint_eq(live(arena), 0);
}
END_TEST

/* Where the arena is full, the exception passes through, and what was there still is. */
START_TEST(bridge_at_the_limit) {
  scratch_arena arena(size_t{1} << 20);
  weir::allocator<char> allocator(arena);
  c_allocator c = bridge(allocator);
  std::vector<void *> blocks;
  bool full = false;

  blocks.reserve(100000);
  while (!full && blocks.size() < 100000) {
    try {
      blocks.push_back(c.zero_allocate(1, 300, c.state));
    } catch (const std::bad_alloc &) {
      full = true;
    }
  }
  ck_assert(full);
  ck_assert_uint_gt(blocks.size(), 500);
  for (void *block : blocks)
    c.deallocate(block, c.state);
  ck_assert_uint_eq(live(arena), 0);
}
END_TEST

} // namespace

Suite *suite_rclcpp() {
  Suite *suite = suite_create("rclcpp");
  TCase *tests = tcase_create("rclcpp");

  tcase_set_timeout(tests, 120);
  tcase_add_test(tests, bytes_for_elements);
  tcase_add_test(tests, bridge_takes_null);
  tcase_add_test(tests, bridge_overflows_in_the_open);
  tcase_add_test(tests, bridge_outlives_its_allocator);
  tcase_add_test(tests, endpoints_outlive_their_options);
  tcase_add_test(tests, rebinding_keeps_the_arena);
  tcase_add_test(tests, messages_with_deleters);
  tcase_add_test(tests, messages_outlive_their_publisher);
  tcase_add_test(tests, executors_memory);
  tcase_add_test(tests, bridge_at_the_limit);
  suite_add_tcase(suite, tests);
  return suite;
}
