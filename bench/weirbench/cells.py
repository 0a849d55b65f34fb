# SPDX-License-Identifier: Apache-2.0
"""The grid: which program runs with which arguments, what is shown of it, and about how long it
takes. The quick suite is the part of the full one that tells most in two minutes; the cells of the
speed suite are in general.py."""

from dataclasses import dataclass, field

from . import stats

KIB, MIB = 1 << 10, 1 << 20
ROLES = ("ping", "echo")  # the endpoints of a bed
TOPOLOGIES = "topologies/"  # in the folder of compare
MARK = 64 * MIB  # weir's default mark; a message beyond it may fault

SIZES = [64, 4 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 15 * MIB // 2, 8 * MIB + 64, 32 * MIB]
SWEEP = range(7 * MIB, 9 * MIB + 1, 64 * KIB)


@dataclass
class Cell:
    workload: str
    name: str
    program: str
    arguments: list
    shows: list  # keys of SHOWS
    seconds: float = 0.1  # a guess at one run, for the time that is left
    most_reps: int = 1000
    messages: int = 0  # messages in the steady part; 0: calls are not counted
    counts_only: bool = False  # no figure depends on time, so runs may be side by side
    pause_ms: int = 0
    payload: int = 0  # bytes live at once
    needs_kib: int = 0  # memory without which the cell is left out
    needs: list = field(default_factory=list)  # and programs without which it is
    built: list = field(default_factory=list)  # programs of ours that are not built everywhere
    modules: list = field(default_factory=list)  # modules of the system's own Python
    packages: str = ""  # what to install where any of that is missing
    tags: list = field(default_factory=list)

    @property
    def within_mark(self):
        return self.payload <= MARK

    @property
    def staggered(self):
        """All arms of a long pause run at once, each awake while the others sleep."""
        return self.pause_ms >= 1000


# Key in a program's JSON line: title of the table, how a value is written.
SHOWS = {
    "faults_per_iteration": ("Page faults per message", stats.per_message),
    "calls_per_message": ("Memory system calls per message", stats.per_message),
    "ns_median": ("Time per message", stats.duration),
    "ping_faults_per_message": ("Page faults per message, ping", stats.per_message),
    "echo_faults_per_message": ("Page faults per message, echo", stats.per_message),
    "ping_calls_per_message": ("Memory system calls per message, ping", stats.per_message),
    "echo_calls_per_message": ("Memory system calls per message, echo", stats.per_message),
    "ns_p50": ("Time per round trip, p50", stats.duration),
    "ping_rss_peak_kib": ("Peak RSS, ping", stats.kib),
    "echo_rss_peak_kib": ("Peak RSS, echo", stats.kib),
    "faults_per_message": ("Page faults per message", stats.per_message),
    "ns_mean": ("Time from publishing to the callback, mean", stats.duration),
    "ns_mean_all": ("The same of all topics", stats.duration),
    "ns_publish": ("Time to publish, mean", stats.duration),
    "ns_malloc": ("Time from publishing to the callback, buffers from malloc", stats.duration),
    "ns_pool": ("The same, buffers from the pool", stats.duration),
    "ns_p50_malloc": ("p50 of those from malloc", stats.duration),
    "ns_p50_pool": ("p50 of those from the pool", stats.duration),
    "malloc_by_pool": ("From malloc beside from the pool, means", lambda value: f"{value:.3f}"),
    "pss_total_kib": ("Pss of all processes", stats.kib),
    "pss_router_kib": ("Pss of the router", stats.kib),
    "pss_node_kib": ("Pss of a node, median", stats.kib),
    "ns_fresh": ("Time per message, each batch allocated", stats.duration),
    "ns_keep": ("Time per message, batches kept", stats.duration),
    "fresh_cost_percent": ("Throughput lost by allocating each batch",
                           lambda value: f"{value:.2f} %"),
    "fresh_faults_per_batch": ("Page faults per batch that is allocated", stats.per_message),
    "system_ns_per_iteration": ("System time per message", stats.duration),
    "ns_per_op": ("Time per operation", stats.duration),
    "rss_peak_kib": ("Peak RSS", stats.kib),
    "rss_before_kib": ("RSS before", stats.kib),
    "rss_after_kib": ("RSS when the last free returned", stats.kib),
    "rss_settled_kib": ("RSS a second later", stats.kib),
    "hot_faults": ("faults of the hot loop meanwhile", lambda value: f"{value:.0f}"),
    "take_ns": ("taking and writing", stats.duration),
    "free_ns": ("freeing", stats.duration),
    "private_dirty_kib": ("private dirty", stats.kib),
    "vm_locked_kib": ("locked (VmLck)", stats.kib),
    "vm_rss_kib": ("resident (VmRSS)", stats.kib),
    "cpu_ns_mean": ("CPU", stats.duration),
    "cpu_ns": ("CPU time of the whole program", stats.duration),
    "wall_ns": ("Wall time of the whole program", stats.duration),
    "faults": ("Page faults", lambda value: f"{value:.0f}"),
    "faults_per_run": ("faults", stats.per_message),
}


def reuse(size, live, pause_ms=0, other=False, pattern="plain", fill="page", history=0,
          quick=False):
    pages = live * (size // 4096 + 1)
    budget, least = (60000, 5) if quick else (150000, 20)
    iterations, rounds, most = max(least, budget // pages), 1, 1000
    if pause_ms:
        most = (2 if quick else 4) if pause_ms >= 1000 else (10 if quick else 40)
        least = most
    elif size <= 64 * KIB and not other:
        rounds, most = max(1, 128 // pages), 2000
    iterations = max(least, min(most, iterations))
    name = f"{stats.size(size)} x{live}"
    arguments = ["--size", size, "--live", live, "--iterations", iterations, "--rounds", rounds]
    for option, value, default, text in (
            ("--pattern", pattern, "plain", "take + copy"), ("--fill", fill, "page", "every byte"),
            ("--free-by", "other" if other else "same", "same", "other thread"),
            ("--pause-ms", pause_ms, 0, f"pause {pause_ms / 1000:g} s" if pause_ms >= 1000 else
             f"pause {pause_ms} ms"), ("--history", history, 0, "after history")):
        if value != default:
            arguments += [option, value]
            name += ", " + text
    work = pages * iterations * 0.6e-6 + iterations * rounds * live * 1e-7
    return Cell("reuse", name, "reuse", arguments,
                ["faults_per_iteration", "calls_per_message", "ns_median", "rss_peak_kib"],
                seconds=0.03 + work + (iterations + 2) * pause_ms / 1000 + history * 5e-5,
                most_reps=2 if quick and pause_ms >= 1000 else 1000,
                messages=iterations * rounds, pause_ms=pause_ms, payload=size * live,
                needs_kib=3 * size * live // KIB)


def small(program, name, arguments, seconds):
    return Cell("speed", name, program, arguments, ["ns_per_op", "rss_peak_kib"], seconds)


def pair(size, batch=1, order="lifo", count=1000000):
    name = f"pair {stats.size(size)}" + (f", batch {batch} {order}" if batch > 1 else "")
    return small("pair", name, ["--size", size, "--batch", batch, "--order", order,
                                "--count", count], 0.08)


def churn(threads, least=16, most=16384, shared=False, sizes="log", ops=300000):
    name = f"churn {stats.size(least)}..{stats.size(most)}, {threads} thread" + "s" * (threads > 1)
    name += ", shared" * shared + ", uniform" * (sizes == "uniform")
    arguments = ["--threads", threads, "--min", least, "--max", most, "--ops", ops,
                 "--sizes", sizes] + ["--shared"] * shared
    return small("churn", name, arguments, 0.1 + ops * 8e-7)


def prodcons(pairs, least=16, most=16384, one_thread=False, blocks=300000):
    name = f"queue {stats.size(least)}..{stats.size(most)}, "
    name += "1 thread" if one_thread else f"{2 * pairs} threads"
    arguments = ["--pairs", pairs, "--min", least, "--max", most, "--blocks", blocks]
    return small("prodcons", name, arguments + ["--one-thread"] * one_thread,
                 0.03 + 5e-7 * blocks * pairs)


def burst(hot, reps):
    shows = ["rss_before_kib", "rss_after_kib", "rss_settled_kib", "take_ns", "free_ns"]
    return Cell("burst", "1 GiB of 4 MiB" + (" + hot loop" if hot else ""), "burst",
                ["--hot"] * hot, shows + ["hot_faults"] * hot, seconds=2.7, most_reps=reps,
                needs_kib=3 << 19)


def footprint(quick):
    reps = 3 if quick else 10
    cells = [("idle", [], ["private_dirty_kib"]),
             ("8 threads", ["--threads", 8], ["private_dirty_kib"]),
             ("mlockall", ["--mlockall"], ["vm_locked_kib", "vm_rss_kib"]),
             ("mlockall, 64 MiB live", ["--mlockall", "--live", 64],
              ["vm_locked_kib", "vm_rss_kib"])]
    found = [Cell("footprint", name, "footprint", arguments, shows, 0.03, most_reps=reps)
             for name, arguments, shows in cells]
    found.append(Cell("footprint", "start of true", "startup", ["--runs", 50 if quick else 500],
                      ["cpu_ns_mean", "faults_per_run"], 0.1 if quick else 1.0))
    return found


def quick():
    def cell(*values, **named):
        return reuse(*values, quick=True, **named)
    return [
        cell(64, 2), cell(4 * KIB, 2), cell(64 * KIB, 2), cell(256 * KIB, 2),
        cell(MIB, 1), cell(MIB, 2), cell(MIB, 4), cell(MIB, 2, pattern="take-copy"),
        cell(MIB, 2, fill="byte"), cell(MIB, 2, history=2000), cell(MIB, 2, other=True),
        cell(MIB, 2, pause_ms=20), cell(MIB, 2, pause_ms=1100),
        cell(4 * MIB, 2), cell(15 * MIB // 2, 2), cell(8 * MIB + 64, 2),
        cell(8 * MIB + 64, 2, other=True), cell(32 * MIB, 2),
        pair(64), pair(4 * KIB), pair(64, 1000), churn(1, ops=150000), churn(2, ops=150000),
        churn(2, shared=True, ops=150000),
        prodcons(1, one_thread=True, blocks=200000), prodcons(1, blocks=200000),
        burst(True, 1), *footprint(True),
    ]


def full():
    cells = [reuse(size, live, pause, other) for pause in (0, 20, 1100) for other in (False, True)
             for size in SIZES for live in (1, 2, 4)]
    for size in (256 * KIB, MIB, 4 * MIB, 8 * MIB + 64):
        cells += [reuse(size, 2, pattern="take-copy"),
                  reuse(size, 2, pattern="take-copy", other=True),
                  reuse(size, 2, fill="byte"), reuse(size, 2, history=5000),
                  reuse(size, 2, history=5000, other=True)]
    for size in SWEEP:
        if size not in SIZES:
            cells.append(reuse(size, 2))
            cells[-1].tags.append("sweep")
    for size in (16, 64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB):
        cells += [pair(size), pair(size, 1000), pair(size, 1000, "fifo")]
    ranges = [(16, 16384), (16, 128), (KIB, 16384)]
    for least, most in ranges:
        cells += [churn(1, least, most, ops=1000000), churn(2, least, most, ops=1000000),
                  churn(2, least, most, shared=True, ops=1000000),
                  prodcons(1, least, most, one_thread=True, blocks=1000000),
                  prodcons(1, least, most, blocks=1000000),
                  prodcons(2, least, most, blocks=500000)]
    cells += [churn(1, sizes="uniform"), churn(2, sizes="uniform")]
    return cells + [burst(False, 3), burst(True, 3), *footprint(False)]
