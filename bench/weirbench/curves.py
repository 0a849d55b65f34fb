# SPDX-License-Identifier: Apache-2.0
"""The plots suite: what bench/plot draws as curves. Faults by payload size, finely enough to show
where an allocator changes its ways, and resident memory before, in and after a burst."""

from . import stats
from .cells import KIB, MIB, Cell

# Where an allocator begins to do something else with a block: the neighbourhoods that are
# looked at closely, so that an edge is drawn as one and not as a slope to the next size.
EDGES = (64 * KIB, 128 * KIB, 7 * MIB, 8 * MIB, 16 * MIB, 32 * MIB)

NAMES = ("cliffs", "timeline")  # its workloads


def cliffs():
    """Two live buffers of 4 KiB to 64 MiB, in four steps a doubling and around the edges. It is
    counts alone, and few messages are enough for those."""
    sizes = [base * quarter // 4 for base in (4 * KIB << step for step in range(14))
             for quarter in (4, 5, 6, 7)] + [64 * MIB]
    names = {size: stats.size(size) for size in sizes}
    for edge in EDGES:
        for step in (64, 4 * KIB, edge // 128):
            names[edge - step] = f"{stats.size(edge)} - {stats.size(step)}"
            names[edge + step] = f"{stats.size(edge)} + {stats.size(step)}"
    cells = []
    for size, name in sorted(names.items()):
        messages = 20 if size <= 8 * MIB else 10
        pages = 2 * (size // 4096 + 1)
        cells.append(Cell(
            "cliffs", f"{name} x2", "reuse",
            ["--size", size, "--live", 2, "--iterations", messages],
            ["faults_per_iteration", "calls_per_message"], 0.03 + pages * (messages + 2) * 4e-6,
            most_reps=1, messages=messages, counts_only=True, payload=2 * size,
            needs_kib=6 * size // KIB))
    return cells


def timeline():
    """RSS while a process that goes on working takes 1 GiB, holds it a while and frees it."""
    return [Cell("timeline", "1 GiB of 4 MiB, held, freed", "burst",
                 ["--hot", "--hot-live", 2, "--lead-ms", 500, "--hold-ms", 500, "--settle-ms", 4000,
                  "--sample-ms", 10],
                 ["rss_before_kib", "rss_peak_kib", "rss_after_kib"], 6.5,
                 needs_kib=3 << 19)]


def plots():
    """What bench/plot draws that no other suite measures."""
    return cliffs() + timeline()
