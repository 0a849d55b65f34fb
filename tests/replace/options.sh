#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Options in the environment: values taken, values refused with one line, unknown names, what an
# operator told glibc, the line of WEIR_VERBOSE, the sinks of WEIR_STATS, and that a setuid
# program listens to none of it (REPLACE_SECURE is the static program to try that with).

bin=${REPLACE_BIN:-tests/replace}
so=${REPLACE_SO:?"set by run.sh"}
secure=${REPLACE_SECURE:-$bin/options.static}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0
fail() {
  echo "FAIL $*"
  [ ! -s "$dir/err" ] || sed 's/^/  stderr: /' "$dir/err"
  failed=1
}

# run [NAME=VALUE...] -- [ARGUMENT...]: standard output and error end up in $dir/out and $dir/err.
run() {
  settings=
  while [ "$1" != -- ]; do
    settings="$settings '$1'"
    shift
  done
  shift
  eval "env $settings EXPECT_WEIR=1 LD_PRELOAD='$so' '$bin/options'" '"$@"' >"$dir/out" 2>"$dir/err" ||
    fail "$settings: exit $?"
}

# mark EXPECTED NAME=VALUE...: that is the mark, and nothing is said.
mark() {
  expected=$1
  shift
  run "$@" --
  [ "$(cat "$dir/out")" = "mark $expected" ] || fail "$*: $(cat "$dir/out"), not $expected"
  [ ! -s "$dir/err" ] || fail "$*: said something"
}

# refused NAME=VALUE [MARK]: one line that names it, and the default is kept.
refused() {
  run "$1" --
  [ "$(cat "$dir/out")" = "mark ${2:-67108864}" ] || fail "$1: $(cat "$dir/out")"
  [ "$(wc -l <"$dir/err")" = 1 ] || fail "$1: not one line"
  case $(cat "$dir/err") in
    "weir: $1 "*) ;;
    *) fail "$1: the line does not begin with it" ;;
  esac
}

mark 67108864
mark 0 WEIR_RETAIN=0
mark 4096 WEIR_RETAIN=4096
mark 1024 WEIR_RETAIN=1K
mark 1048576 WEIR_RETAIN=1M
mark 2147483648 WEIR_RETAIN=2G
mark unlimited WEIR_RETAIN=unlimited
for value in abc -1 12X 1.5G '64 M' M K 99999999999999999999 18446744073709551615G 0x10 '5 ' +5 64MM; do
  refused "WEIR_RETAIN=$value"
done
refused WEIR_THP=sometimes
refused WEIR_VERBOSE=2
refused WEIR_VERBOSE=yes
for value in default never always; do mark 67108864 WEIR_THP=$value; done
mark 67108864 WEIR_VERBOSE=0
mark 67108864 WEIR_STATS=0

# Names that do not exist, one line each; names that only look alike are not weir's.
run WEIR_RETIAN=1M WEIR_FOO=1 WEIRD=1 XWEIR_RETAIN=1 --
[ "$(wc -l <"$dir/err")" = 2 ] || fail "two unknown names: not two lines"
grep -q '^weir: .*WEIR_RETIAN' "$dir/err" || fail "WEIR_RETIAN is not named"
grep -q '^weir: .*WEIR_FOO' "$dir/err" || fail "WEIR_FOO is not named"
[ "$(cat "$dir/out")" = "mark 67108864" ] || fail "unknown names changed the mark"

# What the operator told glibc counts, and WEIR_RETAIN counts more.
mark 1048576 MALLOC_TRIM_THRESHOLD_=1048576
mark 0 MALLOC_TRIM_THRESHOLD_=0
mark 2097152 GLIBC_TUNABLES=glibc.malloc.trim_threshold=2097152
mark 2097152 GLIBC_TUNABLES=glibc.malloc.arena_max=2:glibc.malloc.trim_threshold=0x200000:glibc.malloc.tcache_count=7
mark 67108864 GLIBC_TUNABLES=glibc.malloc.arena_max=2
mark 1048576 MALLOC_TRIM_THRESHOLD_=1048576 GLIBC_TUNABLES=glibc.malloc.trim_threshold=2097152
mark 3145728 WEIR_RETAIN=3M MALLOC_TRIM_THRESHOLD_=1048576
mark 3145728 WEIR_RETAIN=3M GLIBC_TUNABLES=glibc.malloc.trim_threshold=2097152
mark 67108864 MALLOC_MMAP_THRESHOLD_=1048576 MALLOC_ARENA_MAX=1 MALLOC_TOP_PAD_=0

# The proof that the preload works.
run WEIR_VERBOSE=1 --
[ "$(wc -l <"$dir/err")" = 1 ] || fail "WEIR_VERBOSE=1: not one line"
rest='WEIR_STATS=0 WEIR_RCUTILS_RETAIN=default WEIR_RCUTILS_LIMIT=unlimited'
grep -Eq "^weir [0-9]+\.[0-9]+\.[0-9]+ active: WEIR_RETAIN=64M WEIR_THP=default WEIR_VERBOSE=1 $rest\$" \
  "$dir/err" || fail "WEIR_VERBOSE=1"
run WEIR_VERBOSE=1 WEIR_RETAIN=unlimited WEIR_THP=never --
grep -q 'active: WEIR_RETAIN=unlimited WEIR_THP=never' "$dir/err" || fail "WEIR_VERBOSE=1 with more"

# Reports at exit.
json() {
  if command -v python3 >/dev/null; then
    python3 -m json.tool <"$1" >/dev/null || fail "$1: no JSON"
    python3 - "$1" <<'END' || fail "$1: wrong numbers"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["weir"].count(".") == 2 and report["pid"] > 0
assert 100 * 1024 <= report["live"] < 1 << 21, report["live"]
assert report["mark"] == 64 << 20
blocks = {one["block"]: one for one in report["classes"]}
assert blocks[1024]["live"] >= 100
END
  fi
}
run WEIR_STATS=1 -- live
grep -q live "$dir/err" || fail "WEIR_STATS=1 printed no table"
grep -q retained "$dir/err" || fail "WEIR_STATS=1 printed half a table"
run WEIR_STATS=json -- live
[ "$(wc -l <"$dir/err")" = 1 ] || fail "WEIR_STATS=json: not one line"
json "$dir/err"
run WEIR_STATS=json:"$dir/report" -- live
[ ! -s "$dir/err" ] || fail "WEIR_STATS=json:FILE said something"
json "$dir/report"
run WEIR_STATS=json:"$dir/report" -- live
[ "$(wc -l <"$dir/report")" = 2 ] || fail "WEIR_STATS=json:FILE does not append"
run WEIR_STATS="$dir/table" -- live
grep -q live "$dir/table" || fail "WEIR_STATS=FILE wrote no table"
run WEIR_STATS="json:$dir/of-%p" -- live
name=$(cd "$dir" && echo of-*)
case $name in
  of-*[!0-9]*) fail "WEIR_STATS: %p is not the process" ;;
esac
json "$dir/$name"
grep -q "\"pid\": *${name#of-}[,}]" "$dir/$name" || fail "WEIR_STATS: another process's name"
rm -f "$dir"/of-*
run WEIR_STATS="json:$dir/of-%p" -- fork
[ "$(find "$dir" -name 'of-*' | wc -l)" = 2 ] || fail "WEIR_STATS: a child writes no report of its own"
run WEIR_STATS=/nowhere/at/all -- live
head -n 1 "$dir/err" | grep -q '^weir: .*WEIR_STATS' || fail "WEIR_STATS=/nowhere: no word"
run WEIR_STATS=1 WEIR_VERBOSE=1 -- close
for sink in 1 json; do
  run "WEIR_STATS=$sink" -- replace "$dir/own"
  [ -e "$dir/own" ] && [ ! -s "$dir/own" ] || fail "WEIR_STATS=$sink: wrote into the program's file"
done

# A setuid program: nothing that its user sets may reach it.
if [ "$(id -u)" = 0 ] && [ -x "$secure" ] && cp "$secure" "$dir/secure" 2>/dev/null &&
  chmod 755 "$dir" && chown 65534 "$dir/secure" && chmod 4755 "$dir/secure" &&
  [ "$(env -i "$dir/secure")" = "mark 67108864" ]; then
  # Where the file system ignores the bit there is nothing to see.
  if ! grep -q "$(df -P "$dir" | awk 'NR == 2 { print $6 }') .*nosuid" /proc/mounts; then
    env WEIR_RETAIN=1M WEIR_VERBOSE=1 WEIR_STATS=1 WEIR_FOO=1 MALLOC_TRIM_THRESHOLD_=4096 \
      "$dir/secure" >"$dir/out" 2>"$dir/err"
    [ "$(cat "$dir/out")" = "mark 67108864" ] || fail "setuid: $(cat "$dir/out")"
    [ ! -s "$dir/err" ] || fail "setuid: the environment was read"
  fi
fi
exit $failed
