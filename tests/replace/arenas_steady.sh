#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Counts the memory system calls of arenas with strace: none from the first block on in one that
# was made resident at creation, and none at all in the lives of arenas in buffers. Skipped where
# strace is missing or may not trace.

bin=${REPLACE_BIN:-tests/replace}
so=${REPLACE_SO:?"set by run.sh"}
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
failed=0
memory=brk,mmap,munmap,madvise,mprotect,mremap,mlock,mlock2,munlock,mincore

strace -f -o "$log" -e trace=brk true 2>/dev/null || { echo "strace cannot run here"; exit 77; }

# Where 32 MiB cannot be locked, arenas_steady.preload itself says so.
cases='prefaulted in_a_buffer'
env LD_PRELOAD="$so" "$bin/arenas_steady.preload" locked 2>/dev/null &&
  cases="$cases locked locked_without_mark other_blocks resets"

for case in $cases; do
  # The program alone gets the library, strace itself does not.
  strace -f -o "$log" -e "trace=$memory,close" -E LD_PRELOAD="$so" -E EXPECT_WEIR=1 \
    "$bin/arenas_steady.preload" $case 2>/dev/null
  calls=$(awk '/close\(-4242\)/ { marks++; next }
    marks % 2 == 1 && !/close\(/ && / [a-z0-9]+\(/ { n++; print > "/dev/stderr" }
    END { if (marks < 2 || marks % 2) print "marks: " marks + 0; else print n + 0 }' "$log")
  [ "$calls" = 0 ] || { echo "FAIL $case: $calls calls"; failed=1; }
done
exit $failed
