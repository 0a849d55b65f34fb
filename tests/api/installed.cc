/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user's first program in C++, built with what pkg-config says: the header is there with those
 * that it includes, and a vector lies in an arena.
 */
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <weir/memory_resource.hpp>

int main() {
  weir_arena_t *arena = weir_arena_create(nullptr);
  int status = EXIT_SUCCESS;

  if (arena == nullptr)
    return EXIT_FAILURE;
  {
    std::vector<int, weir::allocator<int>> all(100000, 1, arena);
    if (weir_arena_of(all.data()) != arena) {
      std::fprintf(stderr, "the vector is not in its arena\n");
      status = EXIT_FAILURE;
    }
  }
  weir_arena_destroy(arena);
  return status;
}
