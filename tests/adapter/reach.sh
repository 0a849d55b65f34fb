#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Which of ROS's C libraries libweir_rcutils reaches, from the libraries as they are installed: what
# lies in the arena "rcutils" while a program uses them, who calls malloc all the same (reach.c,
# callers.c), and which files are bound to which definitions (the loader's own account of it). With
# messages that rosidl generates here, where its generator is installed.

so=${REPLACE_SO%/*}/libweir_rcutils.so
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
here=$(cd "$srcdir" && pwd)
failed=0
fail() {
  echo "FAIL $*"
  failed=1
}

# ---- what is run ----

# The headers of rosidl's other packages are the neighbours of those that configure found.
headers=${ROSIDL_CFLAGS%/rosidl_runtime_c*}
for package in rosidl_typesupport_interface rosidl_typesupport_introspection_c rosidl_runtime_cpp; do
  ROSIDL_CFLAGS="$ROSIDL_CFLAGS $headers/$package"
done

generate() { # the library of messages, in C and with introspection
  command -v rosidl >/dev/null 2>&1 || return
  mkdir -p "$work/msg" "$work/include" || return
  printf '%s\n' 'string frame' 'float64[] values' 'string[] names' 'uint8[] data' 'uint8[16] fixed' \
    >"$work/msg/Sample.msg"
  (cd "$work" && rosidl generate -o out -t c -t cpp -ts introspection_c reach_msgs msg/Sample.msg) \
    >"$work/log" 2>&1 || { cat "$work/log"; return 1; }
  # The three kinds of file stand apart, and include each other as if they were installed.
  mkdir "$work/include/reach_msgs"
  cp -R "$work"/out/c/. "$work"/out/cpp/. "$work"/out/introspection_c/. "$work/include/reach_msgs"
  # shellcheck disable=SC2086  # CC and the flags are lists of words
  $CC -shared -fPIC -o "$work/libreach_msgs.so" -I"$work/include" $RCUTILS_CFLAGS $ROSIDL_CFLAGS \
    "$work"/include/reach_msgs/msg/detail/*.c \
    -lrosidl_typesupport_introspection_c $ROSIDL_LIBS $RCUTILS_LIBS || return
  test -z "$CXX" ||
    # shellcheck disable=SC2086
    $CXX -shared -fPIC -o "$work/libreach_cxx.so" -I"$work/include" $ROSIDL_CFLAGS \
      "$here/tests/adapter/reach_cxx.cc"
}

messages=
if generate; then
  messages="-DHAVE_MESSAGES -I$work/include -L$work -Wl,-rpath,$work -lreach_msgs"
else
  echo 'rosidl generates no messages here: those are left out'
fi
# shellcheck disable=SC2086
$CC -fno-builtin-malloc -o "$work/reach" "$here/tests/adapter/reach.c" -I"$here/include" \
  $RCUTILS_CFLAGS $ROSIDL_CFLAGS $messages $ROSIDL_LIBS $RCUTILS_LIBS -ldl &&
  $CC -fno-builtin-malloc -shared -fPIC -o "$work/callers.so" "$here/tests/adapter/callers.c" -ldl ||
  exit 1

cxx=
test ! -e "$work/libreach_cxx.so" || cxx=$work/libreach_cxx.so
# shellcheck disable=SC2086  # none or one word
{
  LD_PRELOAD="$work/callers.so" "$work/reach" $cxx >"$work/without" &&
    LD_PRELOAD="$so:$work/callers.so" "$work/reach" $cxx >"$work/with" &&
    LD_BIND_NOW=1 LD_DEBUG=bindings LD_PRELOAD="$so:$work/callers.so" "$work/reach" $cxx \
      2>"$work/bindings" >/dev/null
} || exit 1
echo '--- without libweir_rcutils'
cat "$work/without"
echo '--- with libweir_rcutils'
cat "$work/with"

# ---- what went where ----

line() { # FILE PART: that line, without the part's name
  sed -n "s/^$2: //p" "$1" | grep . || echo 'no such part'
}

reached() { # PART: its memory is all in the arena
  case $(line "$work/with" "$1") in
    'arena 0, '*) fail "$1: not in the arena" ;;
    'arena '*[0-9]', malloc by') ;;
    *) fail "$1: $(line "$work/with" "$1")" ;;
  esac
  case $(line "$work/without" "$1") in
    'arena 0, malloc by '*) ;;
    *) fail "$1, without: $(line "$work/without" "$1")" ;;
  esac
}

passed() { # PART FILE: that file calls malloc, and rcutils' and rosidl's libraries do not
  line "$work/with" "$1" | grep -q " $2 [1-9]" || fail "$1: $2 does not call malloc"
  line "$work/with" "$1" | grep -E ' lib(rcutils|rosidl|reach_msgs)[^ ]* [0-9]' && fail "$1"
}

for part in 'rcutils string map' 'rcutils logging' 'rosidl strings' 'rosidl wide string' \
  'rosidl bytes'; do
  reached "$part"
done
passed 'rcutils environment' 'libc\.so\.[0-9]*'
passed 'rcutils directory' 'libc\.so\.[0-9]*'
passed 'rcutils shared library' 'ld-linux[^ ]*'
if test -n "$messages"; then
  for part in 'message in C' 'messages in C' 'message by introspection'; do reached "$part"; done
fi
if test -n "$cxx"; then
  passed 'message in C++' 'libstdc++\.so\.[0-9]*'
  line "$work/with" 'message in C++' | grep -q '^arena 0,' ||
    fail 'message in C++: in the arena'
fi
test "$(sed -n 's/^arena: //p' "$work/without" "$work/with" | tr '\n' ' ')" = 'no yes ' ||
  fail 'the arena is not where it should be'
test "$(line "$work/with" left)" = 0 || fail 'something is left in the arena'

# ---- who is bound to what ----

echo '--- bindings'
# TARGET SYMBOL: the files bound to that definition, as names without folders
bound() {
  sed -nE "s,.*binding file ([^ ]*/)?([^ /]+) \[0\] to ([^ ]*/)?$1 \[0\].*\`$2'.*,\2,p" \
    "$work/bindings" | LC_ALL=C sort -u | tr '\n' ' '
}
mine=$(bound 'libweir_rcutils\.so' rcutils_get_default_allocator)
other=$(bound 'librcutils\.so[^ ]*' rcutils_get_default_allocator)
allocating=$(bound callers.so '(malloc|calloc|realloc)')
echo "rcutils_get_default_allocator of libweir_rcutils: $mine"
echo "rcutils_get_default_allocator of librcutils: $other"
echo "malloc, calloc or realloc: $allocating"
test -z "$other" || fail "some get rcutils' own allocator: $other"
for file in 'reach ' 'librcutils\.so' 'librosidl_runtime_c\.so' \
  $(test -z "$messages" || echo 'libreach_msgs\.so'); do
  echo "$mine" | grep -q "$file" || fail "$file does not ask libweir_rcutils for its allocator"
done
# rcutils' own default allocator is all of it that calls malloc.
echo "$allocating" | grep -E 'librosidl|libreach_msgs' && fail 'these call malloc themselves'
exit $failed
