"""Machine code for processors that this machine has not: LLVM writes it for any, and no emulator is needed.

    python -m pytest -p tests.other_processors tests/compiler  # each module that these compile, for aarch64 as well

What is found out is that there is code for a module, that it calls nothing that is not there, and that it has nothing
of one processor alone. Whether it computes the right numbers is for `sh tests/machine.sh aarch64`.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from toolkit.kernels.cpu.native.compiler import JitCompiler

AARCH64 = ("aarch64-unknown-linux-gnu", "generic")
_MACHINES = {"aarch64-unknown-linux-gnu": 183}  # what ELF calls them (e_machine)
#: what LLVM may call though a module does not name it, which the C library has
_OF_LLVM = frozenset(("memcpy", "memset", "memmove", "memcmp", "fmodf", "fmod"))
_SYMBOLS = 2  # SHT_SYMTAB


@functools.cache
def _target(triple: str, cpu: str) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features="", opt=2, jit=True)


def compile_for(text: str, triple: str = AARCH64[0], cpu: str = AARCH64[1]) -> set[str]:
    """The symbols that the code of a module for another processor wants from outside.

    Raises:
        AssertionError: it has what only one processor has, wants what nobody gave it, or is for another machine.
    """
    import llvmlite.binding as llvm

    # LLVM ends the process where it is given an intrinsic that a processor has not
    assert "llvm.x86." not in text, "an intrinsic that only x86 has"
    code = _target(triple, cpu).emit_object(llvm.parse_assembly(text))
    assert struct.unpack_from("<H", code, 18) == (_MACHINES[triple],)
    wanted = set(_undefined(code))
    unknown = {name for name in wanted - _OF_LLVM if f"@{name}(" not in text}
    assert not unknown, f"LLVM calls {', '.join(sorted(unknown))} for {triple}, which nobody gives it"
    return wanted


def _undefined(code: bytes) -> Iterator[str]:
    """Names of the symbols of an object file (ELF, 64 bits, little endian) that it does not define."""
    (offset,) = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, offset + index * size) for index in range(count)]
    for _, kind, _, _, start, length, link, *_rest in sections:
        if kind != _SYMBOLS:
            continue
        names = sections[link][4]
        for at in range(start, start + length, 24):
            name, _, _, where = struct.unpack_from("<IBBH", code, at)
            if name and not where:
                yield code[names + name : code.index(b"\0", names + name)].decode()


_checked: set[str] = set()


def pytest_configure(config: pytest.Config) -> None:
    """As a plugin: whatever is compiled here is compiled for aarch64, too, once for each text."""
    emit = JitCompiler._emit

    def both(self: JitCompiler, text: str) -> bytes:
        if text not in _checked:
            _checked.add(text)
            compile_for(text)
        return emit(self, text)

    JitCompiler._emit = both  # type: ignore[method-assign]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.write_line(f"{len(_checked)} modules compiled for {AARCH64[0]}")
