"""LLVM at run time, found where it is installed (extra `native`), absent gracefully.

What it makes is kept on disk for the user's next process (`toolkit.formats.code_cache`): the same code, whether it was
found there or not.
"""

from __future__ import annotations

import ctypes
import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from toolkit.forks import held_over_forks, renew_in_children
from toolkit.formats.code_cache import CodeCache, cache_of_user, is_cached
from toolkit.kernels.once import once
from toolkit.target import processor

INT32, INT64 = ctypes.c_int, ctypes.c_int64  # what functions return
_OPTIMIZATION = 2
_MAX_FUNCTIONS = 4096  # compiled functions that are kept for the next plan that wants the same


class JitCompiler:
    """Compiles modules of LLVM IR for this processor, or for the level that was asked for.

    Raises:
        ImportError: llvmlite is not installed.
        UsageError: there is no such level, or GRAPHMILL_CACHE names no absolute path.
    """

    def __init__(self) -> None:
        import llvmlite
        import llvmlite.binding as llvm

        _hold_lock_of(llvm)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._llvm: Any = llvm
        named, host = processor.LEVELS.get(processor.level()), llvm.get_host_cpu_features()
        self._features: Any = {"avx512f": named.instructions == "avx512"} if named else host
        self._choice = {
            "cpu": named.llvm if named else llvm.get_host_cpu_name(), "features": "" if named else host.flatten(),
        }  # fmt: skip
        self._jit: Any = self._llvm.create_lljit_compiler(self._machine())
        self._cache = cache_of_user()
        #: all that code depends on besides its text
        self._identity = (
            str(_OPTIMIZATION), self._llvm.get_default_triple(), *self._choice.values(), llvmlite.__version__,
            ".".join(map(str, self._llvm.llvm_version_info)),
        )  # fmt: skip
        # LLVM reads code strictly, but leaves it to this whether values are there where they are used
        self._verifies = os.environ.get("GRAPHMILL_SEGMENTS", "") == "strict"
        self._functions: OrderedDict[str, Function] = OrderedDict()
        self._made = 0
        self._coming: set[str] = set()
        self._beside = ThreadPoolExecutor(1, "graphmill-compiler")
        self._lock = held_over_forks()
        renew_in_children(self)

    def has_avx512(self) -> bool:
        """Whether there are 32 registers of 16 floats."""
        return bool(self._features.get("avx512f"))

    def function(self, text: str, symbols: dict[str, int], result: Any = None) -> Function:
        """The function `@run` of a module, compiled once for each text.

        Args:
            text: a module that defines `void @run(ptr)`, or one that returns something.
            symbols: addresses of what it calls from outside.
            result: the type of what it returns, `INT32` or `INT64`.
        """
        with self._lock:
            known = self._functions.get(text)
            if known is None:
                known = self._functions[text] = self._compile(text, symbols, result)
                while len(self._functions) > _MAX_FUNCTIONS:
                    self._functions.popitem(last=False)
            else:
                self._functions.move_to_end(text)
            return known

    def renew(self) -> None:
        """Go on in a child, without the thread that compiles beside others."""
        self._coming, self._beside = set(), ThreadPoolExecutor(1, "graphmill-compiler")

    def prepare(self, texts: Sequence[str]) -> None:
        """Begin to compile functions that call nothing from outside, beside whatever goes on until they are wanted."""
        for text in texts:
            if text not in self._functions and text not in self._coming:
                self._coming.add(text)
                self._beside.submit(self._come, text)

    def _come(self, text: str) -> None:
        try:
            self.function(text, {})
        finally:
            self._coming.discard(text)

    def _compile(self, text: str, symbols: dict[str, int], result: Any) -> Function:
        if self._verifies:
            self._llvm.parse_assembly(text).verify()
        builder = self._llvm.JITLibraryBuilder().add_object_img(self._object(text)).export_symbol("run")
        builder.add_current_process()
        for name, address in symbols.items():
            builder.import_symbol(name, address)
        self._made += 1
        return Function(builder.link(self._jit, f"module{self._made}"), result)

    def _object(self, text: str) -> bytes:
        """The code of a module, from the cache or made and kept there."""
        cache = self._cache if is_cached() else None
        if cache is None:
            return self._emit(text)
        name = CodeCache.name_of(*self._identity, text)
        code = cache.read(name)
        if code is None:
            code = self._emit(text)
            cache.write(name, code)
        return code

    def _emit(self, text: str) -> bytes:
        return self._machine().emit_object(self._llvm.parse_assembly(text))

    def assembly(self, text: str) -> str:
        """What a module becomes, for people."""
        return self._machine().emit_assembly(self._llvm.parse_assembly(text))

    def _machine(self) -> Any:
        return self._llvm.Target.from_default_triple().create_target_machine(
            **self._choice, opt=_OPTIMIZATION, jit=True
        )


class Function:
    """A compiled `run`, there as long as this or one of its calls is.

    Attributes:
        address: of the code.
        call: runs it with the interpreter's lock released.
        call_held: runs it with the lock held, for what is over in a few microseconds.
    """

    __slots__ = ("_code", "address", "call", "call_held")

    def __init__(self, code: Any, result: Any):
        self._code = code
        self.address: int = code["run"]
        self.call: Any = ctypes.CFUNCTYPE(result, ctypes.c_void_p)(self.address)
        self.call_held: Any = ctypes.PYFUNCTYPE(result, ctypes.c_void_p)(self.address)
        for call in (self.call, self.call_held):  # all that many plans have of a function
            call.code = code


def is_enabled() -> bool:
    """Whether kernels may be compiled functions: GRAPHMILL_NATIVE=off says that they may not."""
    return os.environ.get("GRAPHMILL_NATIVE", "") != "off"


def _hold_lock_of(llvm: Any) -> None:
    """Have no other thread be within LLVM, which has locks of its own, when the process is copied: whatever is freed
    calls it, too."""
    lock = getattr(getattr(getattr(llvm.ffi, "lib", None), "_lock", None), "_lock", None)
    if lock is not None:
        held_over_forks(lock)


@once
def compiler() -> JitCompiler | None:
    """The compiler, made once; None where LLVM is not installed."""
    try:
        return JitCompiler()
    except (ImportError, OSError, RuntimeError):
        return None


def library_functions(names: Iterable[str]) -> dict[str, int]:
    """Addresses of the C library's functions; empty where it cannot be asked."""
    try:
        library = ctypes.CDLL(None)
        return {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in names}
    except (AttributeError, OSError, TypeError):
        return {}
