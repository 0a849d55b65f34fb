# SPDX-License-Identifier: Apache-2.0
# The documentation that is distributed, and the manual pages that are installed.

# weir.3 describes the functions of weir/weir.h, and weir_AREA.3 those of weir/AREA.h or the classes
# of weir/AREA.hpp; the others only lead there.
dist_man_MANS = \
  doc/weir.7 \
  doc/weir.3 \
  doc/weir_aligned_alloc.3 \
  doc/weir_allocator.3 \
  doc/weir_arena.3 \
  doc/weir_arena_aligned_alloc.3 \
  doc/weir_arena_alloc.3 \
  doc/weir_arena_buffer_min.3 \
  doc/weir_arena_create.3 \
  doc/weir_arena_create_in.3 \
  doc/weir_arena_destroy.3 \
  doc/weir_arena_free.3 \
  doc/weir_arena_name.3 \
  doc/weir_arena_of.3 \
  doc/weir_arena_realloc.3 \
  doc/weir_arena_report.3 \
  doc/weir_arena_reset.3 \
  doc/weir_arena_retain.3 \
  doc/weir_arena_set_retain.3 \
  doc/weir_arena_stats.3 \
  doc/weir_arena_trim.3 \
  doc/weir_arena_usable_size.3 \
  doc/weir_arena_zalloc.3 \
  doc/weir_calloc.3 \
  doc/weir_class_stats.3 \
  doc/weir_free.3 \
  doc/weir_glibc_pin.3 \
  doc/weir_malloc.3 \
  doc/weir_memory_resource.3 \
  doc/weir_pin.3 \
  doc/weir_pin_text.3 \
  doc/weir_pool.3 \
  doc/weir_pool_acquire.3 \
  doc/weir_pool_create.3 \
  doc/weir_pool_destroy.3 \
  doc/weir_pool_release.3 \
  doc/weir_pool_stats.3 \
  doc/weir_rcutils.3 \
  doc/weir_rcutils_allocate.3 \
  doc/weir_rcutils_allocator.3 \
  doc/weir_rcutils_arena.3 \
  doc/weir_rcutils_deallocate.3 \
  doc/weir_rcutils_reallocate.3 \
  doc/weir_rcutils_zero_allocate.3 \
  doc/weir_realloc.3 \
  doc/weir_reallocarray.3 \
  doc/weir_report.3 \
  doc/weir_retain.3 \
  doc/weir_set_retain.3 \
  doc/weir_stats.3 \
  doc/weir_trim.3 \
  doc/weir_usable_size.3 \
  doc/weir_version.3

dist_doc_DATA += \
  doc/options.md \
  doc/report.md \
  doc/ros.md

EXTRA_DIST += \
  doc/architecture.md \
  doc/benchmarks.md \
  doc/plots/cliffs.json \
  doc/plots/cliffs.png \
  doc/plots/cliffs.svg \
  doc/plots/p50.json \
  doc/plots/p50.png \
  doc/plots/p50.svg \
  doc/plots/timeline.json \
  doc/plots/timeline.png \
  doc/plots/timeline.svg \
  doc/tables.sh

include doc/examples/local.mk
