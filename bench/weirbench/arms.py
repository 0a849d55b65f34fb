# SPDX-License-Identifier: Apache-2.0
"""The arms of a comparison: each is an allocator's library and the environment that configures it.
Libraries are looked up where the dynamic linker looks; what is not installed is left out with one
line that says so."""

import os
import re
import shutil
import struct
import subprocess
from dataclasses import dataclass, field

PINNED = str(64 << 20)

# Settings of any allocator that a shell may carry: an arm must be what its name says.
FOREIGN = ("MALLOC_", "JEMALLOC_", "MIMALLOC_", "TCMALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")


@dataclass
class Arm:
    name: str
    library: str = ""  # empty: the C library's own malloc
    settings: dict = field(default_factory=dict)

    def variables(self, inherited_preload=""):
        """What this arm adds to the environment of the program it runs."""
        preload = ":".join(part for part in (self.library, inherited_preload) if part)
        return {**self.settings, **({"LD_PRELOAD": preload} if preload else {})}


# Name, pattern of the library's file name (None: none needed), settings.
KNOWN = [
    ("glibc", None, {}),
    ("glibc-pinned", None,
     {"MALLOC_TRIM_THRESHOLD_": PINNED, "MALLOC_MMAP_THRESHOLD_": PINNED}),
    ("glibc-mmap-only", None, {"MALLOC_MMAP_THRESHOLD_": PINNED}),
    ("jemalloc", r"libjemalloc\.so[.\d]*", {}),
    ("jemalloc-keep", r"libjemalloc\.so[.\d]*",
     {"MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1"}),
    ("mimalloc", r"libmimalloc\.so[.\d]*", {}),
    ("tcmalloc", r"libtcmalloc_minimal\.so[.\d]*", {}),
]
NAMES = [name for name, _, _ in KNOWN] + ["weir"]
PACKAGED = [name for name, _, settings in KNOWN if not settings] + ["weir"]  # not tuned


def clean_environment(keep_weir):
    """This process's environment without any allocator's settings; weir's may stay."""
    drop = FOREIGN if keep_weir else FOREIGN + ("WEIR_",)
    return {key: value for key, value in os.environ.items() if not key.startswith(drop)}


def elf_kind(path):
    """Word size and machine of an ELF file, or None if it is not one."""
    try:
        with open(path, "rb") as file:
            head = file.read(20)
    except OSError:
        return None
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return None
    return head[4], struct.unpack("<H" if head[5] == 1 else ">H", head[18:20])[0]


def _version_key(path):
    return [int(part) for part in re.findall(r"\d+", os.path.basename(path).partition(".so")[2])]


def _linker_cache():
    tool = shutil.which("ldconfig", path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin")
    if not tool:
        return []
    try:
        listing = subprocess.run([tool, "-p"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return []
    return [line.rpartition(" => ")[2].strip() for line in listing.splitlines() if " => " in line]


def _library_folders():
    folders = [f for f in os.environ.get("LD_LIBRARY_PATH", "").split(":") if f]
    for root in ("/usr/local/lib", "/usr/lib", "/lib", "/usr/lib64", "/lib64"):
        folders.append(root)
        multiarch = os.path.join(root, os.uname().machine + "-linux-gnu")
        folders.append(multiarch)
    return [folder for folder in folders if os.path.isdir(folder)]


def find_library(pattern):
    """The newest library whose file name matches and which this machine's programs can load."""
    candidates = _linker_cache()
    for folder in _library_folders():
        candidates += [os.path.join(folder, name) for name in os.listdir(folder)]
    native = elf_kind("/proc/self/exe")
    fitting = [path for path in dict.fromkeys(candidates)
               if re.fullmatch(pattern, os.path.basename(path)) and elf_kind(path) == native]
    return max(fitting, key=_version_key, default=None)


def _preload_problem(library, probe):
    """Run the probe under the library; the reason why that does not work, or None."""
    environment = {**clean_environment(False), "LD_PRELOAD": library}
    try:
        run = subprocess.run([probe], env=environment, capture_output=True, text=True, timeout=30,
                             check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if "cannot be preloaded" in run.stderr:
        return "it cannot be preloaded: " + run.stderr.strip().splitlines()[0]
    if run.returncode != 0:
        return f"a trivial program ends with status {run.returncode} under it"
    return None


def choose(build, extra, only, probe, say):
    """The arms to run, in order. `extra` holds (name, file) pairs; `only` names, or nothing for
    all; `probe` is a program to try each library on; `say` takes the lines about what is left
    out."""
    found = []
    wanted = KNOWN + [("weir", os.path.join(build, ".libs", "libweir_malloc.so"), {})]
    wanted += [(name, path, {}) for name, path in extra]
    for name, library, settings in wanted:
        if only and name not in only:
            continue
        if library is None:
            found.append(Arm(name, "", settings))
            continue
        known = (name, library, settings) in KNOWN
        path = find_library(library) if known else os.path.abspath(library)
        if path is None or not os.path.exists(path):
            what = ("its library is not installed" if known else
                    f"{os.path.basename(library)} is not in the build folder")
            say(f"{name} is left out: {what}")
            continue
        problem = _preload_problem(path, probe)
        if problem:
            say(f"{name} is left out: {problem}")
            continue
        found.append(Arm(name, path, settings))
    return found


def package_version(path):
    """The version of the distribution's package that owns a library, if that can be told."""
    real = os.path.realpath(path)
    for candidate in (path, real, real.replace("/usr/lib/", "/lib/", 1)):
        try:
            owner = subprocess.run(["dpkg-query", "-S", candidate], capture_output=True, text=True,
                                   check=False).stdout.partition(": ")[0].split(",")[0]
            if owner:
                return subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}", owner],
                                      capture_output=True, text=True, check=False).stdout or None
        except OSError:
            return None
    return None
