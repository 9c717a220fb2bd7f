"""Compiled code on disk: found by other processes, and only what this user's processes have sealed is ever run."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.models import ROOT
from toolkit.errors import UsageError
from toolkit.formats import code_cache
from toolkit.formats.code_cache import CodeCache, cache_of_user
from toolkit.target.processor import LEVELS, machine

NAME = CodeCache.name_of("some code")
OTHER = CodeCache.name_of("other code")
needs_llvm = pytest.mark.skipif(
    subprocess.run([sys.executable, "-c", "import llvmlite"], capture_output=True, check=False).returncode != 0,
    reason="LLVM is not installed",
)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "a" / "code", tmp_path / "b" / "state"


def _cache(folders: tuple[Path, Path]) -> CodeCache:
    """As another process has it."""
    return CodeCache(*folders)


def test_what_one_process_writes_another_reads(folders: tuple[Path, Path]) -> None:
    assert _cache(folders).read(NAME) is None
    _cache(folders).write(NAME, b"machine code")
    assert _cache(folders).read(NAME) == b"machine code" and _cache(folders).read(OTHER) is None
    for folder in folders:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in folder.iterdir())
    assert [each.name for each in folders[0].iterdir()] == [NAME]  # nothing half written is left


def test_names_are_of_all_parts_and_of_where_they_end() -> None:
    names = {CodeCache.name_of(*parts) for parts in (("ab", "c"), ("a", "bc"), ("abc",), ("a", "b", "c"), ("\ud800",))}
    assert len(names) == 5


def _damage_bit(path: Path, _: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def _swap(path: Path, _: Path) -> None:
    path.write_bytes(path.with_name(OTHER).read_bytes())


def _other_key(_: Path, key: Path) -> None:
    key.write_bytes(bytes(32))


@pytest.mark.parametrize(
    "damage",
    [
        _damage_bit, _swap, _other_key,
        lambda path, _: path.write_bytes(b""),
        lambda path, _: path.write_bytes(path.read_bytes()[:40]),
        lambda path, _: path.write_bytes(b"x" + path.read_bytes()[1:]),
        lambda path, _: path.write_bytes(path.read_bytes() + b"more"),
    ],
)  # fmt: skip
def test_what_is_damaged_or_made_by_somebody_else_is_not_run_and_replaced(
    folders: tuple[Path, Path], damage: Any
) -> None:
    _cache(folders).write(NAME, b"code")
    _cache(folders).write(OTHER, b"evil")
    damage(folders[0] / NAME, folders[1] / "cache.key")
    assert _cache(folders).read(NAME) is None
    assert not (folders[0] / NAME).exists()
    _cache(folders).write(NAME, b"new")
    assert _cache(folders).read(NAME) == b"new"


def _link_folder(code: Path, _: Path) -> None:
    code.rename(code.with_name("elsewhere"))
    code.symlink_to(code.with_name("elsewhere"))


def _link_entry(code: Path, _: Path) -> None:
    (code / NAME).rename(code.parent / "elsewhere")
    (code / NAME).symlink_to(code.parent / "elsewhere")


def _pipe(code: Path, _: Path) -> None:
    (code / NAME).unlink()
    os.mkfifo(code / NAME, 0o600)


@pytest.mark.parametrize(
    "change",
    [
        lambda code, _: code.chmod(0o777),
        lambda code, _: (code / NAME).chmod(0o666),
        lambda _, state: state.chmod(0o770),
        lambda _, state: (state / "cache.key").chmod(0o640),
        lambda _, state: (state / "cache.key").write_bytes(b"short"),
        lambda _, state: (state / "cache.key").write_bytes(bytes(64)),
        _link_folder, _link_entry, _pipe,
    ],
)  # fmt: skip
def test_what_others_can_write_or_read_is_not_used(folders: tuple[Path, Path], change: Any) -> None:
    _cache(folders).write(NAME, b"code")
    change(*folders)
    assert _cache(folders).read(NAME) is None


def test_a_folder_of_somebody_else_is_not_used(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _cache(folders).write(NAME, b"code")
    monkeypatch.setattr(code_cache.os, "geteuid", lambda: os.getuid() + 1)
    assert _cache(folders).read(NAME) is None
    _cache(folders).write(OTHER, b"code")
    assert not (folders[0] / OTHER).exists()


def test_a_disk_that_cannot_be_written_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = CodeCache(tmp_path / "file" / "code", tmp_path / "file" / "state")
    cache.write(NAME, b"code")
    assert cache.read(NAME) is None


def test_the_oldest_go_when_there_is_too_much(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    writer = _cache(folders)
    names = [CodeCache.name_of(str(number)) for number in range(5)]
    for age, name in enumerate(names):
        writer.write(name, bytes(1000))
        os.utime(folders[0] / name, (1e9 - age, 1e9 - age))
    left = folders[0] / f"{OTHER}.0123.part"
    left.write_bytes(b"half")
    os.utime(left, (1e9, 1e9))
    assert _cache(folders).read(names[4]) == bytes(1000)  # the oldest, which is new again now
    monkeypatch.setattr(code_cache, "MOST_BYTES", 3500)
    _cache(folders).write(NAME, bytes(1000))
    assert {each.name for each in folders[0].iterdir()} == {NAME, names[4], names[0]}


def test_what_is_too_large_is_not_kept(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_cache, "MOST_ENTRY", 100)
    _cache(folders).write(NAME, bytes(100))
    assert not (folders[0] / NAME).exists()
    (folders[0] / NAME).write_bytes(bytes(101))
    assert _cache(folders).read(NAME) is None


def test_writers_at_the_same_time_leave_whole_entries_and_one_key(folders: tuple[Path, Path]) -> None:
    wrong: list[Any] = []

    def work(number: int) -> None:
        cache = _cache(folders)
        for turn in range(30):
            name = CodeCache.name_of(str(turn % 3))
            cache.write(name, f"{turn % 3}".encode() * 5000)
            found = cache.read(name)
            if found != f"{turn % 3}".encode() * 5000:
                wrong.append((number, turn, found))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(list(folders[0].iterdir())) == 3 and [each.name for each in folders[1].iterdir()] == ["cache.key"]


def test_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "GRAPHMILL_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    cache = cache_of_user()
    assert cache is not None
    cache.write(NAME, b"code")
    assert (tmp_path / ".cache" / "graphmill" / "code" / NAME).exists()
    assert (tmp_path / ".local" / "state" / "graphmill" / "cache.key").exists()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "s"))
    cache = cache_of_user()
    assert cache is not None
    cache.write(NAME, b"code")
    assert (tmp_path / "c" / "graphmill" / "code" / NAME).exists() and (tmp_path / "s" / "graphmill").exists()
    monkeypatch.setenv("GRAPHMILL_CACHE", str(tmp_path / "mine"))
    cache = cache_of_user()
    assert cache is not None
    cache.write(NAME, b"code")
    assert (tmp_path / "mine" / NAME).exists()
    monkeypatch.setenv("GRAPHMILL_CACHE", "off")
    assert cache_of_user() is None
    monkeypatch.setenv("GRAPHMILL_CACHE", "mine")
    with pytest.raises(UsageError, match="GRAPHMILL_CACHE is 'mine'; expected an absolute path, or off"):
        cache_of_user()


_COMPILES = """
import sys
from toolkit.formats import code_cache
from toolkit.kernels.cpu.native import compiler
made = compiler.compiler()
emitted = []
emit = made._emit
made._emit = lambda text: emitted.append(text) or emit(text)
if "--no-cache" in sys.argv:
    code_cache.without_cache()
text = "define i32 @run(ptr %x) {\\n  %v = load i32, ptr %x\\n  %w = add i32 %v, 1\\n  ret i32 %w\\n}\\n"
import ctypes
given = ctypes.c_int(41)
print(made.function(text, {}, ctypes.c_int).call(ctypes.addressof(given)), len(emitted))
"""


@needs_llvm
def test_another_process_loads_what_one_has_compiled(tmp_path: Path) -> None:
    def run(*arguments: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", _COMPILES, *arguments], cwd=ROOT, capture_output=True, text=True, check=True,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "s"), "GRAPHMILL_CACHE": str(tmp_path / "c")}
            | environment,
        )  # fmt: skip
        return done.stdout.strip()

    least = next(name for name, level in LEVELS.items() if level.machine == machine())
    assert run("--no-cache") == run(GRAPHMILL_CACHE="off") == "42 1"
    assert not (tmp_path / "c").exists()
    assert [run(), run()] == ["42 1", "42 0"]
    assert run(GRAPHMILL_CPU=least) == "42 1"  # which is other code
    (entry, _) = sorted((tmp_path / "c").iterdir())
    entry.write_bytes(entry.read_bytes()[:-1] + b"?")
    assert sorted([run(), run(GRAPHMILL_CPU=least)]) == ["42 0", "42 1"]
    assert run("--no-cache") == "42 1"
