# SPDX-License-Identifier: Apache-2.0
# libweir_malloc: weir under the names of the C library and of C++, to be preloaded or linked.

if REPLACE
lib_LTLIBRARIES += libweir_malloc.la
libweir_malloc_la_SOURCES = \
  src/replace/malloc.c \
  src/replace/new.c
# Exceptions, because operator new lets std::bad_alloc pass through it.
libweir_malloc_la_CFLAGS = $(library_cflags) -fexceptions
libweir_malloc_la_LIBADD = libweir_core.la
libweir_malloc_la_LDFLAGS = $(library_ldflags) $(REPLACE_LDFLAGS) \
  -Wl,--version-script=$(srcdir)/src/weir_malloc.map
EXTRA_libweir_malloc_la_DEPENDENCIES = src/weir_malloc.map Makefile
endif

EXTRA_DIST += src/weir_malloc.map
