"""What a program holds, opens and leaves running. Uses only the standard library, on Linux."""
import ctypes
import os
import pathlib
import re
import select
import time

PR_SET_CHILD_SUBREAPER = 36
IN_OPEN = 0x20
ORPHANS_END_WITHIN = 10.0  # seconds: the machine may be busy


def resident_bytes(pid):
    """The memory of a process, 0 once it has ended."""
    found = re.search(r"^VmRSS:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


class Opens:
    """From now on, sees when anybody opens the file."""

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.watch = libc.inotify_init1(os.O_CLOEXEC)
        if self.watch < 0 or libc.inotify_add_watch(self.watch, os.fsencode(path), IN_OPEN) < 0:
            raise OSError(ctypes.get_errno(), f"inotify of {path}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.watch)

    def wait(self, seconds):
        return bool(select.select([self.watch], [], [], seconds)[0])


def adopt_orphans():
    """From now on, orphaned processes become children of this process."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children():
    found = set()
    for task in pathlib.Path("/proc/self/task").iterdir():
        found |= set((task / "children").read_text().split())
    return found


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except FileNotFoundError:
        return "gone"


def orphans():
    """The names of processes that outlive their parents; REQUIRES that this process has no child left to wait for."""
    deadline = time.monotonic() + ORPHANS_END_WITHIN
    while True:
        reap()
        left = children()
        if not left or time.monotonic() > deadline:
            return [name_of(pid) for pid in left]
        time.sleep(0.01)
