#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A graph of 20 nodes, with a topic of 1 MB, makes no page fault and no memory call under weir once
# it runs, and does fault under the C library's malloc. And the reader of topologies says in one
# line what is wrong with a file.
so=${REPLACE_SO:?"set by run.sh"}
test -x bench/graph || { echo "bench/graph was not built: there is no Jansson"; exit 77; }
graph=$srcdir/bench/topologies/mont_blanc.json
. "$srcdir/tests/bench/lib.sh"

# Fewer messages may come where the machine is busy, but they come, and none is lost of so few.
came='got["topic_received"] > 20 and got["received"] > 300 and got["ns_mean"] > 0'
set -- bench/graph --topology "$graph" --focus tagus --set tagus=1000000 --run-ms 1000 \
  --warmup-ms 500
run "$came and got['faults'] == 0" env LD_PRELOAD="$so" "$@"
run "$came and got['malloc_by_pool'] > 0" env LD_PRELOAD="$so" "$@" --buffers turns
# With the threshold fixed where it begins: glibc raises it when it likes, and then faults or not.
run "$came and got['faults_per_message'] > 0.2" env MALLOC_MMAP_THRESHOLD_=131072 "$@"

# The same with the memory calls counted.
if is_still "$@"; then
  holds "$came and got['faults'] == 0" || { complain 'with its calls counted'; cat "$work/out"; }
fi

LD_PRELOAD=$so "$@" --run-ms 300 --table >"$work/out" 2>&1 || complain "--table: status $?"
grep -qE '^ponce +tagus +sub +1000000 +[0-9.]+ ' "$work/out" ||
  { complain '--table has no row of ponce and tagus'; cat "$work/out"; }

# ---- what the reader refuses ----

# refuses TEXT ARGUMENT...: one line with this text, status 2
refuses() {
  text=$1
  shift
  bench/graph "$@" --run-ms 1 --warmup-ms 0 >"$work/out" 2>"$work/err"
  status=$?
  test $status = 2 && test "$(wc -l <"$work/err")" = 1 && grep -qF -- "$text" "$work/err" && return
  complain "$*: status $status, and not '$text' but"
  cat "$work/err"
}

# bad TEXT JSON: the same for a file with this in it
bad() {
  printf '%s\n' "$2" >"$work/bad.json"
  refuses "$1" --topology "$work/bad.json"
}

# node REST: a file with a node whose other members are REST
node() {
  printf '{"nodes": [{"node_name": "a", %s}]}' "$1"
}

refuses 'needs one --topology'
refuses 'No such file' --topology "$work/none.json"
refuses 'not a file' --topology "$work"
refuses "--depth: 0" --topology "$graph" --depth 0
refuses 'nobody publishes nile2' --topology "$graph" --set nile2=5
refuses 'follows from its type, stamped4_int32' --topology "$graph" --set nile=5
refuses "'tagus' is not TOPIC=BYTES" --topology "$graph" --set tagus
refuses "'1x' is not a number" --topology "$graph" --set tagus=1x
refuses '--focus: nobody' --topology "$graph" --focus none
bad 'line 1:' '{"nodes": [}'
bad 'no array "nodes"' '{"nodes": 3}'
bad 'no array "nodes"' '[]'
bad 'node 1 is not an object' '{"nodes": [3]}'
bad 'node 1: node_name is missing' '{"nodes": [{"publishers": []}]}'
bad 'node 1: node_name is not a string' '{"nodes": [{"node_name": 3}]}'
bad 'two nodes a' '{"nodes": [{"node_name": "a"}, {"node_name": "a"}]}'
bad 'nobody publishes anything' "$(node '"publishers": []')"
bad 'publishers is not an array' "$(node '"publishers": {}')"
bad 'publishers 1: it is not an object' "$(node '"publishers": [3]')"
bad 'publishers 1: topic_name is missing' "$(node '"publishers": [{"msg_type": "stamped_int64"}]')"
bad 'there is no msg_type odd' \
  "$(node '"publishers": [{"topic_name": "t", "msg_type": "odd", "period_ms": 1}]')"
bad 'there is no msg_type stampedkb' \
  "$(node '"publishers": [{"topic_name": "t", "msg_type": "stampedkb", "period_ms": 1}]')"
bad 'stamped_vector needs a msg_size' \
  "$(node '"publishers": [{"topic_name": "t", "msg_type": "stamped_vector", "period_ms": 1}]')"
bad 'msg_size is not a number above 0' \
  "$(node '"publishers": [{"topic_name": "t", "msg_type": "stamped_vector", "msg_size": -1}]')"
bad 'either period_ms or freq_hz' \
  "$(node '"publishers": [{"topic_name": "t", "msg_type": "stamped1kb"}]')"
bad 'period_ms is not a number above 0' \
  "$(node '"publishers": [{"topic_name": "t", "msg_type": "stamped1kb", "period_ms": 0}]')"
bad 'executor_id is not a whole number' "$(node '"executor_id": "x"')"
bad 'a publishes stamped1kb, a wants stamped10b' "$(node '"publishers":
  [{"topic_name": "t", "msg_type": "stamped1kb", "freq_hz": 10}],
  "subscribers": [{"topic_name": "t", "msg_type": "stamped10b"}]')"

# What is no topic is left out with a line, and nodes may share a thread.
printf '%s' '{"nodes": [{"node_name": "a", "executor_id": 7, "clients": [{}], "publishers":
  [{"topic_name": "t", "msg_type": "stamped1kb", "freq_hz": 100}]},
  {"node_name": "b", "executor_id": 7, "servers": [{}], "subscribers":
  [{"topic_name": "t", "msg_type": "stamped1kb"}]}]}' >"$work/shared.json"
run 'got["nodes"] == 2 and got["threads"] == 1 and got["received"] > 5' \
  bench/graph --topology "$work/shared.json" --run-ms 300 --warmup-ms 50
grep -q 'left out: 2 services' "$work/err" || { complain 'services'; cat "$work/err"; }
exit $failed
