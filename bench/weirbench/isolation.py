# SPDX-License-Identifier: Apache-2.0
"""A network, process, mount and IPC namespace of one's own, so that what is started there finds
nobody else, is found by nobody, and ends with its first process. Done by the C library, because
this has to work before Python had functions for it and where the tools for it are not installed."""

import ctypes
import errno
import fcntl
import os
import socket
import struct

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER = 0x00020000, 0x08000000, 0x10000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
SPACES = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 1 << 14, 1 << 18
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SIOCSIFFLAGS, IFF_UP, IFF_LOOPBACK, IFF_RUNNING = 0x8914, 0x1, 0x8, 0x40

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name, *arguments):
    if getattr(_libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _mount(source, target, kind, flags):
    _call("mount", source, target, kind, ctypes.c_ulong(flags), None)


def _write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", IFF_UP | IFF_LOOPBACK | IFF_RUNNING)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, request)


def separate():
    """Leave the namespaces that all share; the next child is the first process of the new ones.
    Returns None, or why that is not permitted; then nothing has changed."""
    user, group = os.geteuid(), os.getegid()
    try:
        _call("unshare", SPACES)
    except OSError as error:
        if error.errno != errno.EPERM:
            return error.strerror
        try:  # without privileges it takes a user namespace, in which this process has them
            _call("unshare", SPACES | CLONE_NEWUSER)
        except OSError as refusal:
            return refusal.strerror
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    _loopback_up()
    return None


def problem():
    """Why this is not permitted, or None: tried by a child, so that this process stays here."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, (separate() or "").encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text or None


def settle():
    """In the first process of the new namespaces: mounts that fit them, as far as permitted. A
    /proc that numbers processes as they see themselves, and shared memory that ends with them."""
    for mount in ((b"none", b"/", None, MS_REC | MS_PRIVATE),
                  (b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC),
                  (b"tmpfs", b"/dev/shm", b"tmpfs", MS_NOSUID | MS_NODEV)):
        try:
            _mount(*mount)
        except OSError:
            if mount[1] == b"/":
                return  # what is mounted now would be seen outside


def end_with_parent(signal):
    """This process gets the signal when its parent ends in whatever way."""
    _libc.prctl(PR_SET_PDEATHSIG, signal)


def adopt_orphans():
    """Processes below this one that lose their parent become its own children."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
