# SPDX-License-Identifier: Apache-2.0
# The workloads, a program each. They use the C library's names only, so that any allocator can be
# preloaded under them; but for pool, which sets two ways to use weir side by side.

noinst_PROGRAMS += \
  bench/alloctest \
  bench/burst \
  bench/churn \
  bench/falseshare \
  bench/fleet \
  bench/footprint \
  bench/growth \
  bench/large \
  bench/larson \
  bench/mstress \
  bench/pair \
  bench/pool \
  bench/procwatch \
  bench/prodcons \
  bench/program \
  bench/reuse \
  bench/rosmix \
  bench/rptest \
  bench/shbench \
  bench/simple \
  bench/startup \
  bench/threadchurn \
  bench/xmalloc
bench_alloctest_SOURCES = bench/alloctest.c bench/bench.h
bench_burst_SOURCES = bench/burst.c bench/bench.h
bench_churn_SOURCES = bench/churn.c bench/bench.h
bench_falseshare_SOURCES = bench/falseshare.c bench/bench.h
bench_fleet_SOURCES = bench/fleet.c bench/fleet_throughput.c bench/bench.h bench/fleet.h
bench_footprint_SOURCES = bench/footprint.c bench/bench.h
bench_growth_SOURCES = bench/growth.c bench/bench.h
bench_large_SOURCES = bench/large.c bench/bench.h
bench_larson_SOURCES = bench/larson.c bench/bench.h
bench_mstress_SOURCES = bench/mstress.c bench/bench.h
bench_pair_SOURCES = bench/pair.c bench/bench.h
bench_pool_SOURCES = bench/pool.c bench/bench.h
bench_pool_LDADD = libweir_core.la
bench_prodcons_SOURCES = bench/prodcons.c bench/bench.h
bench_procwatch_SOURCES = bench/procwatch.c bench/bench.h
bench_program_SOURCES = bench/program.c bench/bench.h
bench_reuse_SOURCES = bench/reuse.c bench/bench.h
bench_rosmix_SOURCES = bench/rosmix.c bench/bench.h
bench_rptest_SOURCES = bench/rptest.c bench/bench.h
bench_shbench_SOURCES = bench/shbench.c bench/bench.h
bench_simple_SOURCES = bench/simple.c bench/bench.h
bench_startup_SOURCES = bench/startup.c bench/bench.h
bench_threadchurn_SOURCES = bench/threadchurn.c bench/bench.h
bench_xmalloc_SOURCES = bench/xmalloc.c bench/bench.h

# The beds, each where configure found its middleware (m4/beds.m4).
if BED_ROUNDTRIP
noinst_PROGRAMS += bench/roundtrip
noinst_LTLIBRARIES += bench/libroundtrip.la
endif
bench_roundtrip_SOURCES = bench/roundtrip.cc bench/bench.h bench/endpoint.h bench/link.h \
  bench/middleware.h
bench_roundtrip_CXXFLAGS = $(CXX_STANDARD) $(AM_CXXFLAGS) $(ROUNDTRIP_CFLAGS)
bench_roundtrip_LDADD = $(ROUNDTRIP_LIBS)
# With a path to be installed at, which it never is, it becomes a library that can be loaded.
bench_libroundtrip_la_SOURCES = bench/roundtrip_python.cc bench/bench.h bench/link.h \
  bench/middleware.h
bench_libroundtrip_la_CXXFLAGS = $(CXX_STANDARD) $(AM_CXXFLAGS) $(ROUNDTRIP_CFLAGS)
bench_libroundtrip_la_LDFLAGS = -module -avoid-version -shared -rpath $(abs_builddir)/bench
bench_libroundtrip_la_LIBADD = $(ROUNDTRIP_LIBS)

# What reads JSON is there where Jansson is.
if HAVE_JANSSON
noinst_PROGRAMS += bench/graph
bench_graph_SOURCES = bench/graph.c bench/graph_report.c bench/topology.c \
  bench/bench.h bench/graph.h bench/topology.h
bench_graph_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
bench_graph_LDADD = $(JANSSON_LIBS)
endif

# What is generated for beds lies in the build folder, and is compiled without our warnings.
if BED_CYCLONE
noinst_PROGRAMS += bench/cyclone
noinst_LTLIBRARIES += bench/libcyclone_types.la
bench_cyclone_SOURCES = bench/cyclone.c bench/bench.h bench/endpoint.h
bench_cyclone_CPPFLAGS = $(AM_CPPFLAGS) -isystem bench/generated $(CYCLONE_CFLAGS)
bench_cyclone_LDADD = bench/libcyclone_types.la $(CYCLONE_LIBS)
nodist_bench_libcyclone_types_la_SOURCES = bench/generated/stamped.c
bench_libcyclone_types_la_CPPFLAGS = $(CYCLONE_CFLAGS)
bench_libcyclone_types_la_CFLAGS = -std=gnu11

bench/generated/stamped.c: bench/messages/stamped.idl
	$(AM_V_GEN)$(MKDIR_P) bench/generated && \
	  $(IDLC) -l c -o bench/generated $(srcdir)/bench/messages/stamped.idl
$(bench_cyclone_OBJECTS): bench/generated/stamped.c
endif
CLEANFILES += bench/generated/stamped.c bench/generated/stamped.h

if BED_FASTDDS
noinst_PROGRAMS += bench/fastdds
bench_fastdds_SOURCES = bench/fastdds.cc bench/bench.h bench/endpoint.h
bench_fastdds_CXXFLAGS = $(CXX_STANDARD) $(AM_CXXFLAGS) $(FASTDDS_CFLAGS)
bench_fastdds_LDADD = $(FASTDDS_LIBS)
endif

if BED_MESSAGES
noinst_PROGRAMS += bench/rosidl
noinst_LTLIBRARIES += bench/librosidl_types.la
bench_rosidl_SOURCES = bench/rosidl.c bench/bench.h
bench_rosidl_CPPFLAGS = $(AM_CPPFLAGS) -isystem bench/generated $(MESSAGES_CFLAGS)
bench_rosidl_LDADD = bench/librosidl_types.la $(MESSAGES_LIBS)
nodist_bench_librosidl_types_la_SOURCES = \
  bench/generated/weir_bench/msg/detail/stamped__functions.c \
  bench/generated/weir_bench/msg/detail/stamped__type_support.c
bench_librosidl_types_la_CPPFLAGS = -Ibench/generated $(MESSAGES_CFLAGS)
bench_librosidl_types_la_CFLAGS = -std=gnu11 $(no_builtin_malloc)

# The two kinds of file stand apart, and include each other as if they were installed.
bench/generated/rosidl.stamp: bench/messages/msg/Stamped.msg
	$(AM_V_GEN)$(MKDIR_P) bench/generated/weir_bench && \
	  $(ROSIDL_TOOL) generate -t c -ts introspection_c -o bench/generated/rosidl weir_bench \
	    '$(abs_srcdir)/bench/messages:msg/Stamped.msg' >bench/generated/rosidl.log 2>&1 || \
	  { cat bench/generated/rosidl.log; exit 1; }
	$(AM_V_at)cp -R bench/generated/rosidl/c/msg bench/generated/rosidl/introspection_c/msg \
	  bench/generated/weir_bench
	$(AM_V_at)rm -rf bench/generated/rosidl && touch $@
$(nodist_bench_librosidl_types_la_SOURCES): bench/generated/rosidl.stamp
	@test -f $@
$(bench_rosidl_OBJECTS): bench/generated/rosidl.stamp
endif
CLEANFILES += \
  bench/generated/rosidl.log \
  bench/generated/rosidl.stamp \
  bench/generated/weir_bench/msg/*.h \
  bench/generated/weir_bench/msg/detail/*.[ch]

if BED_ROSCPP
noinst_PROGRAMS += bench/roscpp
endif
bench_roscpp_SOURCES = bench/roscpp.cc bench/bench.h bench/endpoint.h
bench_roscpp_CXXFLAGS = $(ROSCPP_STANDARD) $(AM_CXXFLAGS) $(ROSCPP_CFLAGS)
bench_roscpp_LDADD = $(ROSCPP_LIBS)

EXTRA_DIST += \
  bench/README.md \
  bench/compare \
  bench/endpoints \
  bench/messages/msg/Stamped.msg \
  bench/messages/stamped.idl \
  bench/plot \
  bench/programs/large_c.py \
  bench/programs/objects.js \
  bench/programs/objects.py \
  bench/programs/redis_load.sh \
  bench/programs/tables.sql \
  bench/programs/text.pl \
  bench/rospy_bed.py \
  bench/roundtrip.py \
  bench/topologies/mont_blanc.json \
  bench/weirbench/__init__.py \
  bench/weirbench/aims.py \
  bench/weirbench/arms.py \
  bench/weirbench/bed.py \
  bench/weirbench/both_ends.py \
  bench/weirbench/cells.py \
  bench/weirbench/choosing.py \
  bench/weirbench/command.py \
  bench/weirbench/counting.py \
  bench/weirbench/curves.py \
  bench/weirbench/endpoint.py \
  bench/weirbench/facts.py \
  bench/weirbench/general.py \
  bench/weirbench/isolation.py \
  bench/weirbench/messages.py \
  bench/weirbench/plots.py \
  bench/weirbench/progress.py \
  bench/weirbench/running.py \
  bench/weirbench/stats.py \
  bench/weirbench/summary.py \
  bench/weirbench/tables.py
