#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Programs that people run, with and without the preload: same output, same exit status. What a
# machine lacks is left out with one line.
# shellcheck disable=SC2015,SC2016,SC2086,SC2317,SC3045  # words of other shells; numbers; a trap

so=${REPLACE_SO:?"set by run.sh"}
dir=$(mktemp -d) || exit 1
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null
  rm -rf "$dir"
}
trap cleanup EXIT
failed=0

# same PROGRAM COMMAND: the shell command gives the same with and without the preload.
same() {
  program=$1
  command -v "$program" >/dev/null || { echo "left out: no $program here"; return; }
  for load in '' "$so"; do
    rm -rf "$dir/work"
    mkdir "$dir/work"
    (cd "$dir/work" && timeout 100 env ${load:+LD_PRELOAD="$load"} HOME="$dir/work" sh -c "$2" 2>&1
     echo "exit $?") >"$dir/with${load:+-preload}" </dev/null
  done
  if cmp -s "$dir/with" "$dir/with-preload"; then
    echo "same: $program ($(wc -l <"$dir/with") lines)"
  else
    echo "FAIL $program:"
    diff "$dir/with" "$dir/with-preload" | head -20
    failed=1
  fi
  # A test that compares two failures shows nothing.
  grep -q '^exit 0$' "$dir/with" || { echo "FAIL $program fails by itself"; failed=1; }
}

same bash 'bash -c '\''
declare -A map
for ((i = 0; i < 3000; i++)); do map[key$i]=$((i * i)); text+=" $i"; done
echo ${#map[@]} ${map[key77]} ${#text}
for i in 1 2 3 4 5 6 7 8; do (echo "child $i" | tr a-z A-Z | cat); done
echo $(seq 1 2000 | sort -R | sort -n | md5sum)'\'

same python3 'PYTHONHASHSEED=0 PYTHONMALLOC=malloc python3 -c "
import threading, json, hashlib, re, subprocess
results = {}
def work(n):
    data = [{\"n\": i, \"text\": \"x\" * (i % 500)} for i in range(1000)]
    text = json.dumps(data)
    back = json.loads(text)
    big = bytearray(3000000)
    for _ in range(20): big = bytearray(big) + b\"y\"
    results[n] = hashlib.sha256(text.encode() + bytes(big[-100:])).hexdigest()
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(results.items()))
print(subprocess.run([\"echo\", \"child\"], capture_output=True).stdout)
print(len(re.findall(r\"(a+)(b*)\", \"aaabbb\" * 10000)))
"'

same git 'git init -q -b main . && git config user.email a@b && git config user.name a &&
for i in 1 2 3; do seq $((i * 1000)) > file$i; git add .; GIT_AUTHOR_DATE="2020-01-0$i 00:00:00 +0000" \
GIT_COMMITTER_DATE="2020-01-0$i 00:00:00 +0000" git commit -q -m "commit $i"; done
git log --stat --format="%H %s"; git gc -q; git fsck --strict 2>/dev/null; git diff HEAD~1 | md5sum
git clone -q . copy && git -C copy log --oneline | wc -l'

same gcc 'cat > a.c <<"END"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#define ROW(n) int f##n(int x) { return x * n + (x > n ? f0(x - n) : n); }
int f0(int x) { return x; }
ROW(1) ROW(2) ROW(3) ROW(4) ROW(5) ROW(6) ROW(7) ROW(8) ROW(9)
int main(void) { printf("%d %f\n", f9(f3(100)), sqrt(2.0)); return 0; }
END
gcc -O2 -g0 -Wall -frandom-seed=1 -S -o - a.c | md5sum; gcc -O2 a.c -o a -lm && ./a'

same g++ 'cat > a.cc <<"END"
#include <map>
#include <string>
#include <cstdio>
int main() {
  std::map<int, std::string> m;
  for (int i = 0; i < 10000; i++) m[i % 7] += std::to_string(i);
  std::printf("%zu %.20s\n", m[3].size(), m[3].c_str());
}
END
g++ -g0 -frandom-seed=1 -S -o - a.cc | md5sum; g++ a.cc -o a && ./a'

same cmake 'printf "cmake_minimum_required(VERSION 3.10)\nproject(a C)\nadd_executable(a a.c)\n" > CMakeLists.txt
echo "int main(void) { return 0; }" > a.c
cmake -S . -B build | grep -v -e "Configuring done" -e "Generating done" -e "Build files"; cmake --build build | grep -c Built
./build/a && echo ran'

same perl 'perl -e '\''
my %h; $h{$_ % 997} .= "text $_ " for 1 .. 50000;
print length(join "", map { $h{$_} } sort { $a <=> $b } keys %h), "\n";
my @sorted = sort { $a <=> $b } map { ($_ * 7919) % 100003 } 1 .. 50000; print "@sorted[0 .. 9]\n";
my $s = "abc" x 100000; my $n = () = $s =~ /b(c)/g; print "$n\n";
print fork() ? (wait(), "parent\n")[1] : "child\n";'\'

same node 'node -e '\''
const list = []; for (let i = 0; i < 200000; i++) list.push({ n: i, s: "x" + i });
console.log(JSON.stringify(list).length, list.filter((x) => x.n % 7 === 0).length);
const buffers = []; for (let i = 0; i < 50; i++) buffers.push(Buffer.alloc(1 << 20, i));
console.log(require("crypto").createHash("sha256").update(Buffer.concat(buffers)).digest("hex"));
const { Worker } = require("worker_threads");
new Worker("require(\"worker_threads\").parentPort.postMessage([..." +
  "Array(1e5).keys()].length)", { eval: true }).on("message", (m) => console.log("worker", m));'\'

same make 'printf "all: a b c\n%%:\n\t@echo making \$@\n" > Makefile; make -s; make -s -j4 | sort'
same sort 'seq 200000 | awk "{ print (\$1 * 7919) % 200003 }" | sort -n --parallel=4 | md5sum'
same xz 'seq 300000 | xz -T2 -3 | xz -d | md5sum'
same gdb 'gdb --version | head -1; gdb -batch -ex "print 6 * 7"'
same ssh 'ssh -V'

# A redis server under its own benchmark, on loopback, at a port that is free.
redis() {
  command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null ||
    { echo "left out: no redis here"; return; }
  # A port that is taken makes the server end at once: then the next one is tried.
  port=$((20000 + $$ % 20000))
  tries=0
  while [ $tries -lt 100 ]; do
    if [ -z "$server" ] || ! kill -0 "$server" 2>/dev/null; then
      port=$((port + 1))
      LD_PRELOAD=$so redis-server --port $port --bind 127.0.0.1 --save "" --appendonly no \
        --dir "$dir" --daemonize no >"$dir/redis.log" 2>&1 &
      server=$!
    fi
    redis-cli -p $port info server 2>/dev/null | grep -q "^process_id:$server" && break
    tries=$((tries + 1))
    sleep 0.1
  done
  [ $tries -lt 100 ] ||
    { echo "FAIL redis-server does not start"; cat "$dir/redis.log"; failed=1; return; }
  LD_PRELOAD=$so timeout 60 redis-benchmark -p $port -q -n 4000 -c 20 -d 1000 -r 5000 \
    -t set,get,incr,lpush,rpop,sadd,hset,mset >"$dir/bench" 2>&1 || { echo "FAIL redis-benchmark"; failed=1; }
  [ "$(tr '\r' '\n' <"$dir/bench" | grep -c 'requests per second, p50')" -ge 8 ] ||
    { echo "FAIL redis-benchmark: $(cat "$dir/bench")"; failed=1; }
  LD_PRELOAD=$so redis-cli -p $port eval 'for i=1,9000 do redis.call("set", "k" .. i, string.rep("v", i % 3000)) end
    local n = 0; for i=1,9000 do n = n + #redis.call("get", "k" .. i) end; return n' 0 >"$dir/sum"
  [ "$(cat "$dir/sum")" = 13495500 ] || { echo "FAIL redis: sum $(cat "$dir/sum")"; failed=1; }
  redis-cli -p $port shutdown nosave 2>/dev/null
  wait "$server" || { echo "FAIL redis-server ended with $?"; cat "$dir/redis.log"; failed=1; }
  server=
  echo "same: redis-server"
}
redis
exit $failed
