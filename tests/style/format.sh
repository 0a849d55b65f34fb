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
status=0
for file in $(own_sources | grep -E '\.(h|hpp|c|cc)$'); do
  "$formatter" "$file" | cmp -s - "$file" && continue
  echo "$file: $formatter -i would change it"
  status=1
done
exit $status
