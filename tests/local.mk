# SPDX-License-Identifier: Apache-2.0
# How tests are run, and what each folder of them brings.
#
#   core_tests    need the core only: they also run with full checks and with the sanitizers
#   stress_tests  those of them whose threads ThreadSanitizer is to watch
#   quick_tests   enough for make distcheck, which is about what is in the distribution

core_tests =
quick_tests = $(style_tests) tests/api/test_arena tests/stress/stress

# run.sh knows how each kind is run; a test that hangs is stopped and has failed.
run_test = timeout -k 10 600 env PRELOAD=$(abs_builddir)/.libs/libweir_malloc.so \
  $(SHELL) $(srcdir)/tests/run.sh
TEST_EXTENSIONS = .sh
LOG_COMPILER = $(run_test)
SH_LOG_COMPILER = $(run_test)
if CXX_WORKS
working_cxx = $(CXX)
endif
if RCUTILS_TESTS
rcutils_flags = $(RCUTILS_CFLAGS) $(RCUTILS_LIBS)
endif
AM_TESTS_ENVIRONMENT = \
  CC='$(CC)'; export CC; \
  CXX='$(working_cxx)'; export CXX; \
  BUILD_FLAGS='$(CFLAGS) -DWR_CHECKS=$(WR_CHECKS)'; export BUILD_FLAGS; \
  PYTHON3='$(PYTHON3)'; export PYTHON3; \
  RCUTILS_FLAGS='$(rcutils_flags)'; export RCUTILS_FLAGS; \
  RCUTILS_CFLAGS='$(RCUTILS_CFLAGS)'; export RCUTILS_CFLAGS; \
  RCUTILS_LIBS='$(RCUTILS_LIBS)'; export RCUTILS_LIBS; \
  ROSIDL_CFLAGS='$(ROSIDL_CFLAGS)'; export ROSIDL_CFLAGS; \
  ROSIDL_LIBS='$(ROSIDL_LIBS)'; export ROSIDL_LIBS;

EXTRA_DIST += tests/run.sh tests/random.h

include tests/unit/local.mk
include tests/stress/local.mk
include tests/adapter/local.mk
include tests/api/local.mk
include tests/cxx/local.mk
include tests/bench/local.mk
include tests/examples/local.mk
include tests/pin/local.mk
include tests/replace/local.mk
include tests/style/local.mk

TESTS += $(core_tests)
