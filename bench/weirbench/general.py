# SPDX-License-Identifier: Apache-2.0
"""The speed suite: each general workload once or a few times, and programs as they are in use. A
cell takes some 0.2 to 0.6 s under glibc, a program 0.5 to 1.5 s."""

import os
import shutil
import subprocess
import sys

from .cells import KIB, Cell, churn, pair, prodcons, small

SCRIPTS = os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir, "programs")
LARGE_C = "large.c"
PYTHON = "./python3"


def prepare(folder):
    """Put into `folder` what the programs' cells work on; their commands run there. A link to the
    interpreter, because the one in the search path may be the script of a version manager."""
    for name in os.listdir(SCRIPTS):
        shutil.copy(os.path.join(SCRIPTS, name), folder)
    os.symlink(os.path.realpath(sys.executable), os.path.join(folder, PYTHON))
    with open(os.path.join(folder, LARGE_C), "w", encoding="ascii") as file:
        subprocess.run([PYTHON, "large_c.py"], cwd=folder, stdout=file, check=True)


def program(name, command, seconds=1.1, needs=(), own=()):
    """`own`: options of bench/program itself, before the command."""
    return Cell("programs", name, "program", [*own, "--", *command],
                ["cpu_ns", "wall_ns", "rss_peak_kib", "faults"], seconds,
                needs=list(needs) or [command[0]])


def programs():
    python = [PYTHON, "objects.py"]
    redis = ["redis-server", "--port", 0, "--unixsocket", "redis.sock", "--save", "",
             "--appendonly", "no"]
    return [
        program("python3 objects", python, needs=[sys.executable]),
        program("python3 objects, its own pools off", python, 1.3, [sys.executable],
                ["-E", "PYTHONMALLOC=malloc"]),
        program("perl text", ["perl", "text.pl"]),
        program("node objects", ["node", "objects.js"], 1.3),
        program("sqlite3 tables", ["sqlite3", ":memory:", ".read tables.sql"], 1.3),
        program("gcc -O2", ["gcc", "-O2", "-c", LARGE_C, "-o", "large.o"], 0.9),
        program("redis-server under load", redis, 1.7,
                ["redis-server", "redis-benchmark", "redis-cli"],
                ["-C", "sh redis_load.sh redis.sock"]),
    ]


def cell(name, label, *arguments, threads=0, seconds=0.4):
    """A cell of the workload program `name`; what it does is told by arguments, not by defaults."""
    parts = [label] * bool(label) + [f"{threads} thread" + "s" * (threads > 1)] * bool(threads)
    arguments = [*arguments, *["--threads", threads] * bool(threads)]
    return small(name, f"{name} {', '.join(parts)}", arguments, seconds)


def paths():
    """Blocks of one size, or of few, one thread after the other or each for itself."""
    return [
        pair(64, count=20000000), pair(4 * KIB, count=8000000), pair(64, 1000, count=10000000),
        pair(64, 1000, "fifo", count=10000000),
        cell("simple", "all sizes", "--ops", 1500000, threads=1),
        cell("simple", "64 B", "--size", 64, "--ops", 12000000, threads=1),
        cell("simple", "1 KiB", "--size", KIB, "--ops", 1500000, threads=1),
        cell("simple", "random", "--ops", 10000000, threads=2),
        cell("simple", "random log", "--sizes", "log", "--ops", 5000000, threads=2),
        cell("shbench", "sh6", "--rounds", 1500, threads=1),
        cell("shbench", "sh6", "--rounds", 1500, threads=2),
        cell("alloctest", "", "--ops", 1000000, threads=1),
        cell("alloctest", "", "--ops", 500000, threads=2),
        churn(1, ops=1000000), churn(1, 16, 128, ops=3000000), churn(2, ops=800000),
    ]


def across():
    """Blocks that change hands, and threads that come and go."""
    return [
        cell("larson", "", "--generations", 400, threads=1),
        cell("larson", "", "--generations", 400, threads=2),
        cell("shbench", "sh8", "--kind", "sh8", "--rounds", 600, threads=2),
        cell("mstress", "", "--iterations", 20, threads=2),
        cell("rptest", "random", "--loops", 6000, threads=2),
        cell("rptest", "128 B", "--mode", "fixed", "--size", 128, "--loops", 20000, threads=2),
        cell("falseshare", "passive", "--mode", "passive", "--rounds", 2000000, threads=2),
        cell("falseshare", "active", "--mode", "active", "--rounds", 2000000, threads=2),
        churn(2, shared=True, ops=400000),
        prodcons(1, one_thread=True, blocks=2000000), prodcons(1, blocks=1000000),
        prodcons(2, blocks=600000),
        cell("xmalloc", "1 + 1 threads", "--blocks", 1000000),
        cell("xmalloc", "2 + 1 threads", "--producers", 2, "--blocks", 500000),
        cell("threadchurn", "256 KiB", "--payload", 256 * KIB, "--threads", 3000),
        cell("threadchurn", "small blocks", "--payload", 0, "--threads", 6000),
        cell("rosmix", "", "--messages", 8000, threads=20),
        cell("rosmix", "", "--messages", 24000, threads=4),
    ]


def growing():
    """Blocks that grow, and very large ones."""
    return [
        cell("growth", "doubling", "--pattern", "grow", "--rounds", 8),
        cell("growth", "by half", "--pattern", "grow", "--percent", 150, "--rounds", 8),
        cell("growth", "appending", "--pattern", "append", "--rounds", 20000),
        cell("large", "5..25 MiB", "--ops", 60),
        cell("large", "untouched", "--touch", "none", "--ops", 40000),
    ]


def speed():
    return paths() + across() + growing() + programs()
