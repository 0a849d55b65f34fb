# SPDX-License-Identifier: Apache-2.0
"""What one must know about the machine and the libraries to read the figures, and nothing that
names the machine, its user or its folders."""

import os
import platform

from . import arms as arms_module


def _first(path, key, default=""):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name.strip() == key:
                    return value.strip()
    except OSError:
        pass
    return default


def _chosen(path):
    """The value in brackets, as the kernel marks the one in force."""
    try:
        with open(path, encoding="ascii") as file:
            return file.read().partition("[")[2].partition("]")[0]
    except OSError:
        return ""


def _distribution():
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return ""


def memory_available_kib():
    return int(_first("/proc/meminfo", "MemAvailable", "0").split()[0])


def machine():
    return {
        "distribution": _distribution(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu": _first("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_kib": int(_first("/proc/meminfo", "MemTotal", "0").split()[0]),
        "libc": os.confstr("CS_GNU_LIBC_VERSION") or "",
        "thp": _chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
    }


def arm(one):
    facts = {"settings": one.settings}
    if one.library:
        facts["library"] = os.path.basename(os.path.realpath(one.library))
        facts["package"] = arms_module.package_version(one.library)
    return facts


def machine_line(facts):
    parts = [facts["distribution"], "kernel " + facts["kernel"], facts["libc"],
             f"{facts['cores']} cores {facts['cpu']}".strip(), "THP " + facts["thp"]]
    return ", ".join(part for part in parts if part.strip() and not part.endswith(" "))


def arms_line(facts):
    names = {name: (one.get("package") or one.get("library")) for name, one in facts.items()
             if one.get("library")}
    return "; ".join(f"{name}: {what}" for name, what in names.items())
