# SPDX-License-Identifier: Apache-2.0
# The adapters to ROS on the real thing: rcutils and rosidl's C runtime, as the distribution has
# them. Where configure has not found them, left_out.sh stands for all of these tests.

ros_cflags = $(RCUTILS_CFLAGS) $(ROSIDL_CFLAGS)

if RCUTILS_TESTS
check_PROGRAMS += tests/adapter/bomb
tests_adapter_bomb_SOURCES = \
  tests/adapter/bomb.c tests/adapter/bomb.h \
  tests/adapter/bomb_system.c \
  tests/adapter/bomb_types.c \
  tests/adapter/faults.def
tests_adapter_bomb_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE $(ros_cflags) \
  -DRCUTILS_VERSION='"$(RCUTILS_VERSION)"'
tests_adapter_bomb_LDFLAGS = $(AM_LDFLAGS) -no-install
tests_adapter_bomb_LDADD = libweir.la $(RCUTILS_LIBS)
if ROSIDL_TESTS
tests_adapter_bomb_SOURCES += tests/adapter/bomb_rosidl.c
tests_adapter_bomb_CPPFLAGS += -DHAVE_ROSIDL
tests_adapter_bomb_LDADD += $(ROSIDL_LIBS)
endif
core_tests += tests/adapter/bomb

if HAVE_CHECK
check_PROGRAMS += tests/adapter/test_contract
tests_adapter_test_contract_SOURCES = tests/adapter/test_contract.c
tests_adapter_test_contract_CPPFLAGS = $(AM_CPPFLAGS) -iquote $(srcdir)/src $(RCUTILS_CFLAGS)
tests_adapter_test_contract_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_adapter_test_contract_LDFLAGS = $(AM_LDFLAGS) -no-install
tests_adapter_test_contract_LDADD = libweir.la $(RCUTILS_LIBS) $(CHECK_LIBS)
core_tests += tests/adapter/test_contract
endif

# Preloaded, under the C library's malloc and under weir's; a sanitizer wants to be the first.
if SHARED
if !SANITIZE
check_PROGRAMS += tests/adapter/preload
tests_adapter_preload_SOURCES = tests/adapter/preload.c
tests_adapter_preload_CPPFLAGS = $(AM_CPPFLAGS) $(RCUTILS_CFLAGS)
TESTS += tests/adapter/preload.sh
if ROSIDL_TESTS
TESTS += tests/adapter/reach.sh
endif
endif
endif
else
TESTS += tests/adapter/left_out.sh
endif

EXTRA_DIST += \
  tests/adapter/bomb_rosidl.c \
  tests/adapter/callers.c \
  tests/adapter/left_out.sh \
  tests/adapter/preload.sh \
  tests/adapter/reach.c \
  tests/adapter/reach.sh \
  tests/adapter/reach_cxx.cc
