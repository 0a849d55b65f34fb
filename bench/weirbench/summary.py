# SPDX-License-Identifier: Apache-2.0
"""The verdict on one arm, weir unless told otherwise: for each cell of the reuse grid its faults,
its memory calls and its time beside the best of the others; then how many cells meet the aims."""

from . import stats
from . import tables

SLACK = 1.05


def _verdict(row):
    if row["failed"]:
        return "FAILED"
    marks = []
    if row["within_mark"] and row["faults"] != 0:
        marks.append("FAULTS")
    if row["within_mark"] and row["calls"] not in (0, None):
        marks.append("CALLS")
    if row["ratio_to_best"] is not None and row["ratio_to_best"] > SLACK:
        marks.append("SLOW")
    if not marks:
        marks.append("ok")
    if not row["within_mark"]:
        marks.append("(beyond the mark)")
    return " ".join(marks)


def _row(index, cell, subject, arms, results, key):
    own = results.spread(index, subject, key)
    others = {arm.name: results.spread(index, arm.name, key) for arm in arms if arm.name != subject}
    best = stats.best({name: spread.median for name, spread in others.items() if spread}, others)
    faults = results.spread(index, subject, "faults_per_iteration")
    counts = results.calls[index].get(subject)
    row = {"cell": cell.name, "workload": cell.workload, "within_mark": cell.within_mark,
           "failed": own is None or (cell.name, subject) in results.failures,
           "faults": faults.high if faults else None,
           "calls": sum(counts.values()) / cell.messages if counts else None,
           "ns": own.median if own else None, "best_other": best[1], "best_other_ns": best[0],
           "ratio_to_best": stats.ratio(own.median, best[0]) if own and best[0] else None}
    row["verdict"] = _verdict(row)
    return row


def collect(cells, arms, results, subject):
    """Rows for the cells that have a time; None when the subject did not run."""
    if subject not in [arm.name for arm in arms]:
        return None
    rows = []
    for index, cell in enumerate(cells):
        if cell.workload == "reuse":
            rows.append(_row(index, cell, subject, arms, results, "ns_median"))
        elif cell.workload == "speed":
            row = _row(index, cell, subject, arms, results, "ns_per_op")
            reference = results.spread(index, tables.REFERENCE, "ns_per_op")
            row["ratio_to_glibc"] = (stats.ratio(row["ns"], reference.median)
                                     if row["ns"] and reference else None)
            row["verdict"] = ("FAILED" if row["failed"] else "SLOW"
                              if row["ratio_to_glibc"] and row["ratio_to_glibc"] > 1 else "ok")
            rows.append(row)
    clean = [r for r in rows if r["workload"] == "reuse" and r["within_mark"]]
    timed = [r for r in rows if r["workload"] == "reuse" and r["best_other_ns"]]
    speed = [r for r in rows if r["workload"] == "speed" and r.get("ratio_to_glibc")]
    return {
        "subject": subject, "rows": rows,
        "calls_counted": any(r["calls"] is not None for r in clean),
        "clean": [sum(r["faults"] == 0 and not r["calls"] and not r["failed"] for r in clean),
                  len(clean)],
        "fast": [sum(r["ratio_to_best"] is not None and r["ratio_to_best"] <= SLACK
                     for r in timed), len(timed)],
        "speed": [sum(r["ratio_to_glibc"] <= 1 for r in speed), len(speed)],
    }


def finely(value):
    """Three digits, so that what is just over a limit does not look as if it were on it."""
    return f"{value:.3f}x" if value < 100 else f"{value:.0f}x"


def show(summary, out):
    if not summary["rows"]:
        return
    subject = summary["subject"]
    out(f"\n== Summary: {subject} ==")
    reuse = [row for row in summary["rows"] if row["workload"] == "reuse"]

    def text(value, write):
        return write(value) if value is not None else "-"
    if reuse:
        lines = [(row["cell"], [text(row["faults"], stats.per_message),
                                text(row["calls"], stats.per_message),
                                text(row["ns"], stats.duration),
                                text(row["best_other_ns"], stats.duration),
                                row["best_other"] or "-",
                                text(row["ratio_to_best"], finely), row["verdict"]])
                 for row in reuse]
        tables.render("Payload reuse (faults: the worst run)",
                      ["faults", "calls", "time", "best other", "which", "ratio", "verdict"], lines,
                      out)
    speed = [row for row in summary["rows"] if row["workload"] == "speed"]
    if speed:
        lines = [(row["cell"], [text(row["ns"], stats.duration),
                                text(row["ratio_to_glibc"], finely),
                                text(row["best_other_ns"], stats.duration),
                                row["best_other"] or "-",
                                text(row["ratio_to_best"], finely), row["verdict"]])
                 for row in speed]
        tables.render("General speed",
                      ["time", "to glibc", "best other", "which", "ratio", "verdict"], lines, out)
    out("")
    if reuse:
        calls = " and 0 memory calls" if summary["calls_counted"] else " (calls were not counted)"
        out("{} of {} cells up to the mark: 0.00 faults{} a message"
            .format(*summary["clean"], calls))
        out("{} of {} cells: at most {:.2f} x the time of the best other arm"
            .format(*summary["fast"], SLACK))
    if summary["speed"][1]:
        out("{} of {} speed cells: at least as fast as glibc".format(*summary["speed"]))
