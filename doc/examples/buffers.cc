/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An arena for C++: the containers and messages of one part of a program take their memory from
 * it, everything else stays where it is.
 *
 *     c++ -std=c++17 buffers.cc $(pkg-config --cflags --libs weir)
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <weir/memory_resource.hpp>

#ifdef WEIR_HAS_MEMORY_RESOURCE
/* std::pmr: the arena is given when an object is made, and is no part of its type. */
struct Cloud {
  explicit Cloud(std::pmr::memory_resource *memory) : frame(memory), points(memory) {}

  std::pmr::string frame;
  std::pmr::vector<float> points;
};

static void clouds(weir_arena_t *arena) {
  weir::memory_resource memory(arena);

  for (int i = 0; i < 1000; i++) {
    Cloud cloud(&memory);

    cloud.frame = "lidar_front_left_optical_frame";
    cloud.points.resize(262144); /* 1 MiB, and it goes back at the end of the block */
  }
}
#else
static void clouds(weir_arena_t *) {}
#endif

/* The classic way, and rclcpp's: an allocator that is part of the type. */
using Bytes = std::vector<std::uint8_t, weir::allocator<std::uint8_t>>;

struct Image {
  explicit Image(const weir::allocator<std::uint8_t> &memory) : data(memory) {}

  std::uint32_t width = 0, height = 0;
  Bytes data;
};

static void images(weir_arena_t *arena) {
  weir::allocator<Image> memory(arena);

  for (int i = 0; i < 1000; i++) {
    /* The message, its count of references and its pixels all lie in the arena. */
    std::shared_ptr<Image> image = std::allocate_shared<Image>(memory, memory);

    image->width = 1024;
    image->height = 1024;
    image->data.assign(1024 * 1024, 128);
  }
}

static void print(weir_arena_t *arena, const char *what) {
  weir_stats_t stats;

  weir_arena_stats(arena, &stats, sizeof stats);
  std::printf("%s: %llu bytes live, at most %llu resident\n", what,
              static_cast<unsigned long long>(stats.live),
              static_cast<unsigned long long>(stats.peak_committed));
}

int main() {
  weir_arena_options_t options = WEIR_ARENA_OPTIONS_INIT;

  options.name = "perception";
  options.limit = 16 << 20;
  weir_arena_t *arena = weir_arena_create(&options);
  if (arena == nullptr) {
    std::perror("weir_arena_create");
    return EXIT_FAILURE;
  }

  images(arena);
  print(arena, "1000 images");
  clouds(arena);
  print(arena, "1000 clouds");

  /* Past the limit is what running out of memory is anywhere in C++: std::bad_alloc. */
  try {
    Bytes much(32 << 20, 0, arena);
    return EXIT_FAILURE;
  } catch (const std::bad_alloc &) {
    std::puts("32 MiB: over the limit");
  }

  weir_arena_destroy(arena);
  return EXIT_SUCCESS;
}
