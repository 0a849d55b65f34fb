# SPDX-License-Identifier: Apache-2.0
# Programs that use weir as its users do: over the public header and the libraries.

if HAVE_CHECK
if HAVE_JANSSON
api_cflags = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
api_ldflags = $(AM_LDFLAGS) -no-install
api_ldadd = libweir.la $(CHECK_LIBS) $(JANSSON_LIBS)
check_PROGRAMS += tests/api/test_api
tests_api_test_api_SOURCES = tests/api/test_api.c
tests_api_test_api_CFLAGS = $(api_cflags)
tests_api_test_api_LDFLAGS = $(api_ldflags)
tests_api_test_api_LDADD = $(api_ldadd)
TESTS += tests/api/test_api

# These look into no libc's malloc, and so run with the sanitizers as well.
arena_tests = \
  tests/api/test_arena \
  tests/api/test_arena_buffer \
  tests/api/test_arena_life \
  tests/api/test_arena_limit \
  tests/api/test_arena_lock \
  tests/api/test_arena_model \
  tests/api/test_arena_room
check_PROGRAMS += $(arena_tests)
tests_api_test_arena_SOURCES = tests/api/test_arena.c tests/api/arenas.h
tests_api_test_arena_CFLAGS = $(api_cflags)
tests_api_test_arena_LDFLAGS = $(api_ldflags)
tests_api_test_arena_LDADD = $(api_ldadd)
tests_api_test_arena_buffer_SOURCES = tests/api/test_arena_buffer.c tests/api/arenas.h
tests_api_test_arena_buffer_CFLAGS = $(api_cflags)
tests_api_test_arena_buffer_LDFLAGS = $(api_ldflags)
tests_api_test_arena_buffer_LDADD = $(api_ldadd)
tests_api_test_arena_life_SOURCES = tests/api/test_arena_life.c tests/api/arenas.h
tests_api_test_arena_life_CFLAGS = $(api_cflags)
tests_api_test_arena_life_LDFLAGS = $(api_ldflags)
tests_api_test_arena_life_LDADD = $(api_ldadd)
tests_api_test_arena_limit_SOURCES = tests/api/test_arena_limit.c tests/api/arenas.h
tests_api_test_arena_limit_CFLAGS = $(api_cflags)
tests_api_test_arena_limit_LDFLAGS = $(api_ldflags)
tests_api_test_arena_limit_LDADD = $(api_ldadd)
tests_api_test_arena_lock_SOURCES = tests/api/test_arena_lock.c tests/api/arenas.h
tests_api_test_arena_lock_CFLAGS = $(api_cflags)
tests_api_test_arena_lock_LDFLAGS = $(api_ldflags)
tests_api_test_arena_lock_LDADD = $(api_ldadd)
tests_api_test_arena_model_SOURCES = tests/api/test_arena_model.c tests/api/arenas.h
tests_api_test_arena_model_CFLAGS = $(api_cflags)
tests_api_test_arena_model_LDFLAGS = $(api_ldflags)
tests_api_test_arena_model_LDADD = $(api_ldadd)
tests_api_test_arena_room_SOURCES = tests/api/test_arena_room.c tests/api/arenas.h
tests_api_test_arena_room_CFLAGS = $(api_cflags)
tests_api_test_arena_room_LDFLAGS = $(api_ldflags)
tests_api_test_arena_room_LDADD = $(api_ldadd)
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
