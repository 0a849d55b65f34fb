#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Messages in C as rosidl generates them: under weir the steady part has no page fault and no memory
# system call, whatever the size. Under the C library as it comes, large ones fault in every
# iteration, or this test could not fail. Skipped where bench/rosidl was not built.
so=${REPLACE_SO:?"set by run.sh"}
test -x bench/rosidl || { echo 'bench/rosidl was not built'; exit 77; }
. "$srcdir/tests/bench/lib.sh"

faults() { # PRELOAD SIZE: those of an iteration
  LD_PRELOAD="$1" bench/rosidl --size "$2" --iterations 30 |
    sed -n 's/.*"faults_per_iteration":\([0-9.]*\).*/\1/p'
}

for size in 64 100K 1M 3M; do
  found=$(faults "$so" $size)
  test "$found" = 0.0000 || complain "$size under weir: ${found:-no} faults an iteration"
  is_still bench/rosidl --size $size --iterations 30
done
found=$(faults '' 1M)
case $found in
  '' | 0.* | ?.*) complain "1M under the C library's malloc: ${found:-no} faults an iteration" ;;
  *) echo "the C library's malloc: $found faults an iteration of 1M" ;;
esac
exit $failed
