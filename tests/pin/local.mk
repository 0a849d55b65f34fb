# SPDX-License-Identifier: Apache-2.0
# weir_glibc_pin in programs of every kind, which the script builds itself.

if REPLACE
if SHARED
TESTS += tests/pin/pin.sh
endif
endif

EXTRA_DIST += \
  tests/pin/pin.c \
  tests/pin/pin.sh
