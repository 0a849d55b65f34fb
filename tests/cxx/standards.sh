#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program that uses all of weir/memory_resource.hpp compiles by every standard of C++ from 11 on,
# with and without exceptions and types at run time, without a warning; with the compiler of the
# build, and with clang where there is one. A standard that a compiler does not know is left out.
test -n "$CXX" || { echo 'no C++ compiler'; exit 77; }
status=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
echo 'int main() {}' >"$work/empty.cc"

# try COMPILER FLAG...
try() {
  # shellcheck disable=SC2086  # a compiler with its flags
  compiler=$1
  shift
  $compiler "$@" -fsyntax-only -Wall -Wextra -Wshadow -Wundef -Wnon-virtual-dtor \
    -Woverloaded-virtual -pedantic -Werror -I"$srcdir/include" "$srcdir/tests/cxx/plain.cc" && return
  echo "tests/cxx/plain.cc does not compile with $compiler $*"
  status=1
}

try_all() {
  tried=0
  for standard in 11 14 17 20 2b; do
    # shellcheck disable=SC2086
    $1 -std=c++$standard -fsyntax-only "$work/empty.cc" 2>/dev/null || continue
    tried=$((tried + 1))
    try "$1" -std=c++$standard
    try "$1" -std=c++$standard -fno-exceptions -fno-rtti
    test $standard != 17 || {
      try "$1" -std=c++17 -fno-exceptions
      try "$1" -std=c++17 -fno-rtti
    }
  done
  test $tried -gt 0 && return
  echo "$1 knows no standard of C++"
  status=1
}

try_all "$CXX"
case $CXX in
  *clang*) ;;
  *) if command -v clang++ >/dev/null 2>&1; then try_all clang++; fi ;;
esac
exit $status
