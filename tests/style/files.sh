#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What holds for every file: it opens with its licence, stays short enough to be read in one go,
# holds no mark of unfinished work and no path of somebody's machine.
. "$srcdir/tests/style/tree.sh"
own_files >/dev/null || exit 1
status=0

complain() {
  echo "$1"
  status=1
}

for file in $(own_sources); do
  head -n 2 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
    complain "$file: no licence in its first line"
  lines=$(wc -l <"$file")
  test "$lines" -le 600 || complain "$file: $lines lines are too many"
done

# shellcheck disable=SC2046  # the names have no blanks
grep -nE '(^|[^[:alnum:]_.])/(home|root|Users|work|farm)/' $(own_files) /dev/null &&
  complain 'paths of a machine, above'
# shellcheck disable=SC2046
grep -nwE 'T[O]DO|F[I]XME|X[X]X|H[A]CK' $(own_files) /dev/null &&
  complain 'marks of unfinished work, above'
# shellcheck disable=SC2046
grep -nE '[[:blank:]]+$' $(own_files) /dev/null && complain 'blanks at the end of lines, above'
exit $status
