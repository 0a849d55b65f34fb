# SPDX-License-Identifier: Apache-2.0
# What must hold for the text of the tree and for the libraries as they are built.

style_tests = \
  tests/style/files.sh \
  tests/style/format.sh \
  tests/style/headers.sh \
  tests/style/layers.sh \
  tests/style/tables.sh
if SHARED
if !SANITIZE
style_tests += \
  tests/style/exports.sh \
  tests/style/library.sh
endif
endif

TESTS += $(style_tests)
EXTRA_DIST += \
  tests/style/exports.sh \
  tests/style/files.sh \
  tests/style/format.sh \
  tests/style/headers.sh \
  tests/style/layers.sh \
  tests/style/library.sh \
  tests/style/tables.sh \
  tests/style/tree.sh
