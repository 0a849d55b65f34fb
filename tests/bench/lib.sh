# SPDX-License-Identifier: Apache-2.0
# Read by the scripts of this folder: a folder to work in, complaints, and looks at what a command
# has printed, which is in $work/out and $work/err. $failed is the script's status.

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

complain() {
  echo "FAIL $*"
  failed=1
}

# The same, with what was printed.
complain_with_output() {
  complain "$@"
  cat "$work/out" "$work/err"
}

# holds CONDITION: whether it is true of the JSON object that was printed, named `got`.
holds() {
  "${PYTHON3:-python3}" -c '
import json, sys
with open(sys.argv[1]) as file:
    got = json.load(file)
sys.exit(not eval(sys.argv[2]))' "$work/out" "$1"
}

# run CONDITION COMMAND...: it must end well, and the condition must hold.
run() {
  condition=$1
  shift
  timeout 60 "$@" >"$work/out" 2>"$work/err" ||
    { complain "$*: status $?"; cat "$work/err"; return; }
  holds "$condition" || { complain "$*: not $condition"; cat "$work/out"; }
}

# is_still COMMAND...: it must make no memory call in its steady part with $so preloaded. False if
# that cannot be seen here.
is_still() {
  "${PYTHON3:-python3}" "$srcdir/tests/bench/calls.py" "$srcdir" "$so" "$work/out" "$@" \
    >"$work/calls" 2>"$work/err"
  status=$?
  test $status != 77 || { cat "$work/calls"; return 1; }
  test $status = 0 || { complain "$*"; cat "$work/calls" "$work/err"; }
}
