#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every file of src/ has a place in src/layers and includes only what stands after it there; the
# files of src/replace and src/adapter stand above all of them and see the front and, of the rest,
# what answers without knowing the allocator; those of src/adapter also the options (init).
cd "$srcdir/src" || exit 1
awk '
  function complain(text) { print FILENAME ": " text; bad = 1 }
  function stem_of(file) {  # os_linux.c stands where os does, unless it has a line of its own
    sub(/\.[ch]$/, "", file)
    if (!(file in place)) sub(/_[a-z0-9]+$/, "", file)
    return file
  }
  NR == FNR { if (NF && $1 !~ /^#/) place[$1] = NR; next }
  FNR == 1 { stem = stem_of(FILENAME); seen[stem] = 1 }
  FNR == 1 && !(stem in place) { complain("has no line in src/layers") }
  /^ *# *include *"[^"]*\.h"/ {
    split($0, quoted, "\"")
    to = stem_of(quoted[2])
    if (!(to in place)) complain("includes " quoted[2] ", which has no line in src/layers")
    else if (place[to] < place[stem]) complain("includes " quoted[2] ", which stands above it")
  }
  END {
    for (stem in place) if (!(stem in seen)) { print "src/layers: no file is called " stem; bad = 1 }
    exit bad
  }' layers *.c *.h || exit 1
status=0
grep -nE '^ *# *include *"' replace/*.[ch] | grep -vE '"\.\./(weir|misuse|os|attr)\.h"' && status=1
grep -nE '^ *# *include *"' adapter/*.[ch] |
  grep -vE '"(\.\./(weir|misuse|os|attr|init)|[a-z0-9_]+)\.h"' && status=1
exit $status
