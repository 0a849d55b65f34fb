#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What bench/burst sees over time is a burst, and after it the mark. bench/plot draws what a file has
# figures for, in one line says why it cannot, and draws the same picture from the same figures: also
# those of doc/plots from the figures beside them.
so=${REPLACE_SO:?"set by run.sh"}
# Itself, not a script in the search path that looks for it there: that is emptied below.
python=$("${PYTHON3:-python3}" -c 'import sys; print(sys.executable)') || exit 1
. "$srcdir/tests/bench/lib.sh"

plot() {
  "$python" "$srcdir/bench/plot" "$@" >"$work/out" 2>"$work/err"
}

refuses() { # STATUS WORD ARGUMENT...: one line that has the word
  want=$1 word=$2
  shift 2
  plot "$@"
  status=$?
  test $status = "$want" && test "$(wc -l <"$work/err")" = 1 && grep -q "$word" "$work/err" &&
    return
  complain "plot $*: status $status"
  cat "$work/err"
}

# 128 MiB under a mark of 64: before the burst little, the whole while it is held, then the mark.
LD_PRELOAD="$so" timeout 60 bench/burst --total 128M --block 1M --lead-ms 100 --hold-ms 300 \
  --settle-ms 200 --sample-ms 5 >"$work/burst" || complain "burst: status $?"
"$python" - "$work/burst" <<'PYTHON' || complain 'burst: its timeline, above'
import json, sys
line = json.load(open(sys.argv[1]))["timeline"]
ms, kib, full, freeing, freed = (
    line[key] for key in ("ms", "rss_kib", "full_ms", "freeing_ms", "freed_ms"))
def between(low, high):
    return [rss for at, rss in zip(ms, kib) if low < at < high]
lead, held, rest = between(-1e9, 0), between(full, freeing), between(freed, 1e9)
print(len(ms), full, freed, lead, held, rest)
assert len(ms) == len(kib) and ms == sorted(ms) and 0 < full <= freeing - 300 < freed
assert lead and held and rest
assert max(lead) < 16 << 10 and max(kib) < 160 << 10
assert min(held) >= 128 << 10, "the burst is resident while it is held"
assert all(60 << 10 <= rss <= 80 << 10 for rss in rest[1:]), "what stays is the mark"
PYTHON
bench/burst --total 1M --settle-ms 0 | grep -q timeline && complain 'burst: a timeline unasked'

echo '{' >"$work/broken"
echo '{"arms": {}}' >"$work/other"
echo '{"suite": "quick", "reps": 1, "machine": {}, "arms": {}, "cells": []}' >"$work/empty"
echo '{"suite": "plots", "reps": 1, "machine": {}, "arms": {"weir": {}}, "cells": [
  {"workload": "cliffs", "cell": "x", "arms": {"weir": {"metrics": {}}}}]}' >"$work/odd"
refuses 2 'json'
refuses 2 'no-such' --json "$work/empty" --no-such
refuses 2 'cannot be read' --json "$work/missing"
refuses 2 'cannot be read' --json "$work/broken"
refuses 2 'not a file that' --json "$work/other"
refuses 2 'not a file that' --json "$work/odd"
refuses 1 'nothing to draw' --json "$work/empty"
plot --help || complain 'plot --help'
grep -q 'resident memory' "$work/out" || complain 'plot --help: its text'
PATH="$work" "$python" "$srcdir/bench/plot" --json "$srcdir/tests/bench/plot.json" 2>"$work/err"
status=$?
test $status = 1 && test "$(cat "$work/err")" = \
  "plot: gnuplot is not installed (Debian's package: gnuplot-nox)" ||
  { complain "plot without gnuplot: status $status"; cat "$work/err"; }

if ! command -v gnuplot >/dev/null; then
  test $failed = 0 || exit 1
  echo 'no gnuplot: nothing was drawn'
  exit 77
fi

plot --json "$work/empty" --json "$srcdir/tests/bench/plot.json" --out "$work/first" ||
  { complain plot; cat "$work/err"; }
for name in p50 cliffs timeline; do
  plot --json "$work/first/$name.json" --out "$work/second" || complain "plot $name.json"
  "$python" - "$work/first/$name" <<'PYTHON' || complain "$name: its pictures"
import struct, sys, xml.dom.minidom
svg = open(sys.argv[1] + ".svg", encoding="utf-8").read()
xml.dom.minidom.parseString(svg)
assert ">glibc<" in svg and ">weir<" in svg and "Some Linux, kernel 6.1" in svg, svg[:500]
assert "#ffffff" in svg, "a background"
png = open(sys.argv[1] + ".png", "rb").read()
assert png[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", png[16:24]) == (1440, 960)
PYTHON
done
test "$(ls "$work/first" | wc -l)" = 9 || complain "9 files: $(ls "$work/first")"
"$python" - "$work/first/timeline.json" <<'PYTHON' || complain 'timeline: not the run in the middle'
import json, sys
runs = json.load(open(sys.argv[1]))["cells"][0]["arms"]["weir"]["series"]["timeline"]
assert [run["rss_kib"][-1] for run in runs] == [67000], runs
PYTHON
diff -r "$work/first" "$work/second" || complain 'the same figures, another picture'
plot --json "$work/first/cliffs.json" --out "$work/alone" || complain 'plot cliffs.json'
test "$(ls "$work/alone" | wc -l)" = 3 || complain "3 files: $(ls "$work/alone")"
refuses 2 'out' --json "$srcdir/tests/bench/plot.json" --out "$work/empty/folder"

# Another gnuplot may draw another way; what it is stands in its pictures.
for figures in "$srcdir"/doc/plots/*.json; do
  name=$(basename "$figures" .json)
  plot --json "$figures" --out "$work/doc" || { complain "plot $figures"; cat "$work/err"; }
  cmp "$figures" "$work/doc/$name.json" || complain "$figures is not what plot writes"
  version=$(grep -o 'Produced by GNUPLOT [0-9.]* patchlevel [0-9]*' "$work/doc/$name.svg")
  grep -q "$version" "$srcdir/doc/plots/$name.svg" || continue
  cmp "$srcdir/doc/plots/$name.svg" "$work/doc/$name.svg" ||
    complain "doc/plots/$name.svg is not of doc/plots/$name.json; bench/plot draws it"
done
exit $failed
