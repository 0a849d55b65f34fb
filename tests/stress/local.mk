# SPDX-License-Identifier: Apache-2.0
# Threads that take and give blocks of each other, over weir's own names and linked with the core.

stress_tests = \
  tests/stress/arenas \
  tests/stress/pool \
  tests/stress/stress \
  tests/stress/sweep

check_PROGRAMS += $(stress_tests)
tests_stress_arenas_SOURCES = tests/stress/arenas.c tests/stress/stress.h
tests_stress_arenas_LDADD = libweir_core.la
tests_stress_pool_SOURCES = tests/stress/pool.c tests/stress/stress.h
tests_stress_pool_LDADD = libweir_core.la
tests_stress_stress_SOURCES = tests/stress/stress.c tests/stress/stress.h
tests_stress_stress_LDADD = libweir_core.la
tests_stress_sweep_SOURCES = tests/stress/sweep.c tests/stress/stress.h
tests_stress_sweep_LDADD = libweir_core.la
core_tests += $(stress_tests)
