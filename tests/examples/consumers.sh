#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Part of make installcheck: builds and runs what users build against an installed weir, with make
# and pkg-config, with CMake and with ament_cmake. The examples of doc/examples serve for that. What
# a machine lacks is left out with one line. PKG_CONFIG_PATH holds the folder of the .pc files,
# RCUTILS_FLAGS says how rcutils is used, if it is there, STATIC_FLAG how static programs are linked,
# if they can be.
# Usage: consumers.sh PREFIX LIBDIR
prefix=$1 libdir=$2
examples=$(cd "$srcdir" && pwd)/doc/examples tests=$(cd "$srcdir" && pwd)/tests
version=$("$PKG_CONFIG" --modversion weir) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

# An environment of weir's or ROS's must not help, nor a preload disturb.
unset CMAKE_PREFIX_PATH weir_DIR LD_PRELOAD
unset MAKEFLAGS MFLAGS MAKELEVEL

complain() {
  echo "FAIL $*"
  status=1
}

# quietly WHAT COMMAND...: what it prints is of interest only when it fails.
quietly() {
  what=$1
  shift
  "$@" >"$work/log" 2>&1 && return
  complain "$what"
  tail -n 30 "$work/log"
  return 1
}

# runs WHAT PROGRAM ARGUMENT...: against the installed libraries, as far as it does not find them.
runs() {
  quietly "$1 does not run" env LD_LIBRARY_PATH="$where" "$2" ${3:+"$3"}
}

# 3 is what the real-time example ends with where nothing may be locked.
runs_realtime() {
  env LD_LIBRARY_PATH="$where" "$2" >"$work/log" 2>&1
  case $? in
    0) ;;
    3) echo "left out: $1, for no memory may be locked here" ;;
    *) complain "$1"; cat "$work/log" ;;
  esac
}

# ---- make and pkg-config ----

where=$libdir
mkdir "$work/make"
cp "$examples"/*.c "$examples"/*.cc "$examples/Makefile" "$work/make"
targets="realtime ${CXX:+buffers} ${RCUTILS_FLAGS:+node}"
# shellcheck disable=SC2086  # a list of words
if quietly 'doc/examples/Makefile' make -C "$work/make" CC="$CC" ${CXX:+CXX="$CXX"} \
  WEIR="$("$PKG_CONFIG" "--define-variable=prefix=$prefix" --cflags --libs weir)" \
  ${RCUTILS_FLAGS:+RCUTILS="$RCUTILS_FLAGS"} $targets; then
  for program in $targets; do
    case $program in
      realtime) runs_realtime 'realtime, built with make' "$work/make/realtime" ;;
      *) runs "$program, built with make," "$work/make/$program" ;;
    esac
  done
fi

# ---- CMake ----

if ! command -v cmake >/dev/null; then
  echo "left out: cmake and ament_cmake, for there is no cmake here"
  exit $status
fi
inside=${libdir#"$prefix"}
if test "$inside" = "$libdir" || ! test -d "$prefix/include/weir"; then
  echo "left out: cmake and ament_cmake, which look for weir in one prefix"
  exit $status
fi
export CC CXX

# The files for CMake of ROS's packages run Python, with a module that a virtual environment lacks.
python=
for candidate in "$PYTHON3" /usr/bin/python3; do
  test -n "$python" || ! "$candidate" -c 'import ament_package' 2>/dev/null || python=$candidate
done

# configure WHAT SOURCES FOLDER PREFIX ARGUMENT...
configure() {
  what=$1 sources=$2 folder=$3 found=$4
  shift 4
  quietly "$what" cmake -S "$sources" -B "$folder" -DCMAKE_PREFIX_PATH="$found" \
    -DCMAKE_BUILD_TYPE=Release "$@"
}

# The version file alone: VERSION is offered to who asks for REQUEST, a version or MIN...MAX.
accepts() {
  cat >"$work/version.cmake" <<CMAKE
set(PACKAGE_FIND_VERSION "${1%...*}")
string(REPLACE "." ";" parts "${1%...*}")
list(LENGTH parts PACKAGE_FIND_VERSION_COUNT)
if("$1" MATCHES "[.][.][.]<?(.*)")
  set(PACKAGE_FIND_VERSION_RANGE "$1")
  set(PACKAGE_FIND_VERSION_MIN "${1%...*}")
  set(PACKAGE_FIND_VERSION_MAX "\${CMAKE_MATCH_1}")
  set(PACKAGE_FIND_VERSION_RANGE_MAX INCLUDE)
  if("$1" MATCHES "<")
    set(PACKAGE_FIND_VERSION_RANGE_MAX EXCLUDE)
  endif()
endif()
include("$libdir/cmake/weir/weirConfigVersion.cmake")
if(NOT PACKAGE_VERSION_COMPATIBLE)
  message(FATAL_ERROR "not compatible")
endif()
CMAKE
  cmake -P "$work/version.cmake" >/dev/null 2>&1
}
major=${version%%.*} rest=${version#*.}
minor=${rest%%.*} patch=${rest##*.}
for request in "$version" "$major" "$major.$minor" "$major.$minor...$((major + 1))" \
  "0.0.1...$version"; do
  accepts "$request" || complain "version $version does not serve who asks for $request"
done
for request in "$((major + 1))" "$major.$((minor + 1))" "$major.$minor.$((patch + 1))" \
  "0.0.1...<$version" "$major.$((minor + 1))...9"; do
  accepts "$request" && complain "version $version serves who asks for $request"
done
if test "$major" = 0 && test "$minor" -gt 0; then
  accepts "0.$((minor - 1))" && complain "version $version serves who asks for 0.$((minor - 1))"
fi

# Every target, where it was installed, and in a tree that was moved since.
wanted=
for target in weir weir_malloc weir_rcutils; do
  test ! -e "$libdir/lib$target.so" || wanted="$wanted;$target"
  test ! -e "$libdir/lib$target.a" || wanted="$wanted;${target}_static"
done
mkdir -p "$work/moved$inside"
cp -R "$prefix/include" "$work/moved"
cp -R "$libdir/cmake" "$libdir"/libweir* "$work/moved$inside"
for place in "$prefix" "$work/moved"; do
  where=$place$inside
  test "$place" = "$prefix" || wanted=weir
  folder=$work/targets${place#"$prefix"}
  configure "find_package(weir) in $place" "$tests/examples" "$folder" "$place" \
    -DPLACE="$place" -DWANTED="$wanted" -DSOURCE="$tests/api/installed.c" \
    -DSTATIC_FLAG="$STATIC_FLAG" || continue
  quietly "weir's targets in $place" cmake --build "$folder" || continue
  for target in $(echo "$wanted" | tr ';' ' '); do
    test "$target" = weir_rcutils || runs "$target in $place" "$folder/$target" "$version"
  done
done
where=$libdir

# The examples. Without ROS's module they cannot look for rcutils.
ros=-DCMAKE_DISABLE_FIND_PACKAGE_rcutils=ON
test -z "$python" || ros=-DPython3_EXECUTABLE=$python
if test -z "$CXX"; then
  echo "left out: the examples with CMake, for there is no C++ compiler here"
elif configure 'doc/examples/CMakeLists.txt' "$examples" "$work/cmake" "$prefix" \
  "$ros" &&
  quietly 'the examples with CMake' cmake --build "$work/cmake"; then
  for program in buffers ${RCUTILS_FLAGS:+${python:+node}}; do
    runs "$program, built with CMake," "$work/cmake/$program"
  done
fi

# ---- ament ----

if test ! -e "$libdir/libweir_malloc.so" || test -z "$RCUTILS_FLAGS" || test -z "$python"; then
  echo "left out: the package of ament_cmake, which needs libweir_malloc, rcutils and ament_package"
  exit $status
fi
if cmake -S "$examples/ament" -B "$work/ament" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_INSTALL_PREFIX="$work/workspace" "$ros" >"$work/log" 2>&1; then
  quietly 'the package of ament_cmake' cmake --build "$work/ament" --target install &&
    LD_LIBRARY_PATH="$work/workspace/lib:$libdir" \
      quietly 'the node of the package' "$work/workspace/lib/weir_example/camera"
  test -r "$work/workspace/share/weir_example/cmake/weir_exampleConfig.cmake" ||
    complain 'the package of ament_cmake exports nothing'
elif grep -q 'provided by "ament_cmake" with' "$work/log"; then
  echo "left out: the package of ament_cmake, which is not here"
else
  complain 'the package of ament_cmake'
  tail -n 30 "$work/log"
fi
exit $status
