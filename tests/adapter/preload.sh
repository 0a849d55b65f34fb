#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libweir_rcutils preloaded: alone, and with libweir_malloc before and behind it. Whoever comes to
# rcutils' default allocator gets the arena "rcutils", from the one weir that the process has in
# force, with the mark and the limit of the environment.

program=tests/adapter/preload
folder=${REPLACE_SO%/*}
so=$folder/libweir_rcutils.so
malloc_so=$REPLACE_SO
test -e "$malloc_so" || malloc_so=
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

# The file that programs linked with librcutils load.
librcutils=$(LD_PRELOAD='' ldd tests/adapter/bomb | sed -n 's/.*=> \(.*librcutils[^ ]*\) .*/\1/p')
test -n "$librcutils" || { echo "librcutils is not found"; exit 1; }

fail() {
  echo "FAIL $*"
  sed 's/^/  out: /' "$work/out"
  sed 's/^/  err: /' "$work/err"
  failed=1
}

# run PRELOAD WHAT [NAME=VALUE...]
run() {
  preload=$1 what=$2
  shift 2
  env "$@" LD_PRELOAD="$preload" "$program" "$librcutils" "$what" >"$work/out" 2>"$work/err" ||
    fail "$preload $what $*: exit $?"
}

says() { # LINE: as a whole line of the output
  grep -qxF "$1" "$work/out" || fail "$preload $what: no line: $1"
}

silent() {
  test ! -s "$work/err" || fail "$preload $what: said something"
}

# same LIBRARY MALLOC PRELOAD: all weir_* are of one library.
same() {
  for what in '' free fork; do
    test "$2" = libweir_malloc.so || test "$what" != free || continue
    run "$3" "$what"
    silent
    says "default allocator of libweir_rcutils.so, functions of $1, weir_malloc of $1, malloc of $2"
    says 'arena rcutils, mark 67108864'
    says 'logging in arena yes'
    says 'left 0'
  done
}

run '' ''
says 'not preloaded'

libc=$(LD_PRELOAD='' ldd "$program" | sed -n 's/^[[:blank:]]*\(libc\.[^ ]*\) .*/\1/p')
same "$(basename "$(echo "$folder"/libweir.so.?)")" "$libc" "$so"
preloads=$so
if test -n "$malloc_so"; then
  same libweir_malloc.so libweir_malloc.so "$so:$malloc_so"
  same libweir_malloc.so libweir_malloc.so "$malloc_so:$so"
  preloads="$preloads $so:$malloc_so $malloc_so:$so"
fi

for preload in $preloads; do
  run "$preload" '' WEIR_RETAIN=8M
  says 'arena rcutils, mark 8388608'
  run "$preload" '' WEIR_RETAIN=8M WEIR_RCUTILS_RETAIN=2M
  says 'arena rcutils, mark 2097152'
  run "$preload" '' WEIR_RCUTILS_RETAIN=unlimited
  says 'arena rcutils, mark 18446744073709551615'
  silent

  run "$preload" limit WEIR_RCUTILS_LIMIT=8M
  taken=$(sed -n 's/^limit //p' "$work/out")
  test "$taken" -gt 6000000 && test "$taken" -le 8388608 ||
    fail "$preload: $taken bytes were taken with a limit of 8M"
  says 'logging in arena yes'

  run "$preload" '' WEIR_RCUTILS_LIMIT=1K
  says 'logging in arena yes'
  test "$(cat "$work/err")" = \
    'weir: WEIR_RCUTILS_LIMIT=1K is not enough for an arena; keeping unlimited' ||
    fail "$preload: a limit that is too small"

  # Where two of weir's libraries are loaded, one of them complains.
  run "$preload" '' WEIR_RETAIN=much
  test "$(wc -l <"$work/err")" = 1 || fail "$preload: a bad value is not told once"

  run "$preload" '' WEIR_VERBOSE=1 WEIR_RCUTILS_LIMIT=8M
  test "$(wc -l <"$work/err")" = 1 || fail "$preload: WEIR_VERBOSE=1: not one line"
  grep -q 'active: .* WEIR_RCUTILS_RETAIN=default WEIR_RCUTILS_LIMIT=8M$' "$work/err" ||
    fail "$preload: WEIR_VERBOSE=1"

  run "$preload" '' WEIR_STATS=json
  test "$(grep -c '"arena":"rcutils"' "$work/err")" = 1 || fail "$preload: no statistics of the arena"
  test "$(wc -l <"$work/err")" = 2 || fail "$preload: not a line of statistics for each arena"

  # A program that has nothing to do with ROS.
  LD_PRELOAD=$preload sh -c 'echo "$((6 * 7))"' >"$work/out" 2>"$work/err" || fail "$preload: sh"
  test "$(cat "$work/out")" = 42 || fail "$preload: sh does not work"
  silent
done
exit $failed
