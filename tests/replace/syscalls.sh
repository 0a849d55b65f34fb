#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Counts the memory system calls of the steady part of payload loops with strace: there must be
# none, whatever the size, the number of live buffers and the thread that frees. Skipped where
# strace is missing or may not trace.

bin=${REPLACE_BIN:-tests/replace}
so=${REPLACE_SO:?"set by run.sh"}
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
failed=0
memory=brk,mmap,munmap,madvise,mprotect,mremap

strace -f -o "$log" -e trace=brk true 2>/dev/null || { echo "strace cannot run here"; exit 77; }
# The program alone gets the library, strace itself does not.
count() {
  strace -f -o "$log" -e "trace=$memory,close" -E LD_PRELOAD="$so" -E "${REPLACE_EXPECT-EXPECT_WEIR}=1" \
    "$bin/steady" "$@" || return 1
  awk '/close\(-4242\)/ { marks++; next }
       marks == 1 && / (brk|mmap|munmap|madvise|mprotect|mremap)\(/ { n++; print > "/dev/stderr" }
       END { if (marks != 2) print "marks: " marks + 0; else print n + 0 }' "$log"
}

for size in 64 4096 65536 262144 1048576 4194304 7864320 8388672; do
  for live in 1 2 4; do
    for mode in plain copy thread; do
      # A third of the grid: each size, number and mode still meets every other one or two times.
      case $size$live$mode in
        *4194304[12]*|262144[24]*|643*|*1048576*|*2thread|*2plain|*4copy) ;;
        *) continue ;;
      esac
      calls=$(count $size $live $mode)
      [ "$calls" = 0 ] || { echo "FAIL $size bytes, $live live, $mode: $calls calls"; failed=1; }
    done
  done
done
exit $failed
