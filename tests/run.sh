#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs one test in the way that the ending of its name tells, with none of weir's or the C library's
# own settings in the environment:
#   NAME.preload                  under the library that PRELOAD names
#   NAME.linked .static .pie      as it is: it holds weir, or says that it fails
#   SCRIPT.sh                     by the shell; it finds the library's path in REPLACE_SO and the
#                                 programs it starts in REPLACE_BIN
#   anything else                 as it is
# Usage: PRELOAD=libweir_malloc.so run.sh TEST [ARGUMENT...]

REPLACE_SO=${PRELOAD:?"the path of libweir_malloc.so"}
case $REPLACE_SO in /*) ;; *) REPLACE_SO=$PWD/$REPLACE_SO ;; esac
REPLACE_BIN=${REPLACE_BIN:-tests/replace}
export REPLACE_SO REPLACE_BIN
unset PRELOAD WEIR_RETAIN WEIR_THP WEIR_VERBOSE WEIR_STATS WEIR_RCUTILS_RETAIN WEIR_RCUTILS_LIMIT
unset MALLOC_TRIM_THRESHOLD_ MALLOC_MMAP_THRESHOLD_ MALLOC_TOP_PAD_ MALLOC_MMAP_MAX_ MALLOC_ARENA_MAX
unset GLIBC_TUNABLES

program=$1
shift
case $program in
  *.sh) exec sh "$program" "$@" ;;
  *.preload) exec env EXPECT_WEIR=1 LD_PRELOAD="$REPLACE_SO" "$program" "$@" ;;
  *.linked | *.static | *.pie) exec env EXPECT_WEIR=1 "$program" "$@" ;;
  *) exec "$program" "$@" ;;
esac
