# SPDX-License-Identifier: Apache-2.0
# Programs that use the C library's and C++'s names, with weir behind them. Each is one source file,
# NAME.c or NAME.cc; the ending of what is built from it tells how weir gets in: NAME.preload is run
# preloaded, NAME.linked links the shared library, NAME.static and NAME.pie the static one.

replace_preload = \
  tests/replace/arenas.preload \
  tests/replace/arenas_misuse.preload \
  tests/replace/arenas_steady.preload \
  tests/replace/churn.preload \
  tests/replace/conform.preload \
  tests/replace/firstop.preload \
  tests/replace/fork.preload \
  tests/replace/info.preload \
  tests/replace/lifo.preload \
  tests/replace/misuse.preload \
  tests/replace/mlock.preload \
  tests/replace/retain.preload \
  tests/replace/reuse.preload \
  tests/replace/settle.preload \
  tests/replace/symbols.preload \
  tests/replace/teardown.preload \
  tests/replace/threads.preload \
  tests/replace/usable.preload
replace_linked = \
  tests/replace/conform.linked \
  tests/replace/firstop.linked \
  tests/replace/info.linked \
  tests/replace/misuse.linked \
  tests/replace/symbols.linked
replace_static = \
  tests/replace/arenas.static \
  tests/replace/arenas_misuse.static \
  tests/replace/arenas_steady.static \
  tests/replace/churn.static \
  tests/replace/conform.static \
  tests/replace/firstop.static \
  tests/replace/fork.static \
  tests/replace/info.static \
  tests/replace/lifo.static \
  tests/replace/misuse.static \
  tests/replace/reuse.static \
  tests/replace/settle.static \
  tests/replace/staticuse.static \
  tests/replace/teardown.static \
  tests/replace/threads.static \
  tests/replace/usable.static
replace_pie = \
  tests/replace/conform.pie \
  tests/replace/firstop.pie \
  tests/replace/info.pie \
  tests/replace/misuse.pie \
  tests/replace/staticuse.pie
if CXX_WORKS
replace_preload += tests/replace/cxx.preload tests/replace/teardown_cxx.preload
replace_linked += tests/replace/arena_cxx.linked tests/replace/cxx.linked tests/replace/teardown_cxx.linked
replace_static += tests/replace/arena_cxx.static tests/replace/cxx.static tests/replace/teardown_cxx.static
replace_pie += tests/replace/arena_cxx.pie tests/replace/cxx.pie tests/replace/teardown_cxx.pie
endif

# Scripts, and the programs and libraries that only they use.
replace_scripts = \
  tests/replace/arenas_steady.sh \
  tests/replace/early.sh \
  tests/replace/instructions.sh \
  tests/replace/limits.sh \
  tests/replace/loader.sh \
  tests/replace/options.sh \
  tests/replace/programs.sh \
  tests/replace/syscalls.sh
replace_helpers = \
  tests/replace/early \
  tests/replace/exhaust \
  tests/replace/instructions \
  tests/replace/loader_plain \
  tests/replace/options \
  tests/replace/steady
if CXX17
replace_helpers += tests/replace/instructions_cxx
tests_replace_instructions_cxx_SOURCES = tests/replace/instructions_cxx.cc
tests_replace_instructions_cxx_CXXFLAGS = $(AM_CXXFLAGS) -std=c++17
tests_replace_instructions_cxx_LDFLAGS = $(AM_LDFLAGS) -no-install
tests_replace_instructions_cxx_LDADD = libweir.la
endif
tests_replace_loader_plain_SOURCES = tests/replace/loader.c
replace_modules = \
  tests/replace/hooks.so \
  tests/replace/tlsuser.so

replace_programs =
if REPLACE
if SHARED
replace_programs += $(replace_preload) $(replace_linked)
TESTS += $(replace_scripts)
check_PROGRAMS += $(replace_helpers)
check_DATA += $(replace_modules)
# For arenas_steady.sh, which may be run before the test that it is.
check_DATA += tests/replace/arenas_steady.preload
endif
if STATIC
replace_programs += $(replace_static)
# For options.sh, as a program that can be made setuid.
check_DATA += tests/replace/options.static
CLEANFILES += tests/replace/options.static
tests/replace/options.static: tests/replace/expect.h libweir_malloc.la Makefile
endif
if STATIC_PIE
replace_programs += $(replace_pie)
endif
endif
TESTS += $(replace_programs)
CLEANFILES += $(replace_programs) $(replace_modules)

# Compiled and linked in one step, as a user would: Automake's own rules would take three lines for
# each of them, and libtool would put a script in front of those that link the shared library.
SUFFIXES = .cc .preload .linked .static .pie .so
replace_cc = $(AM_V_GEN)$(MKDIR_P) tests/replace; $(CC) $(DEFS) $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) \
  $(CFLAGS) $(LDFLAGS) -o $@ $<
replace_cxx = $(AM_V_GEN)$(MKDIR_P) tests/replace; $(CXX) $(DEFS) $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CXXFLAGS) \
  $(CXXFLAGS) $(LDFLAGS) -o $@ $<
shared_weir = -L.libs -lweir_malloc -Wl,-rpath,$(abs_builddir)/.libs
static_weir = -DEXPECT_STATIC -Wl,-u,malloc .libs/libweir_malloc.a

.c.preload:
	$(replace_cc) $(LIBS)
.c.linked:
	$(replace_cc) $(shared_weir) $(LIBS)
.c.static:
	$(replace_cc) -static $(static_weir) $(LIBS)
.c.pie:
	$(replace_cc) -fPIE -static-pie $(static_weir) $(LIBS)
.c.so:
	$(replace_cc) -fPIC -shared $(LIBS)
.cc.preload:
	$(replace_cxx) $(LIBS)
.cc.linked:
	$(replace_cxx) $(shared_weir) $(LIBS)
.cc.static:
	$(replace_cxx) -static $(static_weir) $(LIBS)
.cc.pie:
	$(replace_cxx) -fPIE -static-pie $(static_weir) $(LIBS)

$(replace_programs): tests/random.h tests/replace/expect.h tests/replace/arenas.h tests/replace/misuse.h \
  include/weir/weir.h include/weir/arena.h Makefile
$(replace_linked) $(replace_static) $(replace_pie): libweir_malloc.la

EXTRA_DIST += \
  $(replace_scripts) \
  tests/replace/arenas.c \
  tests/replace/arenas.h \
  tests/replace/arenas_misuse.c \
  tests/replace/arenas_steady.c \
  tests/replace/arena_cxx.cc \
  tests/replace/churn.c \
  tests/replace/conform.c \
  tests/replace/cxx.cc \
  tests/replace/early.c \
  tests/replace/exhaust.c \
  tests/replace/expect.h \
  tests/replace/firstop.c \
  tests/replace/fork.c \
  tests/replace/hooks.c \
  tests/replace/info.c \
  tests/replace/instructions.c \
  tests/replace/instructions_cxx.cc \
  tests/replace/instructions.golden \
  tests/replace/lifo.c \
  tests/replace/loader.c \
  tests/replace/misuse.c \
  tests/replace/misuse.h \
  tests/replace/mlock.c \
  tests/replace/options.c \
  tests/replace/retain.c \
  tests/replace/reuse.c \
  tests/replace/settle.c \
  tests/replace/staticuse.c \
  tests/replace/steady.c \
  tests/replace/symbols.c \
  tests/replace/teardown.c \
  tests/replace/teardown_cxx.cc \
  tests/replace/threads.c \
  tests/replace/tlsuser.c \
  tests/replace/usable.c
