#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One of two nodes of rospy that send messages to and fro. A rosmaster has to run."""

import os
import queue
import sys
import time

# The source tree may be read-only, and should stay clean in any case.
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from weirbench import endpoint  # noqa: E402

BENCH = "rospy"


def parse(words):
    parser = endpoint.Parser(BENCH, __doc__)
    parser.add_argument("--buff-size", metavar="N", type=endpoint.read_bytes(1, 1 << 30),
                        help="how much the subscriber asks the socket for at once, as nodes are "
                        "told to raise it for large messages (default rospy's, which is 64K)")
    parser.add_argument("--queue", metavar="N", type=endpoint.read_count(2, 1000), default=10,
                        help="length of the queues (default 10)")
    parser.add_argument("--port", metavar="N", type=endpoint.read_count(1, 65535), default=11411,
                        help="where rosmaster listens, on 127.0.0.1 (default 11411)")
    return parser.parse_args(words)


def surround(port):
    """Neither a name nor a file of the machine's own ROS plays a part. rospy reads this as it is
    loaded."""
    folder = os.environ.get("BENCH_FOLDER", ".")
    for name in ("ROS_HOSTNAME", "ROS_NAMESPACE"):
        os.environ.pop(name, None)
    os.environ.update(ROS_IP="127.0.0.1", ROS_MASTER_URI=f"http://127.0.0.1:{port}",
                      ROS_HOME=folder, ROS_LOG_DIR=folder)


class Node:
    """
    rospy calls back in the thread that receives. That thread lets go of a message and of the bytes
    that it was made of when it has the next one; the thread that sends keeps what it sent last
    until it sends again. So these are live at the marks of the steady part, the same ones at both.

    Now and then a thread is late, and holds on to its message when the next one is already being
    made. So that the memory this takes is there before the steady part, the messages of the warm-up
    go in pairs, as fast as they come back.
    """

    def __init__(self, end, options, rospy, kind):
        self.end, self.kind, self.is_ping = end, kind, end.role == "ping"
        self.met, self.over, self.come = False, False, 0
        self.news = queue.SimpleQueue()  # of what has come, for the main thread
        there, back = ("there", "back") if self.is_ping else ("back", "there")
        self.out = rospy.Publisher(there, kind, queue_size=options.queue, tcp_nodelay=True)
        wanted = {"buff_size": options.buff_size} if options.buff_size else {}
        rospy.Subscriber(back, kind, self.receive, queue_size=options.queue, tcp_nodelay=True,
                         **wanted)

    def receive(self, message):
        # rospy logs what a callback raises and goes on; here it ends the run.
        try:
            self.take(message.data)
        except Exception as error:  # pylint: disable=broad-except
            self.end.stop(f"{type(error).__name__}: {error}")

    def take(self, data):
        if not data:
            if not self.is_ping:
                self.out.publish(self.kind())
            self.met = True
            self.news.put(None)
            return
        number = self.end.number(data)
        if number == endpoint.LAST:
            self.over = True
            self.news.put(None)
            return
        if number != self.come:
            self.end.stop(f"message {number} came instead of {self.come}")
        if self.is_ping:
            self.end.returned(number)
        else:
            self.out.publish(self.kind(data=data))
            # What the next message takes begins to be taken before its callback, so its part
            # begins where this one's ends.
            self.end.end(number)
            self.end.begin(number + 1)
        self.come += 1
        self.news.put(None)

    def send(self, number, size=None):
        self.out.publish(self.kind(data=self.end.payload(number, size)))

    def wait_until(self, holds, what):
        """Wait for news until it `holds`."""
        while not holds():
            try:
                self.news.get(timeout=endpoint.PATIENCE_S)
            except queue.Empty:
                self.end.stop(f"{what} in {endpoint.PATIENCE_S} s")

    def await_echo(self, number):
        self.wait_until(lambda: self.come > number, f"message {number} did not come back")

    def meet(self):
        """Nothing that is published before both connections stand arrives: so empty messages go
        until one comes back."""
        last = time.monotonic() + endpoint.PATIENCE_S
        while not self.met:
            if time.monotonic() > last:
                self.end.stop(f"the echo was not found in {endpoint.PATIENCE_S} s")
            self.out.publish(self.kind())
            time.sleep(0.02)

    def warm_up(self):
        for number in range(self.end.warmup):
            self.send(number)
            if number % 2 == 1 or number + 1 == self.end.warmup:
                self.await_echo(number)
            self.end.end(number)

    def ping(self):
        self.meet()
        self.warm_up()
        for number in range(self.end.warmup, self.end.count):
            self.end.wait(number)
            self.end.begin(number)
            self.end.sends()
            self.send(number)
            self.await_echo(number)
            self.end.end(number)
        self.send(endpoint.LAST, endpoint.LEAST)
        last = time.monotonic() + endpoint.PATIENCE_S
        while self.out.get_num_connections() > 0 and time.monotonic() < last:
            time.sleep(0.005)

    def echo(self):
        self.wait_until(lambda: self.over, "no message came")


def main():
    options = parse(sys.argv[1:])
    surround(options.port)
    try:
        import rosgraph  # pylint: disable=import-outside-toplevel
        import rospy  # pylint: disable=import-outside-toplevel
        from std_msgs.msg import UInt8MultiArray  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        endpoint.stop(BENCH, f"{error} (on Debian: python3-rospy python3-std-msgs)")
    last = time.monotonic() + endpoint.PATIENCE_S
    while not rosgraph.is_master_online():
        if time.monotonic() > last:
            endpoint.stop(BENCH, f"no rosmaster answers at {os.environ['ROS_MASTER_URI']}")
        time.sleep(0.02)
    end = endpoint.Endpoint(BENCH, options)
    rospy.init_node(f"weir_{options.role}", disable_signals=True)
    node = Node(end, options, rospy, UInt8MultiArray)
    node.ping() if options.role == "ping" else node.echo()
    end.print()
    rospy.signal_shutdown("all messages are handled")


if __name__ == "__main__":
    main()
