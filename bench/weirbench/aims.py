# SPDX-License-Identifier: Apache-2.0
"""The verdict of the speed suite: each cell's time and peak memory beside the best of the peers,
geometric means over the cells, and whether the aims are met. Peers are all arms but the one that is
judged."""

import math

from . import stats
from . import tables
from .summary import finely

MOST_MEAN, MOST_CELL = 0.95, 1.10
MEMORY = "rss_peak_kib"
GROUPS = [("all cells", None), ("workloads", "speed"), ("programs", "programs")]


def _row(index, cell, arms, results, subject):
    """One cell; `failed` names the arms that lack a figure, and so keep it out of the means."""
    names = [arm.name for arm in arms]
    peers = [name for name in names if name != subject]
    spreads = {name: results.spread(index, name, cell.shows[0]) for name in names}
    time = {name: spread.median for name, spread in spreads.items() if spread}
    memory = {name: results.spread(index, name, MEMORY).median for name in time}
    best, lowest = stats.best(time, peers), stats.best(memory, peers)
    own = spreads[subject]
    return {
        "cell": cell.name, "workload": cell.workload, "time": time, MEMORY: memory,
        "failed": [name for name in names
                   if name not in time or (cell.name, name) in results.failures],
        "best_peer": best[1], "lowest_peer": lowest[1],
        "ratio_to_best": stats.ratio(own.median, best[0]) if own and best[0] else None,
        "disjoint_from_best": bool(own and best[1] and own.disjoint(spreads[best[1]])),
        "rss_ratio_to_lowest": stats.ratio(memory[subject], lowest[0]) if own and lowest[0]
        else None}


def _means(rows, names, reference, key):
    """Each arm's geometric mean over the rows, relative to the reference."""
    return {name: math.exp(sum(math.log(row[key][name] / row[key][reference]) for row in rows)
                           / len(rows)) for name in names}


def _verdict(summary, peers, subject):
    """The aims, each with its figure, its limit and whether it is met."""
    time, memory = (summary["means"]["all cells"][key] for key in ("time", MEMORY))
    fastest, lowest = min(peers, key=time.get), min(peers, key=memory.get)

    def aim(what, figure, most, **more):
        return {"aim": what, "figure": figure, "at_most": most, "met": figure <= most, **more}
    over = sorted((row for row in summary["rows"] if (row["ratio_to_best"] or 0) > MOST_CELL),
                  key=lambda row: -row["ratio_to_best"])
    return {
        "over": [{key: row[key] for key in ("cell", "best_peer", "ratio_to_best",
                                            "disjoint_from_best")} for row in over],
        "aims": [aim("mean time to the best peer", time[subject] / time[fastest], MOST_MEAN,
                     peer=fastest),
                 aim("cells over the best peer", len(over), 0),
                 aim("mean peak RSS to the lowest peer", memory[subject] / memory[lowest], 1.0,
                     peer=lowest)]}


def collect(cells, arms, results, subject):
    """None where the subject or all peers are missing."""
    names = [arm.name for arm in arms]
    peers = [name for name in names if name != subject]
    if subject not in names or not peers:
        return None
    rows = [_row(index, cell, arms, results, subject) for index, cell in enumerate(cells)]
    whole = [row for row in rows if not row["failed"]]
    reference = tables.REFERENCE if tables.REFERENCE in names else peers[0]
    means = {}
    for group, wanted in GROUPS:
        members = [row for row in whole if wanted in (None, row["workload"])]
        if members:
            means[group] = {"cells": len(members), **{
                key: _means(members, names, reference, key) for key in ("time", MEMORY)}}
    summary = {"subject": subject, "reference": reference, "rows": rows, "means": means,
               "left_out": {row["cell"]: row["failed"] for row in rows if row["failed"]}}
    return {**summary, **(_verdict(summary, peers, subject) if whole else {"over": [], "aims": []})}


def _ratio(row):
    """The ratio to the best peer, marked where it is not chance."""
    if row["ratio_to_best"] is None:
        return "-"
    return finely(row["ratio_to_best"]) + ("*" if row["disjoint_from_best"] else " ")


def _show_rows(summary, out):
    subject = summary["subject"]

    def text(value, write):
        return write(value) if value is not None else "-"
    lines = []
    for row in summary["rows"]:
        time, memory = row["time"], row[MEMORY]
        best, lowest = row["best_peer"], row["lowest_peer"]
        lines.append((row["cell"], [
            text(time.get(subject), stats.duration), text(time.get(best), stats.duration),
            best or "-", _ratio(row), text(memory.get(subject), stats.kib),
            text(memory.get(lowest), stats.kib), lowest or "-",
            text(row["rss_ratio_to_lowest"], finely)]))
    tables.render("Time and peak RSS beside the best peer (* the ranges of the runs are disjoint)",
                  ["time", "best peer", "which", "ratio", "RSS", "lowest peer", "which", "ratio"],
                  lines, out)


def _show_means(summary, out):
    names = list(next(iter(summary["means"].values()))["time"])
    lines = []
    for key, what in (("time", "time"), (MEMORY, "peak RSS")):
        for group, means in summary["means"].items():
            lines.append((f"{what}, {group} ({means['cells']})",
                          [finely(means[key][name]) for name in names]))
    tables.render(f"Geometric means, relative to {summary['reference']}", names, lines, out)


def _show_aims(summary, out):
    means, cells, memory = summary["aims"]

    def met(aim):
        return "met" if aim["met"] else "NOT met"
    over = summary["over"]
    apart = sum(one["disjoint_from_best"] for one in over)
    total = sum(row["ratio_to_best"] is not None for row in summary["rows"])
    out("")
    out(f"Mean time {finely(means['figure'])} that of the best single peer, {means['peer']} "
        f"(aim: at most {MOST_MEAN}): {met(means)}")
    out(f"Mean peak RSS {finely(memory['figure'])} that of the lowest peer, {memory['peer']} "
        f"(aim: at most 1): {met(memory)}")
    out(f"{len(over)} of {total} cells take more than {MOST_CELL:.2f} x the best peer's time, "
        f"{apart} of them with disjoint ranges (aim: none): {met(cells)}")
    if over:
        tables.render("Those cells, worst first", ["ratio", "best peer"], [
            (one["cell"], [_ratio(one), one["best_peer"]]) for one in over], out)


def show(summary, out):
    out(f"\n== Summary: {summary['subject']} ==")
    _show_rows(summary, out)
    if summary["means"]:
        _show_means(summary, out)
        _show_aims(summary, out)
    for cell, names in summary["left_out"].items():
        out(f"Not in the means: {cell}, which failed under {', '.join(names)}")
