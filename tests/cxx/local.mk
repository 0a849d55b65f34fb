# SPDX-License-Identifier: Apache-2.0
# weir/memory_resource.hpp: one Check program with a suite a file, built by the oldest standard of
# C++ and the newest that the compiler knows; a program without exceptions and types at run time; and
# what is compiled and linked in ways of its own.

cxx_sources = \
  tests/cxx/main.cc tests/cxx/arenas.h \
  tests/cxx/test_allocator.cc \
  tests/cxx/test_containers.cc \
  tests/cxx/test_limits.cc \
  tests/cxx/test_random.cc \
  tests/cxx/test_rclcpp.cc

cxx_programs =
if CXX_WORKS
if HAVE_CHECK
cxx_programs += tests/cxx/cxx11
tests_cxx_cxx11_SOURCES = $(cxx_sources)
tests_cxx_cxx11_CXXFLAGS = $(AM_CXXFLAGS) -std=c++11 $(CHECK_CFLAGS)
tests_cxx_cxx11_LDFLAGS = $(AM_LDFLAGS) -no-install
tests_cxx_cxx11_LDADD = libweir.la $(CHECK_LIBS)
if CXX17
cxx_programs += tests/cxx/newest
tests_cxx_newest_SOURCES = $(cxx_sources) tests/cxx/test_resource.cc
tests_cxx_newest_CXXFLAGS = $(AM_CXXFLAGS) $(CXX_STANDARD) $(CHECK_CFLAGS)
tests_cxx_newest_LDFLAGS = $(AM_LDFLAGS) -no-install
tests_cxx_newest_LDADD = libweir.la $(CHECK_LIBS)
endif
endif
if CXX17
cxx_programs += tests/cxx/plain
tests_cxx_plain_SOURCES = tests/cxx/plain.cc
tests_cxx_plain_CXXFLAGS = $(AM_CXXFLAGS) -std=c++17 -fno-exceptions -fno-rtti
tests_cxx_plain_LDFLAGS = $(AM_LDFLAGS) -no-install
tests_cxx_plain_LDADD = libweir.la
endif
TESTS += tests/cxx/standards.sh
if SHARED
if !SANITIZE
TESTS += tests/cxx/mixed.sh
endif
endif
endif

check_PROGRAMS += $(cxx_programs)
core_tests += $(cxx_programs)

EXTRA_DIST += \
  $(cxx_sources) \
  tests/cxx/mixed.cc \
  tests/cxx/mixed.sh \
  tests/cxx/plain.cc \
  tests/cxx/standards.sh \
  tests/cxx/test_resource.cc
