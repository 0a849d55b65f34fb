# SPDX-License-Identifier: Apache-2.0
"""The messages suite: beds, each two endpoints that pass messages to and fro over real middleware,
and what they need. bench/endpoints runs one; a bed's commands name programs of the build's bench
folder, of the source's, or of the search path."""

import json
import os
from dataclasses import dataclass, field

from . import stats
from .cells import KIB, MIB, TOPOLOGIES, Cell

SHOWS = ["ping_faults_per_message", "echo_faults_per_message", "ping_calls_per_message",
         "echo_calls_per_message", "ns_p50", "ping_rss_peak_kib", "echo_rss_peak_kib"]
GRAPH_SHOWS = ["faults_per_message", "calls_per_message", "ns_mean", "ns_mean_all", "ns_publish",
               "rss_peak_kib"]
HERE = os.path.dirname(os.path.realpath(__file__))
PYTHON = "/usr/bin/python3"  # the system's own, for which distributions package modules


@dataclass
class Bed:
    name: str  # and the workload of its cells
    heading: str
    cells: callable
    built: list = field(default_factory=list)  # programs that configure may leave out
    needs: list = field(default_factory=list)  # commands
    modules: list = field(default_factory=list)  # modules of PYTHON
    packages: str = ""  # what to install where any of that is missing


def pace(hz):
    return f"{hz} Hz" if hz else "flat out"


def cell(name, echo, ping, size, hz, messages, warmup, services=(), live=4, hurry_ns=0):
    """A cell of a bed, for its list function. Both commands get --size, --messages and --warmup,
    ping also --hz. `live`: about how many times its size a message takes in an endpoint that has
    most of it; `hurry_ns`: about how long a message takes flat out."""
    common = f" --size {size} --messages {messages} --warmup {warmup}"
    arguments = [word for service in services for word in ("--service", service)]
    arguments += ["--echo", echo + common, "--ping", f"{ping}{common} --hz {hz}"]
    each = 1 / hz if hz else (hurry_ns or 50e3 + 2 * size) / 1e9
    return Cell("", name, "endpoints", arguments, SHOWS, seconds=0.5 + (messages + warmup) * each,
                messages=messages, payload=live * size, needs_kib=8 * live * size // KIB)


def roundtrip():
    """What rmw_zenoh does with a stamped byte array, in C++ and in Python: buffers in place, 4 x
    the size + 64 KiB, or of the right size; fresh heaps, or one that had a large block before."""
    def one(size, hz, messages, buffer="exact", large=(), transport="tcp", program="roundtrip"):
        parts = [stats.size(size), buffer, pace(hz)]
        parts += [transport] * (transport != "tcp") + ["Python"] * (program != "roundtrip")
        parts += [f"large block before: {' and '.join(large)}"] * bool(large)
        commands = {role: f"{program} --role {role} --transport {transport} --buffer {buffer}"
                          f" --history {'large' if role in large else 'none'}"
                    for role in ("ping", "echo")}
        return cell(", ".join(parts), commands["echo"], commands["ping"], size, hz, messages,
                    20 if hz == 10 else 100)

    cells = [one(MIB, hz, messages, buffer) for hz, messages in ((10, 20), (200, 400), (0, 800))
             for buffer in ("exact", "wide", "in-place")]
    cells += [one(MIB, 200, 400, large=large) for large in (["ping"], ["echo"], ["ping", "echo"])]
    for size in (64, 256 * KIB, 4 * MIB, 8 * MIB):
        cells += [one(size, 10, 20), one(size, 50 if size > 4 * MIB else 200, 200)]
    cells.append(one(MIB, 200, 400, transport="unix"))
    cells += [one(size, 0, 4000) for size in (4 * KIB, 16 * KIB, 60 * KIB)]
    cells += [one(MIB, hz, messages, program="roundtrip.py")
              for hz, messages in ((10, 20), (200, 400))]
    return cells


MONT_BLANC = TOPOLOGIES + "mont_blanc.json"
GRAPH_MS, GRAPH_WARMUP_MS = 3000, 500
TAGUS = 1000000  # bytes, as in rmw_zenoh#342; the published graph has 250,000


def received(topology, ms):
    """About how many messages the subscribers of a topology get in that time."""
    with open(os.path.join(HERE, os.pardir, topology), encoding="utf-8") as file:
        nodes = json.load(file)["nodes"]
    topics = [end["topic_name"] for node in nodes for end in node.get("subscribers", [])]
    return round(sum(ms / end["period_ms"] * topics.count(end["topic_name"])
                     for node in nodes for end in node.get("publishers", [])))


def graph_cell(name, buffers, tagus, shows):
    arguments = ["--topology", MONT_BLANC, "--focus", "tagus", "--buffers", buffers, "--run-ms",
                 GRAPH_MS, "--warmup-ms", GRAPH_WARMUP_MS, "--set", f"tagus={tagus}"]
    return Cell("", name, "graph", arguments, shows,
                seconds=0.3 + (GRAPH_MS + GRAPH_WARMUP_MS) / 1000,
                messages=received(MONT_BLANC, GRAPH_MS), payload=24 * tagus, needs_kib=1 << 20)


def graph():
    return [graph_cell("Mont Blanc, tagus 1 MB", "malloc", TAGUS, GRAPH_SHOWS),
            graph_cell("Mont Blanc, tagus 1 MB, weir_pool", "pool", TAGUS, GRAPH_SHOWS),
            graph_cell("Mont Blanc as published", "malloc", TAGUS // 4, GRAPH_SHOWS)]


def pooling():
    """Both in one process, so that a disturbance of the machine hits both."""
    return [graph_cell("Mont Blanc, tagus 1 MB, by turns", "turns", TAGUS,
                       ["ns_malloc", "ns_pool", "malloc_by_pool", "ns_p50_malloc", "ns_p50_pool"])]


def fleet():
    shows = ["pss_total_kib", "pss_router_kib", "pss_node_kib"]
    names = {"start": "batches made at start and written", "lazy": "made when first needed, kept",
             "demand": "made for each use"}
    return [Cell("", name, "fleet", ["--mode", mode, "--run-ms", 3000], shows, seconds=4.5,
                 most_reps=3, needs_kib=2 << 20) for mode, name in names.items()]


def batches():
    return [Cell("", "8 B messages in batches of 64 KiB", "fleet", ["--throughput"],
                 ["ns_fresh", "ns_keep", "fresh_cost_percent", "fresh_faults_per_batch"],
                 seconds=9)]


def over_dds(program, label, size, hz, messages, settle_s=0):
    """A cell of a bed on DDS. Warmed up by 300 messages, at 200 Hz where the cell is slower: by then
    the middleware's own buffers have been where they will be."""
    ends = [f"{program} --role {role}" + f" --settle-s {settle_s}" * bool(settle_s)
            for role in ("echo", "ping")]
    one = cell(f"{label}, {stats.size(size)}, {pace(hz)}", *ends, size, hz, messages, 300, live=6)
    one.seconds = settle_s + 2.5 + messages / hz
    one.pause_ms = 1000 if hz == 1 else 0
    return one


def cyclone():
    """At 1 Hz what Cyclone does every 8 seconds falls into the steady part; it has to have been done
    before, like anything else."""
    return [over_dds("cyclone", "Cyclone DDS", size, *rate) for size in (64, MIB)
            for rate in ((1, 8, 10), (10, 30), (200, 400))]


def fastdds():
    return [over_dds("fastdds", "Fast DDS", size, *rate) for size in (64, MIB)
            for rate in ((10, 30), (200, 400))]


def rosidl():
    """One process, three sequences at once."""
    return [Cell("", f"rosidl {stats.size(size)} x3", "rosidl",
                 ["--size", size, "--iterations", iterations],
                 ["faults_per_iteration", "calls_per_message", "ns_median",
                  "system_ns_per_iteration", "rss_peak_kib"],
                 seconds=0.1 + iterations * (2e-6 + 3 * size * 1e-9), messages=iterations,
                 payload=3 * size, needs_kib=12 * size // KIB)
            for size, iterations in ((64, 2000), (256 * KIB, 400), (MIB, 200), (4 * MIB, 50))]


ROSMASTER = "rosmaster --core -p 11411"  # the port that the nodes expect


def of_ros(label, program, size, hz, messages, warmup, options="", live=4):
    """A cell of a bed on ROS 1. Its nodes are warmed up as fast as they can."""
    one = cell(f"{label}, {pace(hz)}", f"{program} --role echo{options}",
               f"{program} --role ping{options}", size, hz, messages, warmup,
               services=[ROSMASTER], live=live)
    one.seconds = 1.5 + warmup * (3e-4 + 3e-9 * size) + messages / hz
    one.pause_ms = 1000 // hz if hz == 1 else 0
    return one


def roscpp():
    """Besides bytes, what cameras and lidars send: an image of 1920x1080 and 1250000 points."""
    cells = [of_ros(f"roscpp, {stats.size(size)}", "roscpp", size, hz, messages, 100)
             for size in (64, MIB) for hz, messages in ((1, 5), (10, 30), (200, 400))]
    for what, size, hz, messages in (("image", 1920 * 1080 * 3, 10, 30),
                                     ("cloud", 1250000 * 16, 4, 12)):
        cells.append(of_ros(f"roscpp, {what}", "roscpp", size, hz, messages, 40,
                            f" --message {what}"))
    return cells


def rospy():
    """Also with the buffer that nodes with large messages are told to set."""
    def one(size, hz, messages, buffer=0):
        label = f"rospy, {stats.size(size)}" + (f", buff_size {stats.size(buffer)}" * (buffer > 0))
        return of_ros(label, "rospy_bed.py", size, hz, messages, 400,
                      f" --buff-size {buffer}" * (buffer > 0))

    cells = [one(size, hz, messages) for size in (64, MIB)
             for hz, messages in ((1, 5), (10, 30), (200, 400))]
    return cells + [one(MIB, hz, messages, 16 * MIB) for hz, messages in ((10, 30), (200, 400))]


BEDS = [
    Bed("roundtrip", "Round trip: serialise, send, take, deserialise, and back", roundtrip,
        built=["roundtrip", ".libs/libroundtrip.so"], packages="libfastcdr-dev"),
    Bed("graph", "A graph of nodes in one process", graph, built=["graph"],
        packages="libjansson-dev"),
    Bed("pooling", "A graph, its buffers from malloc and from a pool by turns", pooling,
        built=["graph"], packages="libjansson-dev"),
    Bed("fleet", "A router, 100 publishers and 100 subscribers: memory", fleet),
    Bed("batches", "Transmission: batches kept, or allocated one by one", batches),
    Bed("cyclone", "Cyclone DDS: ping and echo", cyclone, built=["cyclone"],
        packages="cyclonedds-dev cyclonedds-tools"),
    Bed("fastdds", "Fast DDS, which pools its payloads: ping and echo", fastdds,
        built=["fastdds"], packages="libfastrtps-dev libfastcdr-dev"),
    Bed("rosidl", "Messages in C as rosidl generates them", rosidl, built=["rosidl"],
        packages="librosidl-runtime-c-cpp-dev rosidl-generator-c-cpp rosidl-tools "
        "python3-ament-index"),
    Bed("roscpp", "ROS 1 in C++: ping and echo", roscpp, built=["roscpp"], needs=["rosmaster"],
        packages="libroscpp-dev libstd-msgs-dev libsensor-msgs-dev python3-rosmaster"),
    Bed("rospy", "ROS 1 in Python: ping and echo", rospy, needs=["rosmaster"],
        modules=["rospy", "std_msgs"],
        packages="python3-rospy python3-std-msgs python3-rosmaster"),
]
NAMES = tuple(bed.name for bed in BEDS)


def messages():
    found = []
    for bed in BEDS:
        for one in bed.cells():
            one.workload, one.built, one.packages = bed.name, bed.built, bed.packages
            one.needs, one.modules = [*one.needs, *bed.needs], bed.modules
            found.append(one)
    return found
