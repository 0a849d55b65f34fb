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
