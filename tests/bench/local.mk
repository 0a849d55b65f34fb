# SPDX-License-Identifier: Apache-2.0
# The benchmark programs and their runner work.

if REPLACE
TESTS += tests/bench/programs.sh
endif
EXTRA_DIST += tests/bench/programs.sh
