/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As instructions.c, for the adapters of C++ and of rcutils: a pair through each, over an arena of
 * its own and over the default arena.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <weir/memory_resource.hpp>

/* As in weir/rcutils.h, for which rcutils would be needed. */
extern "C" void *weir_rcutils_allocate(size_t size, void *state);
extern "C" void weir_rcutils_deallocate(void *pointer, void *state);

namespace {

weir_arena_t *arena;

/* What a caller of rcutils has: functions that it reads from a structure. */
struct rcutils {
  void *(*allocate)(size_t size, void *state);
  void (*deallocate)(void *pointer, void *state);
  void *state;
};

void *hide(void *pointer) {
  __asm__ volatile("" : "+r"(pointer));
  return pointer;
}

template <typename T> T *hide(T *pointer) {
  return static_cast<T *>(hide(static_cast<void *>(pointer)));
}

rcutils own = {weir_rcutils_allocate, weir_rcutils_deallocate, nullptr};
rcutils common = own;

void pair_rcutils(rcutils *allocator) {
  allocator = hide(allocator);
  void *taken = hide(allocator->allocate(64, allocator->state));
  allocator->deallocate(taken, allocator->state);
}

void pair_rcutils_own() {
  pair_rcutils(&own);
}

void pair_rcutils_default() {
  pair_rcutils(&common);
}

struct sample {
  char bytes[64];
};

void pair_allocator() {
  weir::allocator<sample> allocator(hide(arena));
  sample *taken = hide(allocator.allocate(1));
  allocator.deallocate(taken, 1);
}

void pair_new() {
  ::operator delete(hide(::operator new(64)));
}

#ifdef WEIR_HAS_MEMORY_RESOURCE
std::pmr::memory_resource *over_own, *over_default;

void pair_pmr(std::pmr::memory_resource *resource) {
  resource = hide(resource);
  resource->deallocate(hide(resource->allocate(64)), 64);
}

void pair_pmr_own() {
  pair_pmr(over_own);
}

void pair_pmr_default() {
  pair_pmr(over_default);
}
#endif

const struct {
  const char *name;
  void (*run)();
} operations[] = {
    {"new-64", pair_new},
    {"rcutils-64", pair_rcutils_own},
    {"rcutils-default-64", pair_rcutils_default},
    {"allocator-64", pair_allocator},
#ifdef WEIR_HAS_MEMORY_RESOURCE
    {"pmr-64", pair_pmr_own},
    {"pmr-default-64", pair_pmr_default},
#endif
};

} // namespace

int main(int argc, char **argv) {
  std::free(hide(std::malloc(1)));
  arena = weir_arena_create(nullptr);
  own.state = arena;
#ifdef WEIR_HAS_MEMORY_RESOURCE
  static weir::memory_resource resources[] = {weir::memory_resource(arena),
                                              weir::memory_resource()};
  over_own = &resources[0];
  over_default = &resources[1];
#endif
  for (const auto &operation : operations) {
    if (argc < 3)
      std::puts(operation.name);
    else if (std::strcmp(argv[1], operation.name) == 0)
      for (long count = std::atol(argv[2]) + 10; count > 0; count--)
        operation.run();
  }
  return 0;
}
