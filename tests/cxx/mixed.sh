#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# weir::memory_resource in one process in code with and without types at run time, and in libraries
# that are loaded apart: see mixed.cc.
test -n "$CXX" || { echo 'no C++ compiler'; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
echo '#include <memory_resource>' >"$work/probe.cc"
# shellcheck disable=SC2086  # a compiler with its flags
$CXX -std=c++17 -fsyntax-only "$work/probe.cc" 2>/dev/null ||
  { echo 'the C++ library has no <memory_resource>'; exit 77; }

source=$srcdir/tests/cxx/mixed.cc
build() {
  # shellcheck disable=SC2086
  $CXX -std=c++17 -O1 -Wall -Wextra -Werror -I"$srcdir/include" "$@" \
    -L.libs -lweir -Wl,-rpath,"$PWD/.libs" -ldl
}

build -DLIBRARY -fPIC -shared -fvisibility=hidden -o "$work/typed.so" "$source" &&
  build -DLIBRARY -fPIC -shared -fvisibility=hidden -fno-rtti -o "$work/untyped.so" "$source" &&
  $CXX -std=c++17 -O1 -I"$srcdir/include" -DUNTYPED -fno-rtti -c -o "$work/part.o" "$source" &&
  build -o "$work/program" "$source" "$work/part.o" &&
  "$work/program" "$work/typed.so" "$work/untyped.so"
