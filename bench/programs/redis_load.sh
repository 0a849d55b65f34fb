#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Load for the redis server on the socket that is named: a fixed number of commands with random
# keys and values of several sizes, so that values of one size take the place of others.
socket=$1
tries=0
until [ "$(redis-cli -s "$socket" ping 2>&1)" = PONG ]; do
  tries=$((tries + 1))
  [ $tries -lt 200 ] || { echo "redis_load.sh: no server answers" >&2; exit 1; }
  sleep 0.02
done
for size in 20 300 90 1500; do
  redis-benchmark -s "$socket" -q -c 8 -P 16 -n 9000 -r 6000 -d $size \
    -t set,get,lpush,mset >/dev/null || exit
done
[ "$(redis-cli -s "$socket" dbsize)" -ge 5000 ] ||
  { echo "redis_load.sh: keys are missing" >&2; exit 1; }
