/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user of weir/memory_resource.hpp that needs no more than C++11 and neither exceptions nor types
 * at run time: built without both and run, and compiled by standards.sh in every other way. Without
 * exceptions, memory that is out ends in std::terminate, whose handler is the user's.
 */
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
#include <weir/memory_resource.hpp>

namespace {

int failures;

void expect(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "%s\n", what);
  failures++;
}

struct alignas(128) wide {
  char bytes[200];
};

void use_allocator(weir_arena_t *arena) {
  using pair = std::pair<const int, double>;
  std::vector<wide, weir::allocator<wide>> all(3, wide(), arena);
  std::map<int, double, std::less<int>, weir::allocator<pair>> map(arena);
  std::basic_string<char, std::char_traits<char>, weir::allocator<char>> text(1000, 'a', arena);
  auto shared = std::allocate_shared<wide>(weir::allocator<>(arena));

  map[1] = 2;
  all = std::vector<wide, weir::allocator<wide>>(weir::allocator<wide>(arena));
  all.swap(all);
  expect(weir::allocator<int>(arena) == text.get_allocator(), "allocators of one arena differ");
  expect(weir::allocator<>() != map.get_allocator(), "allocators of two arenas are equal");
  expect(weir_arena_of(text.data()) == arena, "a string is not in its arena");
}

#ifdef WEIR_HAS_MEMORY_RESOURCE
class own_resource : public std::pmr::memory_resource {
  void *do_allocate(std::size_t, std::size_t) override {
    return nullptr;
  }
  void do_deallocate(void *, std::size_t, std::size_t) override {}
  bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
    return this == &other;
  }
};

void use_resource(weir_arena_t *arena) {
  weir::memory_resource one(arena), alike(arena), other;
  own_resource own;
  std::pmr::vector<std::pmr::string> left(&one), right(&alike);

  left.emplace_back(1000, 'a');
  const void *at = left[0].data();
  right = std::move(left);
  expect(right[0].data() == at, "an element moved between equal resources");
  expect(weir_arena_of(at) == arena, "a string is not in its arena");
  expect(one == alike && one != other, "resources do not compare by their arena");
  expect(one != own && own != one, "a foreign resource is equal");
  expect(one != *std::pmr::new_delete_resource(), "the standard's resource is equal");
}
#endif

#if !defined(__cpp_exceptions) && !defined(__EXCEPTIONS)
[[noreturn]] void end_well() {
  _exit(42);
}

/* What the child does must come to the handler. */
template <typename Call> void expect_end(Call call, const char *what) {
  pid_t child = fork();
  int status = 0;

  if (child == 0) {
    std::set_terminate(end_well);
    call();
    _exit(1);
  }
  waitpid(child, &status, 0);
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 42, what);
}

void run_out() {
  expect_end([] { (void)weir::allocator<wide>().allocate(SIZE_MAX / 2); }, "no end at a length");
  expect_end([] { (void)weir::allocator<char>().allocate(SIZE_MAX / 2 + 1); }, "no end at a size");
#ifdef WEIR_HAS_MEMORY_RESOURCE
  expect_end([] { (void)weir::memory_resource().allocate(SIZE_MAX / 2 + 1); }, "no end in pmr");
#endif
}
#else
template <typename Call> bool throws(Call call) {
  try {
    call();
  } catch (const std::bad_alloc &) {
    return true;
  }
  return false;
}

void run_out() {
  expect(throws([] { (void)weir::allocator<wide>().allocate(SIZE_MAX / 2); }), "no throw");
}
#endif

} // namespace

int main() {
  weir_arena_t *arena = weir_arena_create(nullptr);
  weir_stats_t stats;

  expect(arena != nullptr, "no arena");
  use_allocator(arena);
#ifdef WEIR_HAS_MEMORY_RESOURCE
  use_resource(arena);
#endif
  run_out();
  weir_arena_stats(arena, &stats, sizeof stats);
  expect(stats.live == 0, "something is left in the arena");
  weir_arena_destroy(arena);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
