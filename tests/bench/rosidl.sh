#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Messages in C as rosidl generates them: under weir the steady part has no page fault and no memory
# system call, whatever the size. Under the C library as it comes, large ones fault in every
# iteration, or this test could not fail. Skipped where bench/rosidl was not built.
so=${REPLACE_SO:?"set by run.sh"}
test -x bench/rosidl || { echo 'bench/rosidl was not built'; exit 77; }
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
failed=0

complain() {
  echo "FAIL $*"
  failed=1
}

faults() { # PRELOAD SIZE: those of an iteration
  LD_PRELOAD="$1" bench/rosidl --size "$2" --iterations 30 |
    sed -n 's/.*"faults_per_iteration":\([0-9.]*\).*/\1/p'
}

calls() { # SIZE: how many in the steady part; the library is preloaded to the program alone
  strace -f -qq -o "$log" -e trace=brk,mmap,munmap,madvise,mprotect,mremap,getpriority \
    -e signal=none -E LD_PRELOAD="$so" bench/rosidl --size "$1" --iterations 30 >/dev/null ||
    return 1
  # The marks are process ids: "weir" and "weis".
  awk '/getpriority\(PRIO_PROCESS, 2003134834\)/ { marks++; steady = 1; next }
       /getpriority\(PRIO_PROCESS, 2003134835\)/ { marks++; steady = 0; next }
       steady && / (brk|mmap|munmap|madvise|mprotect|mremap)\(/ { n++; print > "/dev/stderr" }
       END { if (marks != 2) print "marks: " marks + 0; else print n + 0 }' "$log"
}

traces=yes
strace -f -o "$log" -e trace=brk true 2>/dev/null || {
  echo 'strace cannot run here: calls are not counted'
  traces=no
}
for size in 64 100K 1M 3M; do
  found=$(faults "$so" $size)
  test "$found" = 0.0000 || complain "$size under weir: ${found:-no} faults an iteration"
  test $traces = yes || continue
  found=$(calls $size)
  test "$found" = 0 || complain "$size under weir: ${found:-no} calls"
done
found=$(faults '' 1M)
case $found in
  '' | 0.* | ?.*) complain "1M under the C library's malloc: ${found:-no} faults an iteration" ;;
  *) echo "the C library's malloc: $found faults an iteration of 1M" ;;
esac
exit $failed
