"""Runs a program as a container does by default: as root without most capabilities, in folders of its
own, and with a filter that refuses namespaces, mounts and the kernel's rarer interfaces.

Usage: container.py [--root FOLDER] [--cd FOLDER] [--no-landlock] -- PROGRAM [ARGUMENT]...

Needs root. Exits 77 where this machine permits no such thing. What it changes ends with the program.
"""
import argparse
import ctypes
import errno
import os
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)

MS_BIND, MS_REC, MS_PRIVATE = 1 << 12, 1 << 14, 1 << 18
CLONE_NEWNS, CLONE_NEWPID = 0x00020000, 0x20000000
NAMESPACE_FLAGS = 0x7E020000  # of clone: any new namespace
PR_SET_SECCOMP, PR_CAPBSET_DROP, SECCOMP_MODE_FILTER = 22, 24, 2

# What Docker leaves to root: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP,
# NET_BIND_SERVICE, NET_RAW, SYS_CHROOT, MKNOD, AUDIT_WRITE, SETFCAP.
KEPT_CAPABILITIES = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31}

# x86-64 numbers. Docker's default filter refuses these with EPERM without capabilities such as CAP_SYS_ADMIN.
REFUSED = {
    "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442,
    "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "keyctl": 250, "add_key": 248, "request_key": 249,
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_by_handle_at": 304,
    "init_module": 175, "finit_module": 313, "delete_module": 176, "kexec_load": 246, "reboot": 169,
    "swapon": 167, "swapoff": 168, "settimeofday": 164, "quotactl": 179, "acct": 163, "fanotify_init": 300,
    "move_pages": 279, "mbind": 237, "set_mempolicy": 238, "get_mempolicy": 239, "iopl": 172, "ioperm": 173,
}
LANDLOCK = (444, 445, 446)
CLONE, CLONE3, ARCH_X86_64 = 56, 435, 0xC000003E


def check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, kind, flags=0, options=None):
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    check(LIBC.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]), f"mount {target}")


def instruction(code, value, if_true=0, if_false=0):
    return struct.pack("HBBI", code, if_true, if_false, value)


def filter_program(refused):
    load, equal, any_bit, leave = 0x20, 0x15, 0x45, 0x06
    allow, kill = 0x7FFF0000, 0x80000000
    refuse = lambda error: 0x00050000 | error
    # In seccomp_data, the architecture is at offset 4, the call number at 0, the first argument at 16.
    program = [instruction(load, 4), instruction(equal, ARCH_X86_64, 1, 0), instruction(leave, kill),
               instruction(load, 0)]
    for number in refused:
        program += [instruction(equal, number, 0, 1), instruction(leave, refuse(errno.EPERM))]
    program += [instruction(equal, CLONE3, 0, 1), instruction(leave, refuse(errno.ENOSYS)),
                instruction(equal, CLONE, 0, 3), instruction(load, 16),
                instruction(any_bit, NAMESPACE_FLAGS, 0, 1), instruction(leave, refuse(errno.EPERM)),
                instruction(leave, allow)]
    return b"".join(program), len(program)


def install_filter(refused):
    code, length = filter_program(refused)
    memory = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", length, ctypes.addressof(memory))
    # Installed without no_new_privs, which takes CAP_SYS_ADMIN, so that set-user-id programs (apt's helpers) still
    # work.
    check(LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0), "seccomp")


def drop_capabilities():
    last = int(open("/proc/sys/kernel/cap_last_cap").read())
    for capability in set(range(last + 1)) - KEPT_CAPABILITIES:
        check(LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0), "dropping a capability")


def make_devices(root):
    """A /dev, /dev/shm and /proc like those of a container."""
    devices = ["null", "zero", "full", "random", "urandom", "tty"]
    mount("tmpfs", f"{root}/dev", "tmpfs", 0, "mode=755,size=64k")
    for name in devices:
        open(f"{root}/dev/{name}", "w").close()
        mount(f"/dev/{name}", f"{root}/dev/{name}", None, MS_BIND)
    for name in ("fd", "stdin", "stdout", "stderr"):
        os.symlink("/proc/self/fd" + {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}[name],
                   f"{root}/dev/{name}")
    os.mkdir(f"{root}/dev/shm")
    mount("tmpfs", f"{root}/dev/shm", "tmpfs", 0, "mode=1777,size=64m")
    mount("proc", f"{root}/proc", "proc")


def enter(arguments):
    """Runs in new mount and pid namespaces, which the program cannot tell from the host's."""
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    if arguments.root:
        make_devices(arguments.root)
        os.chroot(arguments.root)
    else:
        mount("proc", "/proc", "proc")
    os.chdir(arguments.cd)
    # The filter needs CAP_SYS_ADMIN. Dropping it from the bounding set takes effect only at the next exec.
    drop_capabilities()
    install_filter([*REFUSED.values(), *(LANDLOCK if arguments.no_landlock else ())])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", default="")
    parser.add_argument("--cd", default="/")
    parser.add_argument("--no-landlock", action="store_true")
    parser.add_argument("program", nargs="+")
    arguments = parser.parse_args()
    if os.geteuid() != 0 or os.uname().machine != "x86_64":
        print("container.py: needs root on x86-64", file=sys.stderr)
        return 77
    if LIBC.unshare(CLONE_NEWNS | CLONE_NEWPID) != 0:
        print("container.py: this machine refuses namespaces itself", file=sys.stderr)
        return 77
    child = os.fork()  # pid 1 of the namespace: whatever it starts ends with it
    if child == 0:
        try:
            enter(arguments)
            os.execvp(arguments.program[0], arguments.program)
        except OSError as error:
            print(f"container.py: {error}", file=sys.stderr)
            os._exit(125)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
