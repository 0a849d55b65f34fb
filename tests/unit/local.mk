# SPDX-License-Identifier: Apache-2.0
# One Check program with a suite for each tested file of src/. The list below is the only one: a
# file test_NAME.c in it has a function suite_NAME, which the program runs.

unit_tests = \
  tests/unit/test_alloc.c \
  tests/unit/test_arena.c \
  tests/unit/test_bits.c \
  tests/unit/test_extent.c \
  tests/unit/test_free.c \
  tests/unit/test_heap.c \
  tests/unit/test_heap_guest.c \
  tests/unit/test_init.c \
  tests/unit/test_lifetime.c \
  tests/unit/test_list.c \
  tests/unit/test_lock.c \
  tests/unit/test_meta.c \
  tests/unit/test_misuse.c \
  tests/unit/test_options.c \
  tests/unit/test_pagemap.c \
  tests/unit/test_place.c \
  tests/unit/test_pin.c \
  tests/unit/test_pool.c \
  tests/unit/test_process.c \
  tests/unit/test_rcutils.c \
  tests/unit/test_realloc.c \
  tests/unit/test_remote.c \
  tests/unit/test_report.c \
  tests/unit/test_retain.c \
  tests/unit/test_sizeclass.c \
  tests/unit/test_slab.c \
  tests/unit/test_snapshot.c \
  tests/unit/test_source.c \
  tests/unit/test_span.c \
  tests/unit/test_span_faults.c \
  tests/unit/test_span_resize.c \
  tests/unit/test_span_shrink.c \
  tests/unit/test_settle.c \
  tests/unit/test_keep.c \
  tests/unit/test_text.c \
  tests/unit/test_thread.c

if HAVE_CHECK
check_PROGRAMS += tests/unit/unit
tests_unit_unit_SOURCES = \
  tests/unit/main.c \
  tests/unit/fake.c tests/unit/fake.h tests/unit/heaps.h \
  tests/unit/unit.c tests/unit/unit.h \
  $(unit_tests)
nodist_tests_unit_unit_SOURCES = tests/unit/suites.def
tests_unit_unit_CPPFLAGS = $(AM_CPPFLAGS) -iquote $(srcdir)/src -iquote tests/unit
tests_unit_unit_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_unit_LDADD = libweir_core.la $(CHECK_LIBS)
if HAVE_JANSSON
tests_unit_unit_CPPFLAGS += -DHAVE_JANSSON
tests_unit_unit_CFLAGS += $(JANSSON_CFLAGS)
tests_unit_unit_LDADD += $(JANSSON_LIBS)
endif
core_tests += tests/unit/unit
endif

BUILT_SOURCES = tests/unit/suites.def
CLEANFILES += tests/unit/suites.def
tests/unit/suites.def: Makefile
	$(AM_V_GEN)$(MKDIR_P) tests/unit && \
	for file in $(unit_tests); do \
	  echo "SUITE($$(basename $$file .c | sed 's/^test_//'))"; \
	done >$@

# The run ends with what Check counted, where the unit tests were part of it.
check-local: check-TESTS
if HAVE_CHECK
	@case ' $(TESTS) ' in \
	*' tests/unit/unit '*) sed -n '/^Running suite/,/^[0-9]*%: Checks/p' tests/unit/unit.log ;; \
	esac
else
	@echo 'The unit tests were left out: Check (https://libcheck.github.io/check) is missing.'
endif
