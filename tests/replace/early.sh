#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Use of malloc before weir's constructor ran: by the program's .preinit_array, and by another
# preloaded library that hooks what an allocator calls, in both orders of the preload list.
# REPLACE_HOOKS is the path of that library, hooks.so.

bin=${REPLACE_BIN:-tests/replace}
so=${REPLACE_SO:?"set by run.sh"}
hooks=${REPLACE_HOOKS:-$bin/hooks.so}
[ -e "$hooks" ] || hooks=$bin/.libs/hooks.so
[ -e "$hooks" ] || { echo "no $hooks"; exit 1; }
failed=0

for list in "$so" "$hooks:$so" "$so:$hooks"; do
  for program in "$bin/early" "$bin/steady 1048576 2 thread" /bin/true; do
    # shellcheck disable=SC2086  # the program and its arguments
    timeout 60 env "${REPLACE_EXPECT-EXPECT_WEIR}=1" LD_PRELOAD="$list" $program ||
      { echo "FAIL $program under $list: $?"; failed=1; }
  done
done
exit $failed
