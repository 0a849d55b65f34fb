#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# bench/endpoints merges what two endpoints print, says in one line what went wrong, and leaves
# neither a process nor a file behind, however its run ends.
. "$srcdir/tests/bench/lib.sh"
python=${PYTHON3:-python3}
command -v "$python" >/dev/null || { echo "no python3"; exit 77; }

# A number that stands in the command line of no other process.
odd=$$.$(date +%N)

# Is one of the sleepers below there? Its argument is the number and no more; as a pattern, so that
# this does not find itself.
sleeping() {
  cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -qx "[9]$odd"
}

# Wait up to five seconds for a command to succeed.
soon() {
  tries=0
  until "$@" || [ $tries = 50 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
  [ $tries != 50 ]
}

cleared() {
  ! sleeping && ! ls -d "$work"/weir-bed-* >/dev/null 2>&1
}

endpoints() {
  TMPDIR=$work "$python" "$srcdir/bench/endpoints" "$@" >"$work/out" 2>"$work/err"
}

nothing_stays() {
  sleeping && complain_with_output "$1: a process has stayed"
  ls -d "$work"/weir-bed-* >/dev/null 2>&1 && complain_with_output "$1: a folder has stayed"
}

ends() { # STATUS WORDS ARGUMENT...: it ends so, and its last line has these words
  status=$1 words=$2
  shift 2
  endpoints "$@"
  got=$?
  test $got = "$status" || complain_with_output "$*: status $got"
  # Without namespaces there is one line more, which says so.
  test "$(grep -vc 'no namespaces' "$work/err")" = 1 || complain_with_output "$*: not one line"
  tail -n 1 "$work/err" | grep -q -e "$words" || complain_with_output "$*: does not say $words"
  nothing_stays "$*"
}

line='{\"faults_per_message\": 1, \"first_faults\": 2, \"rss_peak_kib\": 3, \"at\": \"$PWD\"}'
good="sh -c 'printf \"%s\" \"$line\"'"
hangs="sh -c 'setsid -f sleep 9$odd; exec sleep 9$odd'"

ends 2 'required: --ping, --echo'
ends 2 'required: --echo' --ping "$good"
ends 2 'not NAME=VALUE' --ping "$good" --echo "$good" -E nothing
ends 2 'not a number of seconds' --ping "$good" --echo "$good" --limit 0
ends 2 'no program .no-such-program' --ping no-such-program --echo "$good"
ends 2 'command is empty' --ping '' --echo "$good"
ends 2 'No closing quotation' --ping "sh '" --echo "$good"
ends 2 'unrecognized' --ping "$good" --echo "$good" --no-such-option

ends 1 'ping ended with status 3: no way' --echo "$hangs" --ping "sh -c 'echo no way >&2; exit 3'"
ends 1 'echo was ended by signal 9' --ping "$hangs" --echo "sh -c 'kill -9 \$\$'"
ends 1 'echo and ping did not end within 1 s' --limit 1 --ping "$hangs" --echo "$hangs"
ends 1 'ping did not end within 1 s' --limit 1 --ping "$hangs" --echo "$good"
ends 1 'service 1 ended with status 0' --ping "$hangs" --echo "$hangs" --service true
ends 1 'echo printed something else' --ping "$good" --echo "sh -c 'echo hello'"
ends 1 'ping does not tell its' --ping "sh -c 'echo {}'" --echo "$good"

# What a shell's kill does to it, and what nothing can stop.
for how in TERM INT KILL; do
  TMPDIR=$work "$python" "$srcdir/bench/endpoints" --ping "$hangs" --echo "$hangs" \
    --service "$hangs" >"$work/out" 2>"$work/err" &
  pid=$!
  soon sleeping || complain_with_output "$how: nothing was started"
  # A shell's background commands ignore SIGINT, unless they set it themselves, as this one does.
  kill -$how $pid
  wait $pid 2>/dev/null && complain_with_output "$how: status 0"
  soon cleared
  nothing_stays "$how"
done

# Variables are for the endpoints and not for services, which are gone at the end.
seen="sh -c 'test \"\$ODD\" = $odd && printf \"%s\" \"$line\"'"
endpoints --ping "$seen" --echo "$seen" -E "ODD=$odd" \
  --service "sh -c 'test -z \"\$ODD\" && exec sleep 9$odd'" || complain_with_output 'a good bed'
"$python" -c '
import json, sys
line = json.load(sys.stdin)
sys.exit([line[f"{role}_{key}"] for role in ("ping", "echo")
          for key in ("faults_per_message", "first_faults", "rss_peak_kib")] != [1, 2, 3] * 2
         or "weir-bed-" not in line["at"])' <"$work/out" || complain_with_output 'the merged line'
nothing_stays 'a good bed'
exit $failed
