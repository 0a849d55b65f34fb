# SPDX-License-Identifier: Apache-2.0
# The allocator: libweir_core holds all of it for the libraries and the unit tests; libweir is what
# programs link that call weir_* themselves.

weir_sources = \
  src/adapter/rcutils.c src/adapter/rcutils.h \
  src/weir.c src/weir.h \
  src/arena_api.c \
  src/pin.c src/pin.h \
  src/process.c src/process.h \
  src/pool.c src/pool.h \
  src/report.c src/report.h \
  src/snapshot.c src/snapshot.h \
  src/lifetime.c src/lifetime.h \
  src/alloc.c src/alloc.h \
  src/free.c src/free.h \
  src/realloc.c src/realloc.h \
  src/init.c src/init.h \
  src/thread.c src/thread.h \
  src/heap.c src/heap.h \
  src/heap_check.c \
  src/heap_look.c \
  src/heap_mark.c \
  src/remote.h \
  src/arena.c src/arena.h \
  src/slab.c src/slab.h \
  src/sizeclass.c src/sizeclass.h \
  src/span.c src/span.h \
  src/settle.c src/settle.h \
  src/keep.c src/keep.h \
  src/extent.c src/extent.h \
  src/place.c src/place.h \
  src/retain.c src/retain.h \
  src/pagemap.c src/pagemap.h \
  src/meta.c src/meta.h \
  src/source.c src/source.h \
  src/misuse.c src/misuse.h \
  src/options.c src/options.h src/options.def \
  src/lock.c src/lock.h \
  src/os_linux.c src/os_malloc.c src/os.h \
  src/text.c src/text.h \
  src/counters.h \
  src/check.h \
  src/bits.h \
  src/list.h \
  src/attr.h

library_cflags = $(AM_CFLAGS) $(LIBRARY_CFLAGS) -D_GNU_SOURCE -fvisibility=hidden -ftls-model=initial-exec
# The interface's version, libtool's way: current:revision:age.
library_ldflags = $(AM_LDFLAGS) $(LIBRARY_LDFLAGS) -version-info 0:0:0

noinst_LTLIBRARIES += libweir_core.la
libweir_core_la_SOURCES = $(weir_sources)
libweir_core_la_CFLAGS = $(library_cflags)

lib_LTLIBRARIES += libweir.la
libweir_la_SOURCES =
libweir_la_LIBADD = libweir_core.la
libweir_la_LDFLAGS = $(library_ldflags) -Wl,--version-script=$(srcdir)/src/weir.map
EXTRA_libweir_la_DEPENDENCIES = src/weir.map Makefile

EXTRA_DIST += src/layers src/weir.map
