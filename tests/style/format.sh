#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# C and C++ files look as clang-format leaves them. Another version than 14 may want other things,
# so without that one the test is skipped.
formatter=
for candidate in clang-format-14 clang-format; do
  case $($candidate --version 2>/dev/null) in
    *' version 14.'*) formatter=$candidate ;;
  esac
done
test -n "$formatter" || { echo "no clang-format 14"; exit 77; }

. "$srcdir/tests/style/tree.sh"
# All at once, because it takes longer to start than to look at a file.
# shellcheck disable=SC2046  # no name has a space
said=$("$formatter" --dry-run $(own_sources | grep -E '\.(h|hpp|c|cc)$') 2>&1) && [ -z "$said" ] &&
  exit 0
echo "$said" | grep ': warning:' || echo "$said"
exit 1
