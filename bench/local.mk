# SPDX-License-Identifier: Apache-2.0
# The workloads, a program each. They use the C library's names only, so that any allocator can be
# preloaded under them.

noinst_PROGRAMS += \
  bench/burst \
  bench/churn \
  bench/footprint \
  bench/pair \
  bench/procwatch \
  bench/prodcons \
  bench/reuse \
  bench/startup
bench_burst_SOURCES = bench/burst.c bench/bench.h
bench_churn_SOURCES = bench/churn.c bench/bench.h
bench_footprint_SOURCES = bench/footprint.c bench/bench.h
bench_pair_SOURCES = bench/pair.c bench/bench.h
bench_prodcons_SOURCES = bench/prodcons.c bench/bench.h
bench_procwatch_SOURCES = bench/procwatch.c bench/bench.h
bench_reuse_SOURCES = bench/reuse.c bench/bench.h
bench_startup_SOURCES = bench/startup.c bench/bench.h

EXTRA_DIST += \
  bench/README.md \
  bench/compare \
  bench/weirbench/__init__.py \
  bench/weirbench/arms.py \
  bench/weirbench/cells.py \
  bench/weirbench/command.py \
  bench/weirbench/facts.py \
  bench/weirbench/progress.py \
  bench/weirbench/running.py \
  bench/weirbench/stats.py \
  bench/weirbench/summary.py \
  bench/weirbench/tables.py
