"""Whatever write, fsync, rename or unlink fails or is the last one before a crash: the previous checkpoint restores."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit.errors import GraphmillError, NotFoundError, OpError, ResourceExhaustedError
from toolkit.formats.bundle import (
    BundleReader,
    BundleWriter,
    latest_checkpoint,
    merge,
    restore,
    save,
    storage,
    write_state,
)
from toolkit.formats.bundle.check import check
from toolkit.formats.bundle.saver_policy import RetentionPolicy
from toolkit.formats.bundle.storage import TEMPORARY
from toolkit.formats.bundle.transfer import convert

CALLS = ("sys_write", "sys_fsync", "sys_replace", "sys_unlink")


class KilledError(BaseException):
    """Stands for the end of the process: nothing that comes after it touches the disk."""


class Faults:
    """Makes the n-th call of the operating system fail, or be the last one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, kill: bool, code: int = errno.EIO):
        self.count = 0
        self.at = at
        self.kill = kill
        self.code = code
        for name in CALLS:
            monkeypatch.setattr(storage, name, self._wrap(getattr(storage, name)))

    def _wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any) -> Any:
            self.count += 1
            if self.kill and self.count >= self.at:
                raise KilledError
            if self.count == self.at:
                raise OSError(self.code, os.strerror(self.code), str(args[0]))
            return call(*args)

        return wrapped


def values(step: int) -> dict[str, Any]:
    return {
        "big": np.full(300_000, step, np.float64),
        "small": np.array(step),
        "text": np.array([b"%d" % step], object),
    }


def save_step(folder: Path, policy: RetentionPolicy, step: int) -> None:
    with BundleWriter(folder / f"model-{step}", 2) as writer:
        for at, (name, array) in enumerate(values(step).items()):
            writer.add(name, array, shard=at % 2)
    policy.saved(str(folder / f"model-{step}"))


def restored_step(folder: Path) -> int:
    """The step of the latest checkpoint, after checking all of it."""
    prefix = latest_checkpoint(folder)
    assert prefix is not None
    assert check(prefix).findings == []
    big, small, text = restore(prefix, ["big", "small", "text"])
    assert (big == small).all() and text.tolist() == [b"%d" % small]
    return int(small)


def total_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: Callable[[], None]) -> int:
    with monkeypatch.context() as patch:
        faults = Faults(patch, 10**9, kill=False)
        job()
        return faults.count


@pytest.mark.parametrize("kill", [False, True], ids=["fail", "kill"])
@pytest.mark.parametrize("max_to_keep", [1, 5])
def test_saving_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill: bool, max_to_keep: int) -> None:
    counted = tmp_path / "count"
    policy = RetentionPolicy(max_to_keep)
    save_step(counted, policy, 1)
    calls = total_calls(tmp_path, monkeypatch, lambda: save_step(counted, policy, 2))
    assert calls > 10
    seen: set[int] = set()
    for at in range(1, calls + 1):
        folder = tmp_path / f"{at}"
        policy = RetentionPolicy(max_to_keep)
        save_step(folder, policy, 1)
        with monkeypatch.context() as patch:
            Faults(patch, at, kill)
            with contextlib.suppress(OpError, KilledError):
                save_step(folder, policy, 2)
        seen.add(restored_step(folder))
        if not kill:
            assert not [path.name for path in folder.iterdir() if TEMPORARY in path.name], at
        # The next save works and cleans up.
        save_step(folder, policy, 3)
        assert restored_step(folder) == 3
    assert seen == {1, 2}


@pytest.mark.parametrize("kill", [False, True], ids=["fail", "kill"])
def test_saving_over_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill: bool) -> None:
    """Under one name: a failure leaves the old one or the new one; a crash one of them, or none, never a mixture."""
    save(tmp_path / "count", values(1))
    calls = total_calls(tmp_path, monkeypatch, lambda: save(tmp_path / "count", values(2)))
    for at in range(1, calls + 1):
        prefix = tmp_path / f"{at}" / "model"
        save(prefix, values(1))
        with monkeypatch.context() as patch:
            Faults(patch, at, kill)
            with contextlib.suppress(OpError, KilledError):
                save(prefix, values(2))
        try:
            small = int(restore(prefix, ["small"])[0])
        except NotFoundError:
            assert kill
            continue
        assert small in (1, 2) and check(str(prefix)).findings == []
        assert (restore(prefix, ["big"])[0] == small).all()


def test_merging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When joining shares fails, the shares are all still there."""

    def prepare(folder: Path) -> list[Path]:
        for share, (name, array) in enumerate(values(1).items()):
            save(folder / "shares" / f"{share}", {name: array})
        return [folder / "shares" / f"{share}" for share in range(3)]

    shares = prepare(tmp_path / "count")
    calls = total_calls(tmp_path, monkeypatch, lambda: merge(shares, tmp_path / "count" / "all"))
    for at in range(1, calls + 1):
        folder = tmp_path / f"{at}"
        shares = prepare(folder)
        with monkeypatch.context() as patch:
            Faults(patch, at, kill=False)
            try:
                merge(shares, folder / "all")
                done = True
            except OpError:
                done = (folder / "all.index").exists()  # only removing the old indices failed
        whole = [folder / "all"] if done else shares
        assert sum(len(BundleReader(prefix)) for prefix in whole) == 3
        assert all(check(str(prefix)).findings == [] for prefix in whole)


@pytest.mark.parametrize("target", ["out", "out.npz", "out.safetensors"])
def test_converting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    source = tmp_path / "in"
    save(source, values(1))
    before = sorted(path.name for path in tmp_path.iterdir())
    (tmp_path / "count").mkdir()
    calls = total_calls(tmp_path, monkeypatch, lambda: convert(source, tmp_path / "count" / target) and None)
    for at in range(1, calls + 1):
        with monkeypatch.context() as patch:
            faults = Faults(patch, at, kill=False)
            try:
                convert(source, tmp_path / target)
                failed = False
            except GraphmillError:
                failed = True
            assert faults.count >= at
        left = sorted(path.name for path in tmp_path.iterdir() if path.name != "count")
        assert left == before if failed else len(left) > len(before), at
        if not failed:  # only forcing the folder to disk may fail silently
            for path in tmp_path.glob("out*"):
                path.unlink()


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "old", values(1))
    for at in (1, 2, 3):
        with monkeypatch.context() as patch:
            Faults(patch, at, kill=False, code=errno.ENOSPC)
            with pytest.raises(
                ResourceExhaustedError, match=r"new\..*: no space left on device while .*nothing was left"
            ):
                save(tmp_path / "new", values(2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.data-00000-of-00001", "old.index"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_really_full_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open
    monkeypatch.setattr(
        storage.os,
        "open",
        lambda path, flags, mode=0o777: real(
            "/dev/full" if flags & os.O_CREAT else path, flags & ~(os.O_CREAT | os.O_EXCL), mode
        ),
    )
    with pytest.raises(ResourceExhaustedError, match="no space left on device"):
        save(tmp_path / "new", values(2))


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OpError, match="file"):
        save(tmp_path / "file" / "model", values(1))
    with pytest.raises(OpError):
        write_state(tmp_path / "file", str(tmp_path / "file" / "model"))


KILL_SCRIPT = """
import os, sys
import numpy as np
from toolkit.formats.bundle import BundleWriter, storage
from toolkit.formats.bundle.saver_policy import RetentionPolicy
folder, at, shards, keep, name = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
count = 0
def last(call):
    def wrapped(*args):
        global count
        count += 1
        if count == at:
            os.kill(os.getpid(), 9)
        return call(*args)
    return wrapped
policy = RetentionPolicy(keep)
policy.recover([folder + "/model-1"])
for call in ("sys_write", "sys_fsync", "sys_replace", "sys_unlink"):
    setattr(storage, call, last(getattr(storage, call)))
tensors = {"big": np.full(300000, 2.0), "small": np.array(2), "text": np.array([b"2"], object)}
with BundleWriter(folder + "/" + name, shards) as writer:
    for i, (key, array) in enumerate(tensors.items()):
        writer.add(key, array, shard=i % shards)
policy.saved(folder + "/" + name)
"""


def kill(folder: Path, at: int, shards: int = 1, keep: int = 5, name: str = "model-2") -> bool:
    """Save step 2 in a process that is killed at its n-th call; returns whether it came so far."""
    save_step(folder, RetentionPolicy(), 1)
    command = [sys.executable, "-c", KILL_SCRIPT, str(folder), str(at), str(shards), str(keep), name]
    code = subprocess.run(command, check=False).returncode
    assert code in (0, -9)
    return code == -9


@pytest.mark.parametrize("at", [1, 3, 5, 8])
def test_a_process_that_is_killed(tmp_path: Path, at: int) -> None:
    assert kill(tmp_path, at)
    assert restored_step(tmp_path) == 1


@pytest.mark.long
@pytest.mark.parametrize(("shards", "keep"), [(1, 5), (1, 1), (3, 5), (3, 1)])
def test_a_process_that_is_killed_at_every_call(tmp_path: Path, shards: int, keep: int) -> None:
    """SIGKILL before each write, fsync, rename and unlink there is; then the next save works as if nothing was."""
    seen: list[int] = []
    for at in range(1, 1000):
        folder = tmp_path / f"{at}"
        was_killed = kill(folder, at, shards, keep)
        seen.append(restored_step(folder))
        save_step(folder, RetentionPolicy(keep), 3)
        assert restored_step(folder) == 3
        if not was_killed:
            break
    assert len(seen) > 10 and seen == sorted(seen) and set(seen) == {1, 2}


@pytest.mark.long
def test_a_process_that_is_killed_while_it_replaces(tmp_path: Path) -> None:
    """Under the name of the checkpoint that is there: the old one, the new one or none, and never a mixture."""
    found: list[int | None] = []
    for at in range(1, 1000):
        folder = tmp_path / f"{at}"
        was_killed = kill(folder, at, name="model-1")
        try:
            small, big = restore(folder / "model-1", ["small", "big"])
            assert (big == small).all() and check(str(folder / "model-1")).findings == []
            found.append(int(small))
        except NotFoundError:
            found.append(None)
        if not was_killed:
            break
    # between the old and the new one there are at most the renames
    assert found[0] == 1 and found[-1] == 2 and found.count(None) <= 6


@pytest.mark.parametrize("shards", [1, 3])
def test_files_that_may_not_grow(tmp_path: Path, shards: int) -> None:
    """A limit on the size of files cuts writes short as a full disk does, at any byte."""
    save_step(tmp_path, RetentionPolicy(), 1)
    before = sorted(path.name for path in tmp_path.iterdir())
    script = (
        "import resource, sys\nfrom toolkit.errors import ResourceExhaustedError\n"
        "from toolkit.formats.bundle import BundleReader\nfrom toolkit.formats.bundle.surgery import reshard\n"
        "hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]\n"
        "for limit in (0, 1, 40, 1000, 4096, 100_001, 2_399_999):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))\n"
        "    try:\n        reshard.reshard([BundleReader(sys.argv[1])], sys.argv[2], int(sys.argv[3]))\n"
        "    except ResourceExhaustedError as error:\n        assert 'nothing was left behind' in str(error)\n"
        "    else:\n        raise AssertionError(limit)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "model-1"), str(tmp_path / "model-2"), str(shards)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert restored_step(tmp_path) == 1


def test_two_writers_of_one_name(tmp_path: Path) -> None:
    """The last one wins, whole."""

    def write(step: int) -> None:
        for _ in range(15):
            save(tmp_path / "model", values(step))

    threads = [threading.Thread(target=write, args=(step,)) for step in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert check(str(tmp_path / "model")).findings == []
    big, small = restore(tmp_path / "model", ["big", "small"])
    assert (big == small).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.data-00000-of-00001", "model.index"]


def test_two_processes_of_one_name(tmp_path: Path) -> None:
    script = (
        "import sys, numpy as np\nfrom toolkit.formats.bundle import save\n"
        "step = int(sys.argv[2])\n"
        "for _ in range(10): save(sys.argv[1], {'big': np.full(300000, float(step)), 'small': np.array(step)})"
    )
    running = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "m"), str(i)]) for i in (1, 2)]
    assert [process.wait() for process in running] == [0, 0]
    assert check(str(tmp_path / "m")).findings == []
    assert len(BundleReader(tmp_path / "m")) == 2


def test_two_savers_of_one_folder(tmp_path: Path) -> None:
    """Each rotates its own checkpoints; the state file is always one of the two, and what it names is whole."""
    script = (
        "import sys, numpy as np\nfrom toolkit.formats.bundle import save\n"
        "from toolkit.formats.bundle.saver_policy import RetentionPolicy\n"
        "policy = RetentionPolicy(2)\n"
        "for step in range(8):\n"
        "    prefix = f'{sys.argv[1]}/{sys.argv[2]}-{step}'\n"
        "    save(prefix, {'big': np.full(300000, float(step)), 'small': np.array(step), "
        "'text': np.array([b'%d' % step], object)})\n"
        "    policy.saved(prefix)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path), name]) for name in "ab"]
    while any(process.poll() is None for process in running):
        prefix = latest_checkpoint(tmp_path)
        if prefix is not None:
            # It may be rotated out while it is looked at; what can be opened is whole.
            with contextlib.suppress(NotFoundError):
                assert len(BundleReader(prefix)) == 3
    assert [process.returncode for process in running] == [0, 0]
    assert restored_step(tmp_path) == 7
    assert sorted(path.stem for path in tmp_path.glob("*.index")) == ["a-6", "a-7", "b-6", "b-7"]
    for path in tmp_path.glob("*.index"):
        assert check(str(path.with_suffix(""))).findings == []
    assert not [path for path in tmp_path.iterdir() if TEMPORARY in path.name]
