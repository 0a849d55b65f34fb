# SPDX-License-Identifier: Apache-2.0
# Programs that use weir as its users do: over the public header and the libraries.

if HAVE_CHECK
if HAVE_JANSSON
check_PROGRAMS += tests/api/test_api
tests_api_test_api_SOURCES = tests/api/test_api.c
tests_api_test_api_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
tests_api_test_api_LDFLAGS = $(AM_LDFLAGS) -no-install
tests_api_test_api_LDADD = libweir.la $(CHECK_LIBS) $(JANSSON_LIBS)
TESTS += tests/api/test_api

# These look into no libc's malloc, and so run with the sanitizers as well.
arena_tests = \
  tests/api/test_arena \
  tests/api/test_arena_buffer \
  tests/api/test_arena_life \
  tests/api/test_arena_limit \
  tests/api/test_arena_model
check_PROGRAMS += $(arena_tests)
arena_cflags = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
arena_ldflags = $(AM_LDFLAGS) -no-install
arena_ldadd = libweir.la $(CHECK_LIBS) $(JANSSON_LIBS)
tests_api_test_arena_SOURCES = tests/api/test_arena.c tests/api/arenas.h
tests_api_test_arena_CFLAGS = $(arena_cflags)
tests_api_test_arena_LDFLAGS = $(arena_ldflags)
tests_api_test_arena_LDADD = $(arena_ldadd)
tests_api_test_arena_buffer_SOURCES = tests/api/test_arena_buffer.c tests/api/arenas.h
tests_api_test_arena_buffer_CFLAGS = $(arena_cflags)
tests_api_test_arena_buffer_LDFLAGS = $(arena_ldflags)
tests_api_test_arena_buffer_LDADD = $(arena_ldadd)
tests_api_test_arena_life_SOURCES = tests/api/test_arena_life.c tests/api/arenas.h
tests_api_test_arena_life_CFLAGS = $(arena_cflags)
tests_api_test_arena_life_LDFLAGS = $(arena_ldflags)
tests_api_test_arena_life_LDADD = $(arena_ldadd)
tests_api_test_arena_limit_SOURCES = tests/api/test_arena_limit.c tests/api/arenas.h
tests_api_test_arena_limit_CFLAGS = $(arena_cflags)
tests_api_test_arena_limit_LDFLAGS = $(arena_ldflags)
tests_api_test_arena_limit_LDADD = $(arena_ldadd)
tests_api_test_arena_model_SOURCES = tests/api/test_arena_model.c tests/api/arenas.h
tests_api_test_arena_model_CFLAGS = $(arena_cflags)
tests_api_test_arena_model_LDFLAGS = $(arena_ldflags)
tests_api_test_arena_model_LDADD = $(arena_ldadd)
core_tests += $(arena_tests)
endif
endif

# What was installed, and the ways of pkg-config and CMake to it.
if REPLACE
installed_replace = yes
endif
if STATIC
installed_static = $(STATIC_FLAG)
endif
installed_environment = $(AM_TESTS_ENVIRONMENT) \
  srcdir=$(srcdir) REPLACE=$(installed_replace) STATIC_FLAG=$(installed_static) \
  PKG_CONFIG='$(PKG_CONFIG)' PKG_CONFIG_PATH=$(DESTDIR)$(pkgconfigdir)
installed_scripts = \
  tests/api/installed.sh \
  tests/examples/consumers.sh
installcheck-local:
if SHARED
	@test -z '$(PKG_CONFIG)' || for script in $(installed_scripts); do \
	  $(installed_environment) \
	    $(SHELL) $(srcdir)/$$script $(DESTDIR)$(prefix) $(DESTDIR)$(libdir) || exit 1; \
	done
endif

EXTRA_DIST += \
  $(installed_scripts) \
  tests/api/installed.c \
  tests/api/installed.cc
