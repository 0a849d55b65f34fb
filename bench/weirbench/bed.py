# SPDX-License-Identifier: Apache-2.0
"""Runs one bed once: its services, then the echo, then the ping, in a temporary folder, until both
endpoints have ended; and reads what they print."""

import json
import os
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

from . import counting, isolation
from .cells import ROLES

OF_BOTH = ("faults_per_message", "first_faults", "rss_peak_kib")  # told of each role in the result


class Failure(Exception):
    """The bed gave no result; the text says why."""


def words_of(command, folders):
    """Split a command as a shell does. A program that is named without a folder is taken from the
    first of `folders` that has it, or else from the search path; and no path depends on the folder
    that the command will run in. Raises ValueError."""
    words = shlex.split(command)
    if not words:
        raise ValueError("a command is empty")
    name = words[0]
    places = [name] if "/" in name else [os.path.join(folder, name) for folder in folders]
    found = next((place for place in places if os.access(place, os.X_OK)), None)
    found = found or shutil.which(name)
    if not found:
        raise ValueError(f"there is no program '{name}'")
    return [os.path.abspath(found), *words[1:]]


def _ending(status):
    return f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"


class Part:
    """One process of the bed, with a session of its own and its output in files."""

    def __init__(self, name, words, folder, environment):
        self.name, self.folder = name, folder
        with open(self._path("out"), "wb") as out, open(self._path("err"), "wb") as err:
            self.process = subprocess.Popen(
                words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                stderr=err, start_new_session=True)
        self.ended = os.pidfd_open(self.process.pid)

    def _path(self, ending):
        return os.path.join(self.folder, f"{self.name.replace(' ', '-')}.{ending}")

    def text(self, ending):
        with open(self._path(ending), encoding="utf-8", errors="replace") as file:
            return file.read()

    def problem(self):
        """How it ended, with the last line of its complaint."""
        last = (self.text("err").strip().splitlines() or [""])[-1]
        return f"{self.name} {_ending(self.process.wait())}" + (f": {last}" if last else "")

    def line(self):
        try:
            line = json.loads(self.text("out"))
        except ValueError:
            line = None
        if not isinstance(line, dict):
            raise Failure(f"{self.name} printed something else than one JSON line")
        return line


class Bed:
    """`programs`: the folder of those that were built; `commands`: role to words; `services`: lists
    of words; `variables`: for the endpoints only; `trace`: prefix of the files for strace's output,
    or None."""

    def __init__(self, programs, commands, services, variables, trace, limit):
        self.programs, self.commands, self.services = programs, commands, services
        self.variables, self.trace, self.limit = variables, trace, limit
        self.parts = []

    def run(self):
        """The merged line of both endpoints."""
        with tempfile.TemporaryDirectory(prefix="weir-bed-") as folder:
            try:
                return self._run(folder)
            finally:
                self._end()

    def _run(self, folder):
        common = {**os.environ, "BENCH_FOLDER": folder, "BENCH_PROGRAMS": self.programs,
                  "ROS_HOME": folder, "ROS_LOG_DIR": os.path.join(folder, "log")}
        deadline = time.monotonic() + self.limit
        for number, words in enumerate(self.services, 1):
            self.parts.append(Part(f"service {number}", words, folder, common))
        endpoints = {}
        for role in ("echo", "ping"):
            words, environment = self.commands[role], {**common, **self.variables}
            if self.trace:
                words = counting.strace(f"{self.trace}.{role}", self.variables) + words
                environment = common
            endpoints[role] = Part(role, words, folder, environment)
            self.parts.append(endpoints[role])
        self._wait(set(endpoints.values()), deadline)
        return self._merged({role: part.line() for role, part in endpoints.items()})

    def _wait(self, left, deadline):
        """Until all that are `left` have ended well. Nothing else may end before."""
        poll = select.poll()
        by_file = {part.ended: part for part in self.parts}
        for file in by_file:
            poll.register(file, select.POLLIN)
        while left:
            ready = poll.poll(max(0, deadline - time.monotonic()) * 1000)
            if not ready:
                names = " and ".join(sorted(part.name for part in left))
                raise Failure(f"{names} did not end within {self.limit} s")
            for file, _ in ready:
                part = by_file[file]
                if part not in left or part.process.wait() != 0:
                    raise Failure(self._problems(part))
                left.discard(part)
                poll.unregister(file)

    def _problems(self, first):
        """When one endpoint fails the other often does too, and only one of the two knows why."""
        time.sleep(0.2)
        others = [part for part in self.parts if part is not first and part.process.poll()]
        return "; ".join(part.problem() for part in [first, *others])

    @staticmethod
    def _merged(lines):
        merged = dict(lines["ping"])
        for role in ROLES:
            for key in OF_BOTH:
                if key not in lines[role]:
                    raise Failure(f"{role} does not tell its {key}")
                merged[f"{role}_{key}"] = lines[role][key]
        return merged

    def _end(self):
        """Nothing stays: neither the parts, nor what they started and left behind."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for part in self.parts:
            try:
                os.killpg(part.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            part.process.wait()
            os.close(part.ended)
        if os.getpid() == 1:
            try:
                os.kill(-1, signal.SIGKILL)
            except ProcessLookupError:
                pass
        while self._orphans():
            time.sleep(0.005)

    @staticmethod
    def _orphans():
        """Kill and collect children that came here when their parent ended; are there any left?"""
        try:
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            return False
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
                if entry.isdigit() and int(fields[1]) == os.getpid():
                    os.kill(int(entry), signal.SIGKILL)
            except (OSError, IndexError, ValueError):
                continue
        return True


def run(bed):
    """The line of a bed, run by a child that has the machine's other processes out of reach where
    that is permitted, or else at least takes all of its own with it; and why it was not permitted,
    or None. A bed that failed has {"failure": why} for its line."""
    problem = isolation.separate()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os._exit(_child(bed, writer, problem is None))
    os.close(writer)

    def end(*_):
        os.kill(child, signal.SIGTERM)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    with os.fdopen(reader, encoding="utf-8") as answers:
        answer = answers.read()
    os.waitpid(child, 0)
    return json.loads(answer or '{"failure": "it was interrupted"}'), problem


def _child(bed, writer, separate):
    """Run the bed and write its answer."""
    def stop(*_):
        raise SystemExit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, stop)
    isolation.end_with_parent(signal.SIGTERM)
    if separate:
        isolation.settle()
    else:
        isolation.adopt_orphans()
    try:
        answer = bed.run()
    except Failure as failure:
        answer = {"failure": str(failure)}
    except SystemExit:
        return 1
    with os.fdopen(writer, "w", encoding="utf-8") as file:
        json.dump(answer, file)
    return 0
