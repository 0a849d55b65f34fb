#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Each benchmark program does a little work under weir, finds nothing wrong with its blocks, and
# prints one JSON object with a time; bad use is one line and status 2. And the runner makes a table.
so=${REPLACE_SO:?"set by run.sh"}
. "$srcdir/tests/bench/lib.sh"

check_json() { # the text, on standard input, is one object whose key $1 is a number above 0
  "${PYTHON3:-python3}" -c '
import json, sys
value = json.load(sys.stdin)
sys.exit(not value.get(sys.argv[1], 0) > 0)' "$1"
}

runs() { # KEY PROGRAM ARGUMENT...
  key=$1 program=$2
  shift 2
  LD_PRELOAD="$so" timeout 60 "bench/$program" "$@" >"$work/out" 2>"$work/err" ||
    { complain "$program $*: status $?"; cat "$work/err"; return; }
  check_json "$key" <"$work/out" || { complain "$program $*: printed"; cat "$work/out"; }
}

refuses() { # PROGRAM ARGUMENT...
  program=$1
  shift
  "bench/$program" "$@" >"$work/out" 2>"$work/err"
  status=$?
  test $status = 2 && test "$(wc -l <"$work/err")" = 1 && return
  complain "$program $*: status $status"
  cat "$work/err"
}

runs ns_median reuse --size 100K --iterations 20
runs pool_ns pool --size 100K --iterations 20
runs plain_ns pool --size 1K --iterations 5 --rounds 100 --fill byte --arena own
for line in 'pair --count 1000' 'churn --ops 2000 --live 200' 'prodcons --blocks 1000' \
  'alloctest --ops 2000 --live 500' 'falseshare --mode passive --rounds 200' \
  'falseshare --mode active --rounds 200' 'growth --pattern grow --rounds 1 --limit 1M' \
  'growth --pattern append --rounds 20' 'large --ops 2 --live 2' \
  'larson --generations 2 --rounds 100 --threads 2' 'mstress --iterations 1 --scale 3' \
  'rosmix --messages 20 --threads 4' 'rptest --loops 20' 'rptest --mode fixed --loops 20' \
  'shbench --kind sh6 --rounds 3' 'shbench --kind sh8 --rounds 3 --threads 2' \
  'simple --ops 10000' 'simple --ops 5000 --threads 2' 'threadchurn --threads 8' \
  'xmalloc --blocks 2000'; do
  # shellcheck disable=SC2086  # words
  runs ns_per_op $line
done
# shellcheck disable=SC2016
runs cpu_ns program -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done'
for name in alloctest churn falseshare fleet growth large larson mstress pair pool prodcons reuse rosmix \
  rptest shbench simple threadchurn xmalloc; do
  refuses "$name" --no-such-option
  refuses "$name" --seed x
done
refuses program

"${PYTHON3:-python3}" "$srcdir/bench/compare" --workload footprint --only glibc,weir --reps 1 \
  --no-strace --build . --json "$work/json" >"$work/out" 2>"$work/err" ||
  { complain compare; cat "$work/err"; }
grep -q 'private dirty' "$work/out" || { complain 'compare: its table'; cat "$work/out"; }
exit $failed
