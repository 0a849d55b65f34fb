#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Limits of address space and of data: wherever a program runs with the libc's malloc it runs
# preloaded as well, and a program that takes all there is gets NULL and ENOMEM, frees everything
# and goes on.
# shellcheck disable=SC2015,SC2016,SC2086,SC2317,SC3045  # words of other shells; numbers; a trap

bin=${REPLACE_BIN:-tests/replace}
so=${REPLACE_SO:?"set by run.sh"}
failed=0

# limited OPTION MIB COMMAND...: the command under a limit, preloaded when LOAD is set.
limited() {
  option=$1 mib=$2
  shift 2
  (ulimit -c 0
   ulimit "$option" $((mib * 1024)) || exit 99
   exec env ${LOAD:+LD_PRELOAD="$LOAD"} "$@") >/dev/null 2>&1
}

try() {
  LOAD='' limited "$@" || return 0
  LOAD=$so limited "$@" && return 0
  echo "FAIL ulimit $*: runs with the libc's malloc, and not preloaded ($?)"
  failed=1
}

for mib in 8 10 12 16 20 24 32 48 64 96 128 192 256; do
  try -v $mib /bin/true
  try -v $mib /bin/sh -c 'x=$(echo a b c); set -- $x; [ $# = 3 ]'
  try -d $mib /bin/true
done
for mib in 32 64 128 256; do
  try -v $mib perl -e '$h{$_} = "x" x $_ for 1..2000; exit(keys(%h) != 2000)'
done

# Below 24 MiB the program's own table and its threads' stacks leave nothing to take.
for mib in 24 32 48 64 128 256; do
  message=$( (ulimit -c 0; ulimit -v $((mib * 1024))
    exec env LD_PRELOAD="$so" "$bin/exhaust" $mib) 2>&1) ||
    { echo "FAIL exhaust under $mib MiB: $message"; failed=1; }
done
exit $failed
