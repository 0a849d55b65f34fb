#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Opens both libraries of weir with dlopen: from a plain program, alone and after libraries that
# use thread-local data, and from python3. REPLACE_CORE is the path of libweir.so, beside
# libweir_malloc.so unless set; REPLACE_TLS that of the helper library tlsuser.so.

bin=${REPLACE_BIN:-tests/replace}
so=${REPLACE_SO:?"set by run.sh"}
core=${REPLACE_CORE:-$(dirname "$so")/libweir.so}
tls=${REPLACE_TLS:-$bin/tlsuser.so}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
[ -e "$tls" ] || tls=$bin/.libs/tlsuser.so
failed=0

for library in "$so" "$core"; do
  "$bin/loader_plain" "$library" >/dev/null || { echo "FAIL dlopen of $library"; failed=1; }
  "$bin/loader_plain" "$library" "$tls" libstdc++.so.6 libgomp.so.1 libjemalloc.so.2 \
    libmimalloc.so.2 libtcmalloc_minimal.so.4 libpulse.so.0 libGL.so.1 \
    libcurl.so.4 libselinux.so.1 libcap-ng.so.0 libuuid.so.1 libblkid.so.1 >/dev/null ||
    { echo "FAIL dlopen of $library after others"; failed=1; }
  if command -v python3 >/dev/null; then
    python3 - "$library" <<'END' || { echo "FAIL $library from python3"; failed=1; }
import ctypes, sys, threading
library = ctypes.CDLL(sys.argv[1])
library.weir_malloc.restype = ctypes.c_void_p
library.weir_malloc.argtypes = [ctypes.c_size_t]
library.weir_free.argtypes = [ctypes.c_void_p]
library.weir_version.restype = ctypes.c_char_p
assert library.weir_version().count(b".") == 2
def use():
    for size in range(0, 300000, 777):
        block = library.weir_malloc(size)
        assert block and block % 16 == 0
        ctypes.memset(block, 7, size)
        library.weir_free(block)
threads = [threading.Thread(target=use) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
END
  fi
done

# What is wrong in the environment is told once, though two weirs are in the process: one that is
# preloaded, and libweir or another copy of libweir_malloc that is opened and called by its handle.
told() { # LIBRARY [PRELOADED]
  env WEIR_RETAIN=abc WEIR_NOTHING=1 ${2:+LD_PRELOAD="$2"} "$bin/loader_plain" "$1" \
    >/dev/null 2>"$dir/err" || { echo "FAIL dlopen of $1 beside ${2:-none}"; failed=1; }
  [ "$(grep -c '^weir: WEIR_RETAIN=abc ' "$dir/err") $(grep -c '^weir: WEIR_NOTHING ' "$dir/err")" \
    = "1 1" ] || { echo "FAIL $1 beside ${2:-none}: not told once"; cat "$dir/err"; failed=1; }
}
cp "$so" "$dir/copy.so" || failed=1
told "$core"
told "$so"
told "$core" "$so"
told "$dir/copy.so" "$so"
exit $failed
