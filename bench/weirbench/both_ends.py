# SPDX-License-Identifier: Apache-2.0
"""The verdict of the messages suite: for each cell the subject's time beside the best other arm's,
its faults and memory calls wherever they are counted, which for a bed is at both ends; and for each
other arm whether there is a cell in which it faults."""

from . import stats
from . import tables
from .summary import finely

SLACK = 1.03
FAULTS, CALLS = ("faults_per_message", "faults_per_iteration"), "calls_per_message"


def _worst(results, index, cell, name, ending):
    """The worst run's sum over the ends, and its parts; None where nothing was counted."""
    keys = [key for key in cell.shows if key.endswith(ending)]
    parts = [spread.high for spread in (results.spread(index, name, key) for key in keys) if spread]
    return (sum(parts), parts) if parts else (None, [])


def _verdict(row):
    if row["failed"]:
        return "FAILED"
    marks = ["FAULTS"] * bool(row["within_mark"] and row["faults"])
    marks += ["CALLS"] * bool(row["within_mark"] and row["calls"])
    marks += ["SLOW"] * bool(row["ratio_to_best"] and row["ratio_to_best"] > SLACK)
    return " ".join((marks or ["ok"]) + ["(beyond the mark)"] * (not row["within_mark"]))


def _row(index, cell, names, results, subject):
    key = next((key for key in cell.shows if key.startswith("ns_")), None)
    spreads = {name: results.spread(index, name, key) for name in names} if key else {}
    own = spreads.get(subject)
    medians = {name: spread.median for name, spread in spreads.items() if spread}
    best = stats.best(medians, [name for name in medians if name != subject])
    faults, fault_parts = _worst(results, index, cell, subject, FAULTS)
    calls, call_parts = _worst(results, index, cell, subject, CALLS)
    row = {"cell": cell.name, "workload": cell.workload, "within_mark": cell.within_mark,
           "failed": not results.values[index].get(subject)
           or (cell.name, subject) in results.failures,
           "faults": faults, "faults_by_end": fault_parts, "calls": calls,
           "calls_by_end": call_parts, "ns": own.median if own else None,
           "best_other": best[1], "best_other_ns": best[0],
           "ratio_to_best": stats.ratio(own.median, best[0]) if own and best[0] else None,
           "disjoint_from_best": bool(own and best[1] and own.disjoint(spreads[best[1]])),
           "ratio_to": {name: stats.ratio(own.median, median)
                        for name, median in medians.items() if own and name != subject}}
    return {**row, "verdict": _verdict(row)}


def _faulting(cells, names, results):
    """Arm to the number of cells up to the mark in which some end of it faults in some run, of how
    many, and the worst of them."""
    table = {}
    for name in names:
        counted, found = 0, []
        for index, cell in enumerate(cells):
            faults, _ = _worst(results, index, cell, name, FAULTS)
            if faults is not None and cell.within_mark:
                counted += 1
                found += [(faults, f"{cell.workload}, {cell.name}")] * (faults > 0)
        worst = max(found, default=(0, None))
        table[name] = {"cells": counted, "with_faults": len(found), "worst": worst[0],
                       "worst_cell": worst[1]}
    return table


def collect(cells, arms, results, subject):
    """None where the subject did not run."""
    names = [arm.name for arm in arms]
    if subject not in names:
        return None
    rows = [_row(index, cell, names, results, subject) for index, cell in enumerate(cells)]
    gated = [row for row in rows if row["within_mark"] and row["faults"] is not None]
    timed = [row for row in rows if row["ratio_to_best"]]
    return {"subject": subject, "rows": rows, "faulting": _faulting(cells, names, results),
            "calls_counted": any(row["calls"] is not None for row in gated),
            "clean": [sum(not row["faults"] and not row["calls"] and not row["failed"]
                          for row in gated), len(gated)],
            "fast": [sum(row["ratio_to_best"] <= SLACK for row in timed), len(timed)]}


def _text(value, write):
    return write(value) if value is not None else "-"


def _by_end(parts):
    return " / ".join(stats.per_message(part) for part in parts) or "-"


def show(summary, out):
    out(f"\n== Summary: {summary['subject']} ==")
    for workload in dict.fromkeys(row["workload"] for row in summary["rows"]):
        lines = []
        for row in summary["rows"]:
            if row["workload"] != workload:
                continue
            apart = "*" if row["disjoint_from_best"] else " "
            lines.append((row["cell"], [
                _by_end(row["faults_by_end"]), _by_end(row["calls_by_end"]),
                _text(row["ns"], stats.duration), _text(row["best_other_ns"], stats.duration),
                row["best_other"] or "-", _text(row["ratio_to_best"], finely) + apart,
                row["verdict"]]))
        tables.render(f"{workload} (faults and calls a message, ping / echo: the worst run; * the "
                      "ranges of the runs are disjoint)",
                      ["faults", "calls", "time", "best other", "which", "ratio", "verdict"], lines,
                      out)
    lines = [(name, [f"{one['with_faults']} of {one['cells']}",
                     stats.per_message(one["worst"]), one["worst_cell"] or "-"])
             for name, one in summary["faulting"].items()]
    tables.render("Which arm faults in some cell up to the mark (both ends, the worst run)",
                  ["cells with faults", "most a message", "in"], lines, out)
    calls = " and 0 memory calls" if summary["calls_counted"] else " (calls were not counted)"
    out("")
    out("{} of {} cells up to the mark: 0.00 faults{} a message at every end"
        .format(*summary["clean"], calls))
    out("{} of {} cells: at most {:.2f} x the time of the best other arm"
        .format(*summary["fast"], SLACK))
