# SPDX-License-Identifier: Apache-2.0
# weir under the names of ROS. What needs nothing of ROS is part of the core (src/local.mk);
# libweir_rcutils needs rcutils' header, and is for preloading, so that there is no static one.

if RCUTILS
if SHARED
lib_LTLIBRARIES += libweir_rcutils.la
libweir_rcutils_la_SOURCES = src/adapter/default_allocator.c
libweir_rcutils_la_CPPFLAGS = $(AM_CPPFLAGS) $(RCUTILS_CFLAGS)
libweir_rcutils_la_CFLAGS = $(library_cflags)
libweir_rcutils_la_LIBADD = libweir.la
libweir_rcutils_la_LIBTOOLFLAGS = --tag=disable-static
libweir_rcutils_la_LDFLAGS = $(library_ldflags) \
  -Wl,--version-script=$(srcdir)/src/weir_rcutils.map
EXTRA_libweir_rcutils_la_DEPENDENCIES = src/weir_rcutils.map Makefile
endif
endif

EXTRA_DIST += src/weir_rcutils.map
