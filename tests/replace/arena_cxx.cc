/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir::allocator and arenas in a program whose malloc is weir: blocks go back by the C library's
 * and C++'s names, whichever arena they lie in, and blocks of malloc and calloc go back through an
 * allocator, as those do that some versions of rclcpp take by rcl's own zero_allocate.
 */
#include "expect.h"

#include <memory>
#include <string>
#include <vector>
#include <weir/memory_resource.hpp>

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace {

uint64_t live(weir_arena_t *arena) {
  weir_stats_t stats;

  weir_arena_stats(arena, &stats, sizeof stats);
  return stats.live;
}

/* Blocks of the arena by the names of C and C++. */
void given_to_malloc(weir_arena_t *arena) {
  weir::allocator<char> allocator(arena);

  for (size_t size = 0; size < 300000; size += 1 + size / 8) {
    char *block = static_cast<char *>(expect_hide(allocator.allocate(size)));
    EXPECT(malloc_usable_size(block) >= size, "%zu bytes are too few", size);
    std::free(block);
    ::operator delete(expect_hide(allocator.allocate(size)));
    ::operator delete (expect_hide(allocator.allocate(size)), size_t{1});
    block = static_cast<char *>(std::realloc(expect_hide(allocator.allocate(size)), size + 100));
    EXPECT(weir_arena_of(block) == arena, "realloc of %zu bytes left the arena", size);
    allocator.deallocate(block, 1);
  }
  EXPECT(live(arena) == 0, "%zu bytes are left in the arena", (size_t)live(arena));
}

/* Blocks of malloc through allocators, of the arena and of the default one. */
void taken_from_malloc(weir_arena_t *arena) {
  uint64_t before = live(nullptr);

  for (size_t size = 1; size < 300000; size += 1 + size / 8) {
    weir::allocator<char>(arena).deallocate(static_cast<char *>(expect_hide(std::calloc(1, size))),
                                            1);
    weir::allocator<char>().deallocate(static_cast<char *>(expect_hide(std::malloc(size))), size);
    weir::allocator<int>(arena).deallocate(
        static_cast<int *>(expect_hide(::operator new(size * sizeof(int)))), size);
  }
  EXPECT(live(nullptr) == before, "blocks of malloc are left");
}

void containers(weir_arena_t *arena) {
  std::vector<std::string, weir::allocator<std::string>> names(arena);

  for (int i = 0; i < 1000; i++)
    names.emplace_back(static_cast<size_t>(i), 'a');
  EXPECT(weir_arena_of(names.data()) == arena, "a vector is not in its arena");
  EXPECT(weir_arena_of(names[999].data()) == nullptr, "a plain string is not malloc's");
  auto shared = std::allocate_shared<std::string>(weir::allocator<>(arena), 1000, 'b');
  std::unique_ptr<std::string> owned(new std::string(*shared));
  EXPECT(*owned == std::string(1000, 'b'), "a string lost its contents");
}

} // namespace

int main() {
  expect_start();
  weir_arena_t *arena = weir_arena_create(nullptr);
  REQUIRE(arena != nullptr, "no arena");
  given_to_malloc(arena);
  taken_from_malloc(arena);
  containers(arena);
  EXPECT(live(arena) == 0, "%zu bytes are left in the arena", (size_t)live(arena));
  weir_arena_destroy(arena);
  return expect_done();
}
