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

# What was installed, and the way pkg-config leads to it.
if REPLACE
installed_replace = yes
endif
if STATIC
installed_static = $(STATIC_FLAG)
endif
installcheck-local:
if SHARED
	@test -z '$(PKG_CONFIG)' || { $(AM_TESTS_ENVIRONMENT) \
	srcdir=$(srcdir) REPLACE=$(installed_replace) STATIC_FLAG=$(installed_static) \
	PKG_CONFIG='$(PKG_CONFIG)' PKG_CONFIG_PATH=$(DESTDIR)$(pkgconfigdir) \
	$(SHELL) $(srcdir)/tests/api/installed.sh $(DESTDIR)$(prefix) $(DESTDIR)$(libdir); }
endif

EXTRA_DIST += \
  tests/api/installed.c \
  tests/api/installed.cc \
  tests/api/installed.sh
