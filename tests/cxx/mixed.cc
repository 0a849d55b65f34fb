/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources that code of different kinds made, compared with each other. mixed.sh builds this file
 * four times: as the program; as a part of it without types at run time (UNTYPED); and as libraries
 * that hide their names and are loaded apart, so that each has a class of its own (LIBRARY), one of
 * them without types.
 */
#include <weir/memory_resource.hpp>

#ifdef LIBRARY

extern "C" __attribute__((visibility("default"))) std::pmr::memory_resource *
make_resource(weir_arena_t *arena) {
  return new weir::memory_resource(arena);
}

extern "C" __attribute__((visibility("default"))) bool
compare_resources(const std::pmr::memory_resource *one, const std::pmr::memory_resource *other) {
  return one->is_equal(*other);
}

#elif defined(UNTYPED)

namespace {
class untyped_resource : public std::pmr::memory_resource {
  void *do_allocate(std::size_t, std::size_t) override {
    return nullptr;
  }
  void do_deallocate(void *, std::size_t, std::size_t) override {}
  bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
    return this == &other;
  }
};
} // namespace

std::pmr::memory_resource *make_untyped() {
  return new untyped_resource;
}

std::pmr::memory_resource *make_resource_untyped(weir_arena_t *arena) {
  return new weir::memory_resource(arena);
}

#else

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>

using resource = std::unique_ptr<std::pmr::memory_resource>;
using maker = std::pmr::memory_resource *(*)(weir_arena_t *);
using comparer = bool (*)(const std::pmr::memory_resource *, const std::pmr::memory_resource *);

std::pmr::memory_resource *make_untyped();
std::pmr::memory_resource *make_resource_untyped(weir_arena_t *arena);

static int failures;

static void expect(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "%s\n", what);
  failures++;
}

struct library {
  maker make;
  comparer compare;

  explicit library(const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (handle == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::exit(EXIT_FAILURE);
    }
    make = reinterpret_cast<maker>(dlsym(handle, "make_resource"));
    compare = reinterpret_cast<comparer>(dlsym(handle, "compare_resources"));
  }
};

/* Resources of the program, of a typed library, of one without types; and the foreign one. */
int main(int, char **argv) {
  library typed(argv[1]), untyped(argv[2]);
  weir_arena_t *arena = weir_arena_create(nullptr);
  weir::memory_resource mine(arena), other;
  resource foreign(make_untyped()), part(make_resource_untyped(arena));
  resource theirs(typed.make(arena)), theirs_too(typed.make(arena));
  resource plain(untyped.make(arena)), plain_too(untyped.make(arena));

  expect(mine == *part && *part == mine, "one class in two parts of the program differs");
  expect(mine == *theirs && *theirs == mine, "the library's class is not told by its type");
  expect(other != *theirs && *theirs != other, "two arenas are one");
  expect(typed.compare(theirs.get(), theirs_too.get()), "the library's own differ");
  expect(untyped.compare(plain.get(), plain_too.get()), "the untyped library's own differ");
  expect(mine != *foreign && *foreign != mine && *theirs != *foreign, "a foreign one is equal");
  expect(!untyped.compare(plain.get(), foreign.get()), "a foreign one is equal without types");

  /* What cannot be told may pass for different, but must not pass for another arena's, or crash. */
  expect(other != *plain && *plain != other, "two arenas are one without types");
  expect(!untyped.compare(plain.get(), &other), "two arenas are one in the untyped library");
  (void)(mine == *plain && *plain == mine && *plain == *theirs && *theirs == *plain);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
