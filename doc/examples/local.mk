# SPDX-License-Identifier: Apache-2.0
# The examples: built here as tests, so that they stay true; and their files for users' own builds.

check_PROGRAMS += doc/examples/realtime
doc_examples_realtime_SOURCES = doc/examples/realtime.c
doc_examples_realtime_LDFLAGS = $(AM_LDFLAGS) -no-install
doc_examples_realtime_LDADD = libweir.la

if RCUTILS_TESTS
check_PROGRAMS += doc/examples/node
doc_examples_node_SOURCES = doc/examples/node.c
doc_examples_node_CPPFLAGS = $(AM_CPPFLAGS) $(RCUTILS_CFLAGS)
doc_examples_node_LDFLAGS = $(AM_LDFLAGS) -no-install
doc_examples_node_LDADD = libweir.la $(RCUTILS_LIBS)
endif

if CXX_WORKS
check_PROGRAMS += doc/examples/buffers
doc_examples_buffers_SOURCES = doc/examples/buffers.cc
doc_examples_buffers_CXXFLAGS = $(AM_CXXFLAGS) -std=c++17
doc_examples_buffers_LDFLAGS = $(AM_LDFLAGS) -no-install
doc_examples_buffers_LDADD = libweir.la
endif

EXTRA_DIST += \
  doc/examples/CMakeLists.txt \
  doc/examples/Makefile \
  doc/examples/buffers.cc \
  doc/examples/messages.py \
  doc/examples/node.c \
  doc/examples/ament/CMakeLists.txt \
  doc/examples/ament/include/weir_example/frames.h \
  doc/examples/ament/package.xml \
  doc/examples/ament/src/camera.c \
  doc/examples/ament/src/frames.c
