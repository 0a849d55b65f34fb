#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the tables of doc/options.md from the lists in the sources that the library itself is built
# from, so that the document cannot fall behind them. The lists are C macros, so the C preprocessor
# (CC, or cc) reads them.
#
# Usage: doc/tables.sh           rewrite the tables
#        doc/tables.sh --check   change nothing; fail with one line if they are not up to date
set -eu

case $#:${1:-} in
  0: | 1:--check) ;;
  *) echo "usage: doc/tables.sh [--check]" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.."
document=doc/options.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# rows LIST MACRO BODY: one line for each use of the macro in the list, its columns parted by |.
# Strings that the compiler would join are joined, whatever lines they stand on.
rows() {
  # shellcheck disable=SC2086  # CC may be a compiler and its flags
  ${CC:-cc} -E -P -x c "-D$2=@@ $3" "$1" >"$work/rows"
  tr '\n' ' ' <"$work/rows" | sed 's/@@/\
/g' | sed -e '/^ *$/d' -e 's/" *"//g' -e 's/"//g' -e 's/^ *//' -e 's/ *$//' -e 's/ *| */ | /g'
}

options() {
  echo '| option | takes | default | what it does |'
  echo '| --- | --- | --- | --- |'
  rows src/options.def 'WR_OPTION(field, variable, type, value, shown, takes, help)' \
    'variable | takes | shown | help' |
    sed -E 's/^([^|]*) \| ([^|]*) \| ([^|]*) \| (.*)$/| `\1` | \2 | `\3` | \4 |/'
}

counters() {
  echo '| counter | kind | what it counts |'
  echo '| --- | --- | --- |'
  rows include/weir/counters.def 'WEIR_STAT(name, kind, text)' 'name | kind | text' |
    sed -E 's/^([^|]*) \| ([^|]*) \| (.*)$/| `\1` | \2 | \3 |/'
}

options >"$work/options"
counters >"$work/counters"
for table in options counters; do
  test "$(wc -l <"$work/$table")" -gt 2 || { echo "doc/tables.sh: no $table found" >&2; exit 1; }
done

# What stands between <!-- table NAME --> and <!-- end --> is replaced by the file of that name.
awk -v work="$work" '
  /^<!-- end -->$/ { inside = 0 }
  !inside
  /^<!-- table [a-z]+ -->$/ {
    inside = 1
    while ((getline line <(work "/" $3)) > 0) print line
  }' "$document" >"$work/document"

if [ "${1:-}" = --check ]; then
  cmp -s "$work/document" "$document" && exit 0
  echo "$document: its tables are not those of the sources; doc/tables.sh rewrites them" >&2
  exit 1
fi
cat "$work/document" >"$document"
