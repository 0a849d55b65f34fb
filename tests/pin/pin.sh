#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# weir_glibc_pin in every kind of program, under every malloc, and under each setting of an operator:
# what it says is so, and what it says it left alone is as it is in the same program without the
# call. Other mallocs are tried where they are installed. CC builds the programs.
so=${REPLACE_SO:?"set by run.sh"}
libraries=$PWD/.libs
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
fail() {
  echo "FAIL $*"
  failed=1
}

MIB=1048576
SIZE=$((16 * MIB))

# build NAME FLAG...: pin.c as $work/NAME, without a word from compiler and linker.
build() {
  name=$1
  shift
  # shellcheck disable=SC2086  # CC is a list of words
  $CC -I"$srcdir/include" -O1 -fno-builtin -o "$work/$name" "$srcdir/tests/pin/pin.c" "$@" -lpthread \
    >"$work/said" 2>&1 && [ ! -s "$work/said" ] || fail "$name cannot be built: $(cat "$work/said")"
}

# run PROGRAM SETTING... [-- ARGUMENT...]: what it prints.
run() {
  program=$1 settings=
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    settings="$settings '$1'"
    shift
  done
  [ $# = 0 ] || shift
  eval "timeout 60 env $settings '$work/$program'" '"$@"'
}

# sets PROGRAM SETTING...: both thresholds are set, and do what they are for: no fault from then on.
sets() {
  got=$(run "$@" -- $SIZE)
  case $got in
    "SET "*" 0 0 0 $mark") ;;
    *) fail "$*: '$got', not SET and no more faults" ;;
  esac
}

# leaves RESULT BYTES PROGRAM SETTING...: that is the result, and all is as without the call.
leaves() {
  result=$1 bytes=$2
  shift 2
  got=$(run "$@" -- "$bytes")
  want=$(run "$@")
  [ "$got" = "$result ${want#none }" ] && [ -n "$want" ] ||
    fail "$*: '$got', not $result and '$want'"
}

# says RESULT PROGRAM SETTING...: that is the result, whatever else is to be seen.
says() {
  result=$1
  shift
  got=$(run "$@" -- $SIZE)
  [ "${got%% *}" = "$result" ] || fail "$*: '$got', not $result"
}

# ---- glibc's malloc, in a program that is linked with libweir ----

build dynamic -L"$libraries" -lweir -Wl,-rpath,"$libraries"
probe=$(run dynamic) || { echo "this is not glibc: '$probe'"; exit 77; }
mark=${probe##* }
case $probe in
  'none 0 '*) fail "glibc makes no faults without the call: '$probe'" ;;
esac

sets dynamic
for bytes in $((2 * MIB)) $((32 * MIB)); do
  got=$(run dynamic -- "$bytes")
  case $got in
    "SET "*) ;;
    *) fail "$bytes bytes: '$got'" ;;
  esac
done
for bytes in 0 $((32 * MIB + 1)) $((64 * MIB)) $((1 << 31)) $((1 << 32)) $(((1 << 32) + SIZE)) \
  18446744073709551615; do
  leaves FAILED "$bytes" dynamic
done

# ---- the operator's settings ----

for setting in MALLOC_MMAP_THRESHOLD_=8388608 MALLOC_MMAP_THRESHOLD_=131072 \
  MALLOC_TRIM_THRESHOLD_=8388608 MALLOC_TRIM_THRESHOLD_=-1 MALLOC_TOP_PAD_=8388608 \
  MALLOC_MMAP_MAX_=0 MALLOC_MMAP_MAX_=65536 \
  GLIBC_TUNABLES=glibc.malloc.mmap_threshold=8388608 \
  GLIBC_TUNABLES=glibc.malloc.trim_threshold=0x800000 \
  GLIBC_TUNABLES=glibc.malloc.top_pad=8388608 \
  GLIBC_TUNABLES=glibc.malloc.mmap_max=0 \
  GLIBC_TUNABLES=glibc.malloc.arena_max=2:glibc.malloc.top_pad=4096:glibc.malloc.tcache_count=7; do
  leaves OPERATOR $SIZE dynamic "$setting"
  leaves OPERATOR $((64 * MIB)) dynamic "$setting"
done
leaves OPERATOR $SIZE dynamic MALLOC_MMAP_THRESHOLD_=8388608 MALLOC_TRIM_THRESHOLD_=8388608

# What is about something else, and what only looks alike.
for setting in MALLOC_ARENA_MAX=1 MALLOC_PERTURB_=0 MALLOC_TOP_PAD=4096 MALLOC_TRIM_THRESHOLD_X=1 \
  XMALLOC_MMAP_MAX_=0 GLIBC_TUNABLES= GLIBC_TUNABLES=glibc.malloc.arena_max=1 \
  GLIBC_TUNABLES=glibc.malloc.mmap_threshold_hint=1 GLIBC_TUNABLES=glibc.malloc.top_pad; do
  sets dynamic "$setting"
done

# ---- other mallocs ----

others=
for name in libjemalloc.so.2 libmimalloc.so.2 libmimalloc.so.3 libtcmalloc_minimal.so.4; do
  if [ "$(LD_PRELOAD=$name sh -c : 2>&1)" = "" ]; then others="$others $name"; fi
done
echo "other mallocs:${others:- none}"
for name in $others; do
  leaves NOT_GLIBC $SIZE dynamic LD_PRELOAD="$name"
  leaves NOT_GLIBC $SIZE dynamic LD_PRELOAD="$name" MALLOC_TOP_PAD_=4096
done
# The call comes to libweir_malloc's copy then, whose mallopt would move the mark.
leaves WEIR $SIZE dynamic LD_PRELOAD="$so"
leaves WEIR $SIZE dynamic LD_PRELOAD="$so" MALLOC_TRIM_THRESHOLD_=8388608
for name in $others; do
  # The first of two is the one.
  leaves NOT_GLIBC $SIZE dynamic LD_PRELOAD="$name:$so"
  leaves WEIR $SIZE dynamic LD_PRELOAD="$so:$name"
done

build own -DOWN_MALLOC -L"$libraries" -lweir -Wl,-rpath,"$libraries"
says NOT_GLIBC own
build linked -L"$libraries" -lweir_malloc -Wl,-rpath,"$libraries"
leaves WEIR $SIZE linked
build both -Wl,--no-as-needed -L"$libraries" -lweir -lweir_malloc -Wl,-rpath,"$libraries"
leaves WEIR $SIZE both

# ---- a program with fixed addresses that takes the address of malloc ----

build fixed -DTAKES_ADDRESS -fno-pie -no-pie -L"$libraries" -lweir -Wl,-rpath,"$libraries"
run fixed >"$work/out"
if [ $? != 2 ]; then # else this processor's programs do not do that
  sets fixed
  leaves FAILED 0 fixed
  leaves OPERATOR $SIZE fixed MALLOC_TOP_PAD_=4096
  leaves WEIR $SIZE fixed LD_PRELOAD="$so"
  for name in $others; do leaves NOT_GLIBC $SIZE fixed LD_PRELOAD="$name"; done
fi

# ---- weir's archives ----

if [ -e .libs/libweir.a ]; then
  build archive .libs/libweir.a
  sets archive
  leaves OPERATOR $SIZE archive MALLOC_TOP_PAD_=4096
  leaves WEIR $SIZE archive LD_PRELOAD="$so"
  for name in $others; do leaves NOT_GLIBC $SIZE archive LD_PRELOAD="$name"; done
  build archive_weir -Wl,-u,malloc .libs/libweir_malloc.a
  leaves WEIR $SIZE archive_weir
fi
# shellcheck disable=SC2086
if [ -e .libs/libweir.a ] && echo 'int main(void) { return 0; }' |
  $CC -static -x c -o "$work/probe" - 2>"$work/out"; then
  for kind in -static -static-pie; do
    build static -DSTATIC $kind .libs/libweir.a
    sets static
    leaves FAILED $((64 * MIB)) static
    leaves OPERATOR $SIZE static MALLOC_TOP_PAD_=4096
    build static_own -DSTATIC -DOWN_MALLOC $kind .libs/libweir.a
    says NOT_GLIBC static_own
    build static_weir -DSTATIC $kind -Wl,-u,malloc .libs/libweir_malloc.a
    leaves WEIR $SIZE static_weir
  done

  # glibc does not listen to the user of a setuid program, whose choice is therefore none.
  build secure -DSTATIC -static .libs/libweir.a
  # Where the file system ignores the bit there is nothing to see.
  if [ "$(id -u)" = 0 ] && chmod 755 "$work" && chown 65534 "$work/secure" &&
    chmod 4755 "$work/secure" &&
    ! grep -q "$(df -P "$work" | awk 'NR == 2 { print $6 }') .*nosuid" /proc/mounts; then
    sets secure MALLOC_TOP_PAD_=4096 GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072
  fi
fi
exit $failed
