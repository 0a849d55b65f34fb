#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Counts the instructions of the common paths with valgrind's callgrind, and compares them with those
# of instructions.golden: none may take over two more (and one in a thousand). With --update it shows what the file should
# hold instead. Skipped where valgrind is missing, and under another compiler or in another build
# than the file is for.

bin=${REPLACE_BIN:-tests/replace}
so=${REPLACE_SO:?"set by run.sh"}
golden=${srcdir:-.}/tests/replace/instructions.golden
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

build() { # what the counts depend on
  # shellcheck disable=SC2086  # CC may be a command with arguments
  echo "# $(${CC:-gcc} -dumpfullversion 2>/dev/null) $(${CC:-gcc} -dumpmachine 2>/dev/null)" \
    "${BUILD_FLAGS:-}"
}

valgrind --version >/dev/null 2>&1 || { echo "valgrind is not installed"; exit 77; }
build >"$work/here"
if test "$1" != --update && ! head -n 1 "$golden" | cmp -s - "$work/here"; then
  echo "the counts are not for this build:"
  cat "$work/here"
  exit 77
fi

# total PROGRAM OPERATION COUNT: the instructions of the whole program
total() {
  EXPECT_WEIR=1 LD_PRELOAD="$so" valgrind --tool=callgrind --callgrind-out-file=/dev/null \
    "$1" "$2" "$3" 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

cat "$work/here" >"$work/got"
left_out=
for program in "$bin/instructions" "$bin/instructions_cxx"; do
  test -x "$program" || { echo "left out: $program, which was not built"; left_out=1; continue; }
  EXPECT_WEIR=1 LD_PRELOAD="$so" "$program" >"$work/names" || exit 1
  while read -r name; do
    few=$(total "$program" "$name" 1000)
    many=$(total "$program" "$name" 3000)
    # Of one operation with the loop around it, rounded.
    echo "$name $(((many - few + 1000) / 2000))"
  done <"$work/names" >>"$work/got"
done

test "$1" = --update && cat "$work/got" && exit
awk -v left_out="$left_out" '
  NR == FNR { want[$1] = $2; next }
  /^#/ { next }
  !($1 in want) { print "FAIL " $1 " is not in the golden file"; bad = 1; next }
  { slack = 2 + want[$1] / 1000 }
  $2 > want[$1] + slack { print "FAIL " $1 ": " $2 " instructions instead of " want[$1]; bad = 1 }
  $2 < want[$1] - slack { print $1 ": " $2 " instructions, fewer than " want[$1]; better = 1 }
  { delete want[$1] }
  END {
    for (name in want) if (name != "#" && !left_out) { print "FAIL " name " was not counted"; bad = 1 }
    if (better && !bad) print "instructions.golden should say so"
    exit bad
  }' "$golden" "$work/got" && exit
echo "what was counted:"
cat "$work/got"
exit 1
