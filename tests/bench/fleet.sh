#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A small fleet of processes runs under weir in each of its three ways to have batches, says what
# memory it takes, and leaves no process behind, not even when it is ended itself. And messages get
# through the link that --throughput measures.
so=${REPLACE_SO:?"set by run.sh"}
. "$srcdir/tests/bench/lib.sh"

fleet() { # CONDITION ARGUMENT...
  condition=$1
  shift
  run "$condition" env LD_PRELOAD="$so" bench/fleet "$@"
}

# Of 10 links with two ends, each with 18 batches; lazily and on demand there are fewer, or more.
sums='got["pss_total_kib"] >= got["pss_router_kib"] + 10 * 100 and got["received"] > 0'
sums="$sums and got['pss_node_kib'] > 100 and got['forwarded'] >= got['received']"
all='10 * 2 * 18'
set -- --publishers 5 --subscribers 5 --run-ms 500 --alive-ms 100 --threads 2
fleet "$sums and got['batches_made'] == $all and got['pss_total_kib'] > 64 * $all" --mode start "$@"
fleet "$sums and 10 <= got['batches_made'] < $all" --mode lazy "$@"
fleet "$sums and got['batches_made'] > 10 * 2 * 3" --mode demand "$@"
fleet 'got["ns_keep"] > 0 and got["ns_fresh"] > 0 and got["batches_made"] >= 10' \
  --throughput --rounds 5 --messages 20000

# What takes too long is ended, in time and in one line.
timeout 30 bench/fleet --publishers 2 --subscribers 2 --run-ms 20000 --limit-s 2 2>"$work/err"
status=$?
test $status = 1 && test "$(wc -l <"$work/err")" = 1 && grep -q 'more than 2 s' "$work/err" ||
  { complain "--limit-s: status $status"; cat "$work/err"; }

# processes NAME: how many there are of the program under that name
processes() {
  found=0
  for about in /proc/[0-9]*/exe; do
    test "$(readlink "$about")" != "$1" || found=$((found + 1))
  done
  echo $found
}

# A copy, so that no other run of the program is taken for this one.
cp bench/fleet "$work/fleet" || exit 1
"$work/fleet" --publishers 5 --subscribers 5 --run-ms 60000 2>/dev/null &
first=$!
for turn in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  test "$(processes "$work/fleet")" -lt 12 || break
  sleep 0.5
done
test "$(processes "$work/fleet")" = 12 || complain "$(processes "$work/fleet") of 12 processes run"
kill -KILL $first
wait $first 2>/dev/null
for turn in 1 2 3 4 5 6 7 8 9 10; do
  test "$(processes "$work/fleet")" != 0 || break
  sleep 0.5
done
test "$(processes "$work/fleet")" = 0 || complain "$turn: processes stay when the first is killed"
exit $failed
