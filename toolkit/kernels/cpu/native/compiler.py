"""LLVM at run time, found where it is installed (extra `native`), absent gracefully."""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections import OrderedDict
from typing import Any

_MAX_FUNCTIONS = 4096  # compiled functions that are kept for the next plan that wants the same


class Compiler:
    """Compiles modules of LLVM IR for this processor.

    Raises:
        ImportError: llvmlite is not installed.
    """

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._llvm: Any = llvm
        self._features: Any = llvm.get_host_cpu_features()
        self._machine: Any = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=self._features.flatten(), opt=2, jit=True
        )
        self._functions: OrderedDict[str, Function] = OrderedDict()
        self._lock = threading.Lock()

    def has(self, feature: str) -> bool:
        """Whether the processor has what LLVM calls so."""
        return bool(self._features.get(feature))

    def function(self, text: str, symbols: dict[str, int], result: Any = None) -> Function:
        """The function `@run` of a module, compiled once for each text.

        Args:
            text: a module that defines `void @run(ptr)`, or one that returns something.
            symbols: addresses of what it calls from outside.
            result: the ctypes type of what it returns.
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

    def _compile(self, text: str, symbols: dict[str, int], result: Any) -> Function:
        llvm = self._llvm
        for name, address in symbols.items():
            llvm.add_symbol(name, address)
        module = llvm.parse_assembly(text)
        module.verify()
        engine = llvm.create_mcjit_compiler(module, self._machine)
        engine.finalize_object()
        return Function(engine, engine.get_function_address("run"), result)

    def assembly(self, text: str) -> str:
        """What a module becomes, for people."""
        return self._machine.emit_assembly(self._llvm.parse_assembly(text))


class Function:
    """A compiled `run(ptr)`.

    Attributes:
        address: of the code.
        call: runs it with the interpreter's lock released.
        call_held: runs it with the lock held, for what is over in a few microseconds.
    """

    __slots__ = ("_engine", "address", "call", "call_held")

    def __init__(self, engine: Any, address: int, result: Any):
        self._engine = engine  # owns the code
        self.address = address
        self.call = ctypes.CFUNCTYPE(result, ctypes.c_void_p)(address)
        self.call_held = ctypes.PYFUNCTYPE(result, ctypes.c_void_p)(address)


def is_enabled() -> bool:
    """Whether kernels may be compiled functions: GRAPHMILL_NATIVE=off says that they may not."""
    return os.environ.get("GRAPHMILL_NATIVE", "") != "off"


@functools.cache
def compiler() -> Compiler | None:
    """The compiler, made once; None where LLVM is not installed."""
    try:
        return Compiler()
    except (ImportError, OSError, RuntimeError):
        return None
