#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Part of make installcheck: builds and runs a user's programs against what was installed, as
# pkg-config describes it. PKG_CONFIG_PATH holds the folder of the .pc files, REPLACE says whether
# libweir_malloc was installed, STATIC_FLAG how static programs are linked, if they can be, and CXX
# is empty where C++ cannot be compiled.
# Usage: installed.sh PREFIX LIBDIR
prefix=$1 libdir=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

# try WHAT PACKAGE FLAG...: build with pkg-config's flags and those, and run.
try() {
  try_with "$CC -fno-builtin-malloc" "$srcdir/tests/api/installed.c" "$@"
}

# try_with COMPILER SOURCE WHAT PACKAGE FLAG...
try_with() {
  compiler=$1 source=$2 what=$3 package=$4
  shift 4
  # shellcheck disable=SC2086  # the compiler and the flags are lists of words
  version=$("$PKG_CONFIG" --modversion "$package") &&
    flags=$("$PKG_CONFIG" "--define-variable=prefix=$prefix" --cflags --libs "$package") &&
    $compiler "$@" -o "$work/program" "$source" $flags &&
    LD_LIBRARY_PATH=$libdir "$work/program" "$version" && return
  echo "$what: the program cannot be built, or fails"
  status=1
}

try 'shared libweir' weir
test -z "$CXX" || try_with "$CXX" "$srcdir/tests/api/installed.cc" 'libweir from C++' weir
if test "$REPLACE" = yes; then
  try 'shared libweir_malloc' weir_malloc -DREPLACED
  test -z "$STATIC_FLAG" || try 'static libweir_malloc' weir_malloc -DREPLACED "$STATIC_FLAG"
fi
exit $status
