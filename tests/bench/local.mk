# SPDX-License-Identifier: Apache-2.0
# The benchmark programs and their runner work, and what the beds are to show holds.

TESTS += tests/bench/endpoints.sh
if REPLACE
TESTS += \
  tests/bench/fleet.sh \
  tests/bench/graph.sh \
  tests/bench/plots.sh \
  tests/bench/programs.sh \
  tests/bench/ros1.sh \
  tests/bench/rosidl.sh
if BED_ROUNDTRIP
TESTS += tests/bench/roundtrip.sh
endif
endif
EXTRA_DIST += \
  tests/bench/calls.py \
  tests/bench/endpoints.sh \
  tests/bench/fleet.sh \
  tests/bench/graph.sh \
  tests/bench/lib.sh \
  tests/bench/plot.json \
  tests/bench/plots.sh \
  tests/bench/programs.sh \
  tests/bench/ros1.sh \
  tests/bench/rosidl.sh \
  tests/bench/roundtrip.sh \
  tests/bench/steady.py
