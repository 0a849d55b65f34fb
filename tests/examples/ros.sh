#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What doc/ros.md has its readers paste is right: ros.py looks at it.
test -n "$PYTHON3" || { echo "no Python"; exit 77; }
exec "$PYTHON3" "$srcdir/tests/examples/ros.py" "$srcdir" "$REPLACE_SO"
