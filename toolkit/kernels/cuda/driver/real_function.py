"""Kernels on NVIDIA GPUs: PTX from LLVM, kept on disk for the user's next process; compiled by the driver; launched."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from toolkit.formats.code_cache import CodeCache, cache_of_user, is_cached
from toolkit.kernels.cuda.driver.base import DriverError
from toolkit.kernels.cuda.driver.calls import Calls
from toolkit.kernels.cuda.simt import ptx
from toolkit.kernels.cuda.simt.ir import KernelBuffer, SimtKernel
from toolkit.kernels.once import once

_LOG_BYTES = 4096  # of what the driver's compiler says; the first lines say what is wrong
#: how numbers are packed, and integers as unsigned ones of the same bits
_FORMATS = {"i1": "B", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "half": "e", "float": "f", "double": "d"}
_POINTER = "Q"


@once
def _cache() -> CodeCache | None:
    return cache_of_user()


def ptx_of(kernel: SimtKernel, capability: tuple[int, int]) -> str:
    """A kernel's PTX, from the cache or written and kept there."""
    cache = _cache() if is_cached() else None
    if cache is None:
        return ptx.write(kernel, capability)
    import llvmlite  # only its version; what writes PTX says when it is not there

    name = CodeCache.name_of("ptx", f"sm_{capability[0]}{capability[1]}", llvmlite.__version__, kernel.text)
    found = cache.read(name)
    if found is None:
        found = ptx.write(kernel, capability).encode()
        cache.write(name, found)
    return found.decode()


class _Arguments:
    """Memory for the arguments of one launch: the driver copies them before it returns."""

    __slots__ = ("_memory", "_pointers", "address", "pack_into")

    def __init__(self, packing: struct.Struct, offsets: Sequence[int]):
        self._memory = ctypes.create_string_buffer(packing.size or 1)
        base = ctypes.addressof(self._memory)
        self._pointers = (ctypes.c_void_p * max(len(offsets), 1))(*(base + offset for offset in offsets))
        self.address = ctypes.addressof(self._pointers)
        memory, pack_into = self._memory, packing.pack_into

        def pack(values: Sequence[Any]) -> None:
            pack_into(memory, 0, *values)

        self.pack_into = pack


class CudaFunction:
    """A kernel, loaded.

    Attributes:
        name, registers, spills, shared, ptx: see `base.LoadedKernel`.
        block: threads of a block.
        handle: CUDA's function.
        is_buffer: for each argument, whether it is memory.
        spare: memory for arguments that no launch uses at the moment.
    """

    __slots__ = (
        "_module", "_offsets", "_packing", "_types", "block", "handle", "is_buffer", "name", "ptx", "registers",
        "shared", "spare", "spills",
    )  # fmt: skip

    def __init__(self, calls: Calls, kernel: SimtKernel, capability: tuple[int, int]):
        self.name, self.block = kernel.name, kernel.block
        self.ptx = ptx_of(kernel, capability)
        self._module = _loaded(calls, self.name, self.ptx)
        self.handle = calls("cuModuleGetFunction", self._module, ptx.function_name(kernel).encode())
        attribute = calls.module.CUfunction_attribute
        self.registers: int = calls("cuFuncGetAttribute", attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, self.handle)
        self.spills: int = calls("cuFuncGetAttribute", attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, self.handle)
        self.shared: int = calls("cuFuncGetAttribute", attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, self.handle)
        self.is_buffer = tuple(isinstance(one, KernelBuffer) for one in kernel.parameters)
        self._types = tuple(one.type for one in kernel.parameters)
        formats = [
            _POINTER if memory else "H" if type == "bfloat" else _FORMATS[type]
            for memory, type in zip(self.is_buffer, self._types, strict=True)
        ]
        self._offsets = [struct.calcsize("@" + "".join(formats[: k + 1])) - struct.calcsize(formats[k])
                         for k in range(len(formats))]  # fmt: skip
        self._packing = struct.Struct("@" + "".join(formats))
        self.spare: list[_Arguments] = []

    def packed(self, values: Sequence[Any]) -> _Arguments:
        """Arguments in memory of which `address` is what the driver takes; it goes back into `spare`.

        Raises:
            DriverError: they are not what the kernel takes.
        """
        try:
            arguments = self.spare.pop()
        except IndexError:
            arguments = _Arguments(self._packing, self._offsets)
        try:
            arguments.pack_into(values)
        except struct.error:
            arguments.pack_into(self._converted(values))
        return arguments

    def _converted(self, values: Sequence[Any]) -> list[Any]:
        """Integers with their highest bit set, and numbers of bfloat16, as they are packed."""
        if len(values) != len(self._types):
            raise self._wrong(f"{len(values)} arguments; it takes {len(self._types)}")
        found: list[Any] = []
        for memory, type, value in zip(self.is_buffer, self._types, values, strict=True):
            if not memory and type == "bfloat":
                (bits,) = struct.unpack("<I", struct.pack("<f", value))
                value = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16  # to the nearest, halves to even
            elif not memory and type == "i1":
                value = int(bool(value))
            elif not memory and type.startswith("i"):
                width = int(type[1:])
                if isinstance(value, float) or not -(1 << (width - 1)) <= value < 1 << width:
                    raise self._wrong(f"{value!r} as {type}")
                value = (int(value) + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
            found.append(value)
        try:
            struct.pack(self._packing.format, *found)
        except struct.error as error:
            raise self._wrong(str(error)) from None
        return found

    def _wrong(self, what: str) -> DriverError:
        return DriverError(f"cuLaunchKernel of {self.name}", "CUDA_ERROR_INVALID_VALUE", what)


def _loaded(calls: Calls, name: str, text: str) -> Any:
    """A module of PTX, compiled by the driver.

    Raises:
        DriverError: the driver cannot compile it, with what its compiler said.
    """
    option = calls.module.CUjit_option
    log = bytearray(_LOG_BYTES)
    status, module = calls.module.cuModuleLoadDataEx(
        text.encode() + b"\0", 2,
        [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES], [log, _LOG_BYTES],
    )  # fmt: skip
    if status != calls.success:
        said = " ".join(bytes(log).split(b"\0")[0].decode(errors="replace").split())
        error = calls.error(f"cuModuleLoadDataEx of kernel {name}", status, said)
        if error.error == "CUDA_ERROR_UNSUPPORTED_PTX_VERSION":
            error.message += "; the driver is older than the PTX: install a newer one"
        raise error
    return module
