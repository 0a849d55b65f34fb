#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The examples of doc/examples do what they show, and what doc/ros.md says of them: budgets hold,
# blocks all go back, the real-time loop has no page fault, and each of its steps is needed.
so=${REPLACE_SO:?"set by run.sh"}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

complain() {
  echo "FAIL $*"
  cat "$work/out"
  failed=1
}

# example STATUS NAME ARGUMENT...: run it; it must end with that status.
example() {
  wanted=$1 name=$2
  shift 2
  "doc/examples/$name" "$@" >"$work/out" 2>&1
  status=$?
  test $status = "$wanted" || complain "$name $*: status $status, not $wanted"
}

# says PATTERN: a line of the last example's output is that.
says() {
  grep -Exq "$1" "$work/out" || complain "$name does not say: $1"
}

if test -x doc/examples/node; then
  example 0 node
  says '3 settings, width 1024'
  says 'driver +in use: [1-9][0-9]* bytes live, at most [0-9]+ resident, 0 refused'
  says 'messages 3 to 1000: 0 bytes of fresh memory, 0 given back'
  says '[5-7] images of 1 MiB fit, then: Cannot allocate memory'
  says 'driver +at the end: 0 bytes live, at most [0-9]{4,6} resident, 0 refused'
  says 'camera +at the end: 0 bytes live, at most [5-8][0-9]{6} resident, 1 refused'
else
  echo "left out: node, which needs rcutils"
fi

if test -x doc/examples/buffers; then
  example 0 buffers
  says '1000 images: 0 bytes live, at most 1[0-9]{6} resident'
  says '1000 clouds: 0 bytes live, at most 1[0-9]{6} resident'
  says '32 MiB: over the limit'
else
  echo "left out: buffers, which needs a C++ compiler"
fi

# faults: how many page faults the first message had; many if there were any later.
faults() {
  first=$(sed -n 's/^page faults: \([0-9]*\) in the first message, 0 in the 99 after it$/\1/p' \
    "$work/out")
  echo "${first:-999999}"
}

# needs STEP...: without those steps the first message has at least $least faults.
needs() {
  example 1 realtime "$@"
  first=$(faults)
  if test "$first" -lt "$least" || test "$first" = 999999; then
    complain "realtime without $*: not $least faults at first, and none later"
  fi
}

doc/examples/realtime >"$work/out" 2>&1
if test $? = 3; then
  echo "left out: the real-time recipe, for no memory may be locked here"
else
  example 0 realtime
  test "$(faults)" = 0 || complain 'realtime: faults'
  # What is locked is what is resident.
  locked=$(sed -n 's/^VmLck:[^0-9]*\([0-9]*\) kB/\1/p' "$work/out")
  resident=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "$work/out")
  if test "$locked" -lt 32768 || test "$locked" -gt 45000 || test "$resident" -gt 45000; then
    complain 'realtime: VmLck'
  fi
  # 31 MiB are 7936 pages.
  least=7900
  needs prefault
  least=16
  needs lock stack
  # Nothing is paged out here, but then nothing is locked.
  doc/examples/realtime lock >"$work/out" 2>&1
  test "$(faults)" -le 3 || complain 'realtime lock: faults'
  says 'VmLck:[^0-9]*0 kB'
fi

# Python: payloads come from weir, small objects do not until they are asked to.
if test -n "$PYTHON3" && "$PYTHON3" -c 'import resource' 2>/dev/null; then
  for environment in PYTHONMALLOC=pymalloc PYTHONMALLOC=malloc; do
    env "$environment" LD_PRELOAD="$so" "$PYTHON3" "$srcdir/doc/examples/messages.py" \
      >"$work/out" 2>&1
    name="messages.py with $environment"
    says 'payload +0\.[0-9] page faults, .*'
    test "$environment" = PYTHONMALLOC=pymalloc || says 'objects +[0-9]\.[0-9] page faults, .*'
  done
else
  echo "left out: messages.py, for there is no Python here"
fi
exit $failed
