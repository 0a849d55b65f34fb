/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every form of operator new and delete: throwing, nothrow, sized, aligned, of arrays; new
 * handlers that are called and can help; bad_alloc; sizes that delete gets wrong, as ROS nodes do
 * through rclcpp's allocator; and containers on top.
 */
#include "expect.h"

#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace {

void check(void *block, size_t size, size_t alignment, const char *form) {
  EXPECT(block != nullptr, "%s gave NULL", form);
  EXPECT(expect_aligned(block, alignment), "%s: %p is no multiple of %zu", form, block, alignment);
  EXPECT(malloc_usable_size(block) >= size, "%s: too small", form);
  expect_fill(block, size, size);
}

void forms(size_t size) {
  void *block = ::operator new(size);
  check(block, size, 16, "new");
  ::operator delete(block);
  check(block = ::operator new(size), size, 16, "new");
  ::operator delete(block, size);
  check(block = ::operator new[](size), size, 16, "new[]");
  ::operator delete[](block);
  check(block = ::operator new[](size), size, 16, "new[]");
  ::operator delete[](block, size);
  check(block = ::operator new(size, std::nothrow), size, 16, "new(nothrow)");
  ::operator delete(block, std::nothrow);
  check(block = ::operator new[](size, std::nothrow), size, 16, "new[](nothrow)");
  ::operator delete[](block, std::nothrow);
}

void aligned_forms(size_t size, size_t number) {
  auto alignment = static_cast<std::align_val_t>(number);
  void *block = ::operator new(size, alignment);

  check(block, size, number, "aligned new");
  ::operator delete(block, alignment);
  check(block = ::operator new(size, alignment), size, number, "aligned new");
  ::operator delete(block, size, alignment);
  check(block = ::operator new[](size, alignment), size, number, "aligned new[]");
  ::operator delete[](block, alignment);
  check(block = ::operator new[](size, alignment), size, number, "aligned new[]");
  ::operator delete[](block, size, alignment);
  check(block = ::operator new(size, alignment, std::nothrow), size, number, "aligned nothrow");
  ::operator delete(block, alignment, std::nothrow);
  check(block = ::operator new[](size, alignment, std::nothrow), size, number, "aligned nothrow[]");
  ::operator delete[](block, alignment, std::nothrow);
}

/* Kinds of new, so that each meets too large a size with and without a handler. */
void *take(int kind, size_t size) {
  auto alignment = static_cast<std::align_val_t>(64);

  switch (kind) {
  case 0:
    return ::operator new(size);
  case 1:
    return ::operator new[](size);
  case 2:
    return ::operator new(size, alignment);
  case 3:
    return ::operator new[](size, alignment);
  case 4:
    return ::operator new(size, std::nothrow);
  case 5:
    return ::operator new[](size, std::nothrow);
  case 6:
    return ::operator new(size, alignment, std::nothrow);
  default:
    return ::operator new[](size, alignment, std::nothrow);
  }
}

int handler_calls;

void give_up() {
  if (++handler_calls == 3)
    std::set_new_handler(nullptr);
}

void throw_other() {
  throw std::bad_alloc();
}

bool own_operators() {
#ifdef EXPECT_STATIC
  return false;
#else
  return expect_strict();
#endif
}

void too_large() {
  static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 63, (size_t)PTRDIFF_MAX + 1, (size_t)1 << 62};

  for (size_t size : sizes) {
    for (int kind = 0; kind < 8; kind++) {
      /* libstdc++'s own aligned forms, which static programs have, round such a size up to 0 and
       * give a block. */
      if (!own_operators() && size > SIZE_MAX - 64 && (kind & 2) != 0)
        continue;
      for (int handled = 0; handled < 3; handled++) {
        bool thrown = false;
        void *block = nullptr;

        handler_calls = 0;
        std::set_new_handler(handled == 0 ? nullptr : handled == 1 ? give_up : throw_other);
        try {
          block = expect_hide(take(kind, expect_hide_size(size)));
        } catch (const std::bad_alloc &) {
          thrown = true;
        }
        EXPECT(block == nullptr, "kind %d of new gave %zu bytes", kind, size);
        EXPECT(thrown == (kind < 4), "kind %d of %zu: %s", kind, size,
               thrown ? "threw" : "no throw");
        EXPECT(handled != 1 || handler_calls == 3, "kind %d: handler called %d times", kind,
               handler_calls);
      }
    }
  }
  std::set_new_handler(nullptr);
}

void *reserve_memory;

void free_reserve() {
  handler_calls++;
  std::free(reserve_memory);
  reserve_memory = nullptr;
  if (handler_calls > 1)
    std::set_new_handler(nullptr);
}

/* A handler that gives memory back lets the new that called it succeed. */
void handler_helps() {
  struct rlimit old, low;

  for (int kind = 0; kind < 8; kind++) {
    const size_t size = 96 * EXPECT_MIB;

    reserve_memory = expect_hide(std::malloc(128 * EXPECT_MIB));
    REQUIRE(reserve_memory != nullptr, "no 128 MiB");
    getrlimit(RLIMIT_AS, &old);
    low = old;
    low.rlim_cur = expect_proc("/proc/self/status", "VmSize:") + 8 * EXPECT_MIB;
    setrlimit(RLIMIT_AS, &low);
    /* What the allocator still has in reserve must not be enough. */
    std::vector<void *> taken;
    taken.reserve(64);
    void *block;
    while (taken.size() < 64 && (block = expect_hide(std::malloc(size))) != nullptr) {
      taken.push_back(block);
    }
    handler_calls = 0;
    std::set_new_handler(free_reserve);
    block = nullptr;
    try {
      block = expect_hide(take(kind, expect_hide_size(size)));
    } catch (const std::bad_alloc &) {
    }
    EXPECT(handler_calls == 1, "kind %d: the handler was called %d times", kind, handler_calls);
    EXPECT(block != nullptr, "kind %d: new failed although the handler freed 128 MiB", kind);
    std::free(block);
    for (void *one : taken)
      std::free(one);
    std::free(reserve_memory);
    std::set_new_handler(nullptr);
    setrlimit(RLIMIT_AS, &old);
  }
}

struct base {
  int a = 1;
};

struct derived : base {
  char tail[5000] = {};
};

template <size_t size> struct message { char bytes[size]; };

/* rclcpp gives back everything with size 1. */
template <size_t size> void through_allocator(size_t rounds) {
  std::allocator<message<size>> allocator;

  for (size_t i = 0; i < rounds; i++) {
    message<size> *block = allocator.allocate(1 + i % 1000);
    block->bytes[0] = 1;
    allocator.deallocate(static_cast<message<size> *>(expect_hide(block)), 1);
  }
}

void wrong_sizes() {
  size_t before, i;

  for (i = 0; i < 2; i++) {
    before = mallinfo2().uordblks + mallinfo2().hblkhd;
    through_allocator<1>(30000);
    through_allocator<24>(30000);
    through_allocator<100>(30000);
    through_allocator<1000>(3000);
    through_allocator<10000>(1000);
    for (size_t round = 0; round < 10000; round++) {
      base *one = static_cast<base *>(expect_hide(new derived));
      ::operator delete(one, sizeof(base));
      void *empty = ::operator new(0, static_cast<std::align_val_t>(4096));
      ::operator delete(empty, static_cast<size_t>(0), static_cast<std::align_val_t>(4096));
      ::operator delete(::operator new(70000), static_cast<size_t>(3));
    }
  }
  EXPECT(mallinfo2().uordblks + mallinfo2().hblkhd <= before + 65536, "wrong sizes leak");
}

void containers() {
  std::map<std::string, std::vector<std::shared_ptr<std::string>>> all;
  size_t total = 0;

  for (int i = 0; i < 20000; i++) {
    auto &list = all["a key that is longer than the small string buffer " + std::to_string(i % 97)];
    list.push_back(std::make_shared<std::string>(static_cast<size_t>(i % 300), 'x'));
    if (list.size() > 50)
      list.erase(list.begin(), list.begin() + 25);
  }
  for (auto &pair : all) {
    for (auto &text : pair.second)
      total += text->size();
  }
  EXPECT(total > 100000, "containers lost their contents: %zu", total);
}

struct alignas(256) wide {
  char bytes[300];
};

} // namespace

int main() {
  static const size_t sizes[] = {0, 1, 15, 16, 17, 100, 1024, 5000, 65536, 65537, 1 << 20};

  expect_start();
  for (size_t size : sizes) {
    forms(size);
    for (size_t alignment = 1; alignment <= EXPECT_MIB; alignment *= 2) {
      aligned_forms(size, alignment);
    }
  }
  for (int i = 0; i < 1000; i++) {
    std::unique_ptr<wide> one(new wide);
    std::unique_ptr<wide[]> many(new wide[3]);
    EXPECT(expect_aligned(one.get(), 256) && expect_aligned(many.get(), 256), "new wide");
  }
  too_large();
  wrong_sizes();
  containers();
  handler_helps();
  return expect_done();
}
