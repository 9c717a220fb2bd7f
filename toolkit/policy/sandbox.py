"""`run --sandbox`: a child process that the kernel confines to what the policy allows, whatever runs in it.

The policy judges what ops ask for. The sandbox holds where code does something else: Landlock (Linux 5.13 and newer)
lets the child open only the folders of the policy and those of Python and the system's libraries, and a filter of
system calls (seccomp) takes from it sockets, other processes, and what only administrators need. It is confined before
anything but Python's own start is imported, so that every thread and everything that reads the model is.
"""

from __future__ import annotations

import errno
import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from toolkit.errors import UsageError
from toolkit.policy.rules import Policy

#: what Python and the libraries read: they hold nothing that is anybody's own
_SYSTEM = (
    "/usr", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
    "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/vm", "/sys/devices/system",
    "/sys/fs/cgroup", "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero")
#: system calls that no model needs
_NEVER = (
    "acct", "add_key", "bpf", "chmod", "chown", "chroot", "clock_adjtime", "clock_settime", "delete_module", "fchmod",
    "fchmodat", "fchmodat2", "fchown", "fchownat", "finit_module", "fremovexattr", "fsetxattr", "init_module",
    "io_uring_setup", "ioperm", "iopl", "kexec_file_load", "kexec_load", "keyctl", "lchown", "lremovexattr",
    "lsetxattr", "mknod", "mknodat", "mount", "mount_setattr", "move_mount", "name_to_handle_at", "open_by_handle_at",
    "open_tree", "perf_event_open", "pivot_root", "process_vm_readv", "process_vm_writev", "ptrace", "quotactl",
    "reboot", "removexattr", "request_key", "setdomainname", "sethostname", "setns", "settimeofday", "setxattr",
    "swapoff", "swapon", "umount2", "unshare", "userfaultfd", "utime", "utimensat", "utimes", "futimesat",
)  # fmt: skip
_PROCESSES = (
    "execve", "execveat", "fork", "vfork", "pidfd_open", "pidfd_send_signal", "pidfd_getfd", "rt_sigqueueinfo",
    "rt_tgsigqueueinfo", "tkill",
)  # fmt: skip
_CLONE_THREAD = 0x10000
_HINT = "pip install 'graphmill[sandbox]'"


@dataclass(frozen=True)
class Confinement:
    """What a child may do.

    Attributes:
        read, write: files and folders that exist.
        network: whether it may make sockets.
        process: whether it may start other processes and send them signals.
        parent: the process that it does not outlive; 0: any that started it.
    """

    read: list[str]
    write: list[str]
    network: bool
    process: bool
    parent: int = 0


def confinement_of(policy: Policy, read: Iterable[str], write: Iterable[str]) -> Confinement:
    """What the kernel has to let through for a policy; folders into which something is written are made.

    The kernel knows what exists, and folders, not prefixes: what is allowed for `DIR/NAME*`, or for a DIR/NAME that may
    be written and is not there yet, is allowed for DIR.

    Args:
        read: files that the command itself reads.
        write: folders into which the command itself writes.
    """
    write = list(write)
    for folder in write:
        Path(folder).mkdir(parents=True, exist_ok=True)
    written = [folder for root in policy.write if (folder := _written(root)) is not None]
    for folder in written:
        if not Path(folder).exists():
            Path(folder).mkdir(parents=True)
    reads = [folder for root in policy.read if (folder := _folder(root)) is not None]
    return Confinement(
        sorted({os.path.realpath(path) for path in (*reads, *read) if Path(path).exists()}),
        sorted({os.path.realpath(path) for path in (*written, *write)}),
        policy.network or any("://" in root for root in (*policy.read, *policy.write)),
        policy.process,
    )


def _written(root: str) -> str | None:
    """Likewise for one that may be written: of a name that is not there yet, the folder that it will be in.

    Whether it is to be a file's or a folder's, only the model knows.
    """
    path = _folder(root)
    is_name = path is not None and (not root.endswith("*") or root.endswith("\\*"))
    return os.path.dirname(path) or "/" if path and is_name and not Path(path).exists() else path  # noqa: PTH120


def _folder(root: str) -> str | None:
    """The folder or file of a policy's root; None for a URL."""
    if "://" in root:
        return None
    if root == "*":
        return "/"
    if root.endswith("\\*"):
        return f"{root[:-2]}*"
    return os.path.dirname(root) or "/" if root.endswith("*") else root  # noqa: PTH120 -- a text with a star


def missing() -> list[str]:
    """What cannot be enforced on this system, and why; nothing when all can."""
    found = [reason for reason in (_no_landlock(), _no_seccomp()) if reason]
    if len(found) == 2:
        raise UsageError(f"--sandbox: nothing can be enforced here: {'; '.join(found)}")
    return found


def _no_landlock() -> str | None:
    if sys.platform != "linux":
        return "files are not confined: Landlock is part of Linux"
    try:
        import landlock
    except ImportError:
        return f"files are not confined: {_HINT}"
    try:
        landlock.landlock_abi_version()
    except OSError as error:
        return f"files are not confined: the kernel has no Landlock ({error.strerror})"
    return None


def _no_seccomp() -> str | None:
    try:
        importlib.import_module("pyseccomp")  # which looks for the system's library
    except ImportError:
        return f"system calls are not filtered: {_HINT}"
    except Exception as error:  # without libseccomp it raises a RuntimeError, elsewhere others
        return f"system calls are not filtered: {error}"
    return None


def confine(wanted: Confinement) -> list[str]:
    """Confine this process, for good; call it before there are other threads.

    Returns:
        what is enforced, in lines.

    Raises:
        UsageError: nothing can be.
    """
    missing()
    lines = [_limit(wanted.parent)]
    if _no_landlock() is None:
        lines.append(_confine_files(wanted))
    if _no_seccomp() is None:
        lines.append(_filter_calls(wanted))
    return lines


def _limit(parent: int) -> str:
    import ctypes
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)  # it does not outlive the one that watches it
        if parent and os.getppid() != parent:
            os._exit(128 + signal.SIGKILL)  # which has ended before it could be said
    return "no core dumps (rlimit)"


def _confine_files(wanted: Confinement) -> str:
    import landlock
    from landlock import FSAccess

    version = landlock.landlock_abi_version()
    read_file, read = FSAccess.READ_FILE, FSAccess.READ_FILE | FSAccess.READ_DIR
    write_file = FSAccess.WRITE_FILE | (FSAccess.TRUNCATE if version >= 3 else FSAccess(0))
    write = read | write_file | FSAccess.MAKE_REG | FSAccess.MAKE_DIR | FSAccess.MAKE_SYM
    write |= FSAccess.REMOVE_FILE | FSAccess.REMOVE_DIR | (FSAccess.REFER if version >= 2 else FSAccess(0))
    rules: Any = landlock.Ruleset()
    for path in dict.fromkeys([*_SYSTEM, *_installed(), *wanted.read]):
        if Path(path).exists():
            rules.allow(path, rules=read if Path(path).is_dir() else read_file)
    for path in (*_DEVICES, *wanted.write):
        if Path(path).exists():
            rules.allow(path, rules=write if Path(path).is_dir() else read_file | write_file)
    rules.apply()
    return (
        f"files (Landlock {version}): reads {', '.join(wanted.read) or 'nothing'}, writes "
        f"{', '.join(wanted.write) or 'nothing'}, beside Python and the system's libraries; no program can be started"
    )


def _installed() -> list[str]:
    """Where Python and its packages are, and these ones where they run from a checkout."""
    places = [sys.prefix, sys.base_prefix, sys.exec_prefix, *(path for path in sys.path if path)]
    for package in ("toolkit", "schemas", "commands"):
        spec = importlib.util.find_spec(package)
        places += (spec.submodule_search_locations or []) if spec is not None else []
    return places


def _filter_calls(wanted: Confinement) -> str:
    import pyseccomp as seccomp

    calls: Any = seccomp.SyscallFilter(seccomp.ALLOW)
    denied: Any = seccomp.ERRNO(errno.EPERM)
    names: list[str] = [*_NEVER, *(() if wanted.network else ("socket",)), *(() if wanted.process else _PROCESSES)]
    for name in names:
        _deny(calls, denied, name)
    if not wanted.process:
        me = os.getpid()
        for name in ("kill", "tgkill"):
            _deny(calls, denied, name, seccomp.Arg(0, seccomp.NE, me))
        _deny(calls, denied, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, _CLONE_THREAD, 0))
        # its flags lie in memory, where a filter cannot see them; told that there is none, the library calls clone
        _deny(calls, seccomp.ERRNO(errno.ENOSYS), "clone3")
    calls.load()
    kept = [what for what, is_on in (("network", wanted.network), ("processes", wanted.process)) if is_on]
    return f"system calls (seccomp): {len(names)} are denied; allowed: {', '.join(kept) or 'no network, no processes'}"


def _deny(calls: Any, action: Any, name: str, *arguments: Any) -> None:
    try:
        calls.add_rule(action, name, *arguments)
    except (OSError, ValueError, RuntimeError):
        return  # this processor or this library does not know the call


# -- the parent ------------------------------------------------------------------------------------------

#: what somebody sends to the process that they know of, which is the parent
_HANDED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_HELD_BACK = (*_HANDED_ON, signal.SIGTSTP)


def run_confined(script: Path, wanted: Confinement, arguments: Sequence[str]) -> int:
    """Run a script in a confined child and wait for it.

    The child has a process group of its own, so that it gets each signal once, from here, whether it was sent to this
    process, to its group or by a terminal; what a signal means, the child decides. It never outlives this process.

    Args:
        script: gets the confinement as JSON and the arguments; it confines itself first, and calls `heed_signals` when
            it is ready for them.

    Returns:
        its exit code; 128 and the signal's number where a signal ended it that was not handed on. By one that was,
        this process is ended as well.
    """
    described = json.dumps(asdict(replace(wanted, parent=os.getpid())))
    command = [sys.executable, *_flags(), str(script), described, *arguments]
    before: dict[signal.Signals, Any] = {}
    # the child inherits the mask: until it can do something about a signal, it waits
    signal.pthread_sigmask(signal.SIG_BLOCK, _HELD_BACK)
    waking = signal.set_wakeup_fd(-1)  # this process ends when the child does, however long that takes
    try:
        child = subprocess.Popen(command, process_group=0)

        def hand_on(number: int, frame: object) -> None:
            child.send_signal(number)

        def stop(number: int, frame: object) -> None:
            child.send_signal(signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)
            child.send_signal(signal.SIGCONT)  # when somebody has let this one go on

        for number in _HELD_BACK:
            if signal.getsignal(number) is not signal.SIG_IGN or number in (signal.SIGINT, signal.SIGTERM):
                before[number] = signal.signal(number, stop if number == signal.SIGTSTP else hand_on)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD_BACK)
        code = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD_BACK)
        signal.set_wakeup_fd(waking)
    if -code in before:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code if code >= 0 else 128 - code


def heed_signals() -> None:
    """Take the signals that have waited since the start; called in the child.

    Raises:
        KeyboardInterrupt: SIGINT is one of them.
    """
    for number in (signal.SIGTTIN, signal.SIGTTOU):  # the terminal belongs to the parent's group
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD_BACK)


def _flags() -> list[str]:
    """The interpreter's options that change what a program does, for the child."""
    return [f"-W{option}" for option in sys.warnoptions]


def parse(text: str) -> Confinement:
    """The confinement that `run_confined` gave."""
    return Confinement(**json.loads(text))
