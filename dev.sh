#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh Debian 12 or Ubuntu 22.04 (or later) to a build, a passed check or a comparison.
set -euo pipefail
cd "$(dirname "$0")"

usage() {
  cat <<'USAGE'
usage: ./dev.sh COMMAND

  build              build weir in build/
  check              build and run all tests: as it is delivered, with all internal checks, under
                     the address, undefined-behaviour and thread sanitizers, and make distcheck
  compare [ARG...]   build, and run the benchmarks under several allocators side by side; the
                     arguments go to bench/compare (--help tells which there are)
  messages [ARG...]  the same with two endpoints that pass messages over real middleware: build
                     with all that this needs, and run bench/compare --suite messages

What is needed is installed first, from the distribution's packages (as root or with sudo).
What each step prints goes to build/logs/.
USAGE
}

# ---- packages; where names differ between releases, the first that exists is taken ----

build_packages=(gcc g++ make autoconf automake libtool pkg-config libc6-dev)
check_packages=(check libjansson-dev strace python3)
other_mallocs=(libjemalloc2 'libmimalloc2.0|libmimalloc3|libmimalloc2' \
  'libtcmalloc-minimal4|libtcmalloc-minimal4t64')
# What the beds are built with and run: benchmarks over real middleware (m4/beds.m4).
bed_packages=(libfastcdr-dev libjansson-dev cyclonedds-dev cyclonedds-tools libfastrtps-dev \
  librcutils-dev librosidl-runtime-c-cpp-dev rosidl-generator-c-cpp rosidl-tools python3-ament-index)
# ROS 1, whose packages are many and of which no test needs any.
ros1_packages=(libroscpp-dev libstd-msgs-dev libsensor-msgs-dev python3-rosmaster python3-rospy \
  python3-std-msgs)
# Programs that tests run preloaded or need, and that are left out where they are not.
check_extras=(git cmake perl nodejs redis-server redis-tools valgrind "${other_mallocs[@]}" \
  ament-cmake gnuplot-nox "${bed_packages[@]}")
compare_packages=(strace python3)
compare_extras=("${other_mallocs[@]}" gnuplot-nox)

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

is_known() {
  [[ $(apt-cache policy "$1" 2>/dev/null) == *'Candidate: '[^\(]* ]]
}

apt_get() {
  local command=(env DEBIAN_FRONTEND=noninteractive apt-get "$@")
  if [[ $(id -u) -eq 0 ]]; then "${command[@]}"; else sudo "${command[@]}"; fi
}

# missing_of SPEC...: the specs of which no alternative is installed, one a line.
missing_of() {
  local spec name
  for spec in "$@"; do
    for name in ${spec//|/ }; do
      is_installed "$name" && continue 2
    done
    echo "$spec"
  done
}

# choose SPEC: the first alternative that the distribution has.
choose() {
  local name
  for name in ${1//|/ }; do
    is_known "$name" && echo "$name" && return
  done
  return 1
}

installed= # was anything, so that configure has to look again?

# install NEEDED... -- EXTRA...: what is needed must come; an extra is left out with a line.
install() {
  local needed=() extra=() spec name names=()
  while [[ $1 != -- ]]; do needed+=("$1"); shift; done
  shift
  extra=("$@")
  mapfile -t needed < <(missing_of "${needed[@]}")
  mapfile -t extra < <(missing_of ${extra[@]+"${extra[@]}"})
  [[ ${#needed[@]} -gt 0 || ${#extra[@]} -gt 0 ]] || return 0
  if ! type apt-get >/dev/null 2>&1; then
    echo "there is no apt-get here: what is not installed yet has to be by hand:" \
      "${needed[*]} ${extra[*]}"
    return 0
  fi

  installed=yes
  stage 'package lists' apt_get update || true
  if [[ ${#needed[@]} -gt 0 ]]; then
    stage "install ${needed[*]}" apt_get install -y --no-install-recommends "${needed[@]}" ||
      failed
  fi
  for spec in ${extra[@]+"${extra[@]}"}; do
    if name=$(choose "$spec"); then
      names+=("$name")
    else
      echo "left out: ${spec//|/ or }, which this distribution does not have"
    fi
  done
  for name in ${names[@]+"${names[@]}"}; do
    stage "install $name" apt_get install -y --no-install-recommends "$name" ||
      echo "left out: $name, which could not be installed"
  done
}

# ---- steps ----

jobs=$(nproc 2>/dev/null || echo 2)
mkdir -p build/logs
log=

# stage NAME COMMAND...: run it with its output in a log of its own, and say how it went.
stage() {
  local name=$1 start=$SECONDS
  log=build/logs/${name//[^a-z0-9]/-}.log
  shift
  printf '%-44s ' "$name"
  if "$@" >"$log" 2>&1; then
    printf 'ok, %d s\n' $((SECONDS - start))
  else
    printf 'FAILED, %d s\n' $((SECONDS - start))
    return 1
  fi
}

# failed [FOLDER]: show what the last stage left, and the logs of the tests that failed there.
failed() {
  echo "---- the end of $log"
  tail -n 40 "$log"
  if [[ -n ${1:-} && -s $1/test-suite.log ]] && grep -q '^\.\. contents' "$1/test-suite.log"; then
    echo "---- the end of $1/test-suite.log"
    tail -n 150 "$1/test-suite.log"
  fi
  exit 1
}

bootstrap() {
  if [[ -x configure && -f Makefile.in ]]; then
    [[ -n $(find . -path ./build -prune -o \( -name configure.ac -o -name Makefile.am \
      -o -name local.mk -o -name weir.m4 -o -name beds.m4 \) -newer configure \
      -print -quit) ]] || return 0
  fi
  stage bootstrap autoreconf -fi || failed
}

# configure_in FOLDER ARGUMENT...
configure_in() {
  local folder=$1 arguments
  shift
  arguments=$(printf '%q ' "$@")
  [[ -z $installed && -x $folder/config.status &&
    $(cat "$folder/arguments" 2>/dev/null) == "$arguments" ]] && return
  mkdir -p "$folder"
  (cd "$folder" && "$OLDPWD/configure" "$@") || return
  echo "$arguments" >"$folder/arguments"
}

in_folder() {
  make --no-print-directory -C "$@"
}

build() {
  install "${build_packages[@]}" "$@"
  bootstrap
  stage configure configure_in build || failed
  stage build in_folder build -j "$jobs" all || failed
}

# ---- check ----

# variant NAME TESTS ARGUMENT...: build in a folder of its own, and run some of the tests there.
variant() {
  local name=$1 tests=$2
  shift 2
  stage "configure $name" configure_in "build/$name" --disable-static "$@" || failed
  stage "build $name" in_folder "build/$name" -j "$jobs" all || failed
  stage "tests $name" ${runner[@]+"${runner[@]}"} make --no-print-directory -C "build/$name" \
    -j "$jobs" check TESTS="$tests" || failed "build/$name"
}

# ThreadSanitizer cannot start where the kernel spreads mappings wider than it expects, unless the
# spreading is off; and in some containers not even then. Sets runner, or fails.
thread_sanitizer_runs() {
  local probe=build/logs/thread-sanitizer
  echo 'int main(void) { return 0; }' | gcc -fsanitize=thread -x c - -o "$probe" 2>/dev/null ||
    return
  runner=()
  "$probe" 2>/dev/null && return
  runner=(setarch -R)
  "${runner[@]}" "$probe" 2>/dev/null
}

# What is tracked is also distributed: a test that nobody listed would be missing here.
distribution() {
  local tracked missing
  rm -f build/weir-*.tar.gz
  in_folder build -j "$jobs" distcheck TESTS='$(quick_tests)' || return
  tracked=$(git ls-files 2>/dev/null) || return 0
  missing=$(comm -23 <(sort <<<"$tracked") \
    <(tar -tzf build/weir-*.tar.gz | sed 's,^[^/]*/,,' | sort) | grep -vx '.gitignore' || true)
  [[ -z $missing ]] || { echo "not in the distribution: $missing"; return 1; }
}

check() {
  local runner=() counted
  build "${check_packages[@]}" -- "${check_extras[@]}"
  stage tests in_folder build -j "$jobs" check || failed build
  counted=$(sed -n '/^Running suite/,/^[0-9]*%: Checks/p' build/tests/unit/unit.log)

  # The other variants are about weir: none of their tests starts a benchmark.
  variant full-checks '$(core_tests)' --enable-checks=full --without-beds

  # weir does not take its memory from the libc: a leak that the sanitizer sees is Check's own.
  export ASAN_OPTIONS=detect_leaks=0
  variant address '$(core_tests)' --enable-checks=full --enable-sanitize=address,undefined \
    --without-beds CFLAGS='-g -O1'
  unset ASAN_OPTIONS

  if thread_sanitizer_runs; then
    variant thread '$(stress_tests)' --enable-sanitize=thread --without-beds CFLAGS='-g -O1'
  else
    echo "left out: ThreadSanitizer, whose programs do not start on this machine"
  fi

  stage distcheck distribution || failed
  echo
  echo "$counted"
}

case ${1:-} in
  build) build -- ;;
  check) check ;;
  compare)
    shift
    build "${compare_packages[@]}" -- "${compare_extras[@]}"
    exec bench/compare --suite quick --build build "$@"
    ;;
  messages)
    shift
    build "${compare_packages[@]}" -- "${compare_extras[@]}" "${bed_packages[@]}" \
      "${ros1_packages[@]}"
    exec bench/compare --suite messages --build build "$@"
    ;;
  -h | --help | help) usage ;;
  *)
    usage >&2
    exit 2
    ;;
esac
