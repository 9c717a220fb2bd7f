"""Finding libdnnl and calling it: prototypes, errors, the engine, threads.

The C ABI of oneDNN is stable over 3.x. The library is looked for in the places where the wheel `onednn-cpu-gomp` and
the system put it; `GRAPHMILL_ONEDNN` names another file, or says `off`.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from toolkit.forks import held_over_forks
from toolkit.kernels.cpu.memory import guard
from toolkit.kernels.once import once
from toolkit.target import processor
from toolkit.target.target import Target

NAME = "libdnnl.so.3"
VARIABLE = "GRAPHMILL_ONEDNN"

#: how often a thread of OpenMP looks for work before it sleeps, where the user does not say: each look takes 40 to 140
#: cycles, so 0.1 to 0.5 ms, longer than what lies between two primitives of a step. The runtime's own 300,000 are up to
#: ten milliseconds in which a thread that waits for one whose processor another program has takes a processor itself.
LOOKS = 10000
_OF_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
#: OpenMP's omp_pause_hard: nothing of the runtime's state has to outlast the pause
_PAUSE_HARD = 2

#: of dnnl_status_t
UNIMPLEMENTED = 3
_STATUS = {
    1: "out of memory", 2: "invalid arguments", UNIMPLEMENTED: "unimplemented", 4: "last implementation reached",
    5: "runtime error", 6: "not required",
}  # fmt: skip

# The parameters of the functions: p pointer or handle, i int, u unsigned, l int64, f float.
_PROTOTYPES = {
    "dnnl_set_max_cpu_isa": "i",
    "dnnl_engine_create": "pil",
    "dnnl_stream_create": "ppu",
    "dnnl_stream_destroy": "p",
    "dnnl_memory_desc_create_with_strides": "pipip",
    "dnnl_memory_desc_create_with_tag": "pipii",
    "dnnl_memory_desc_create_submemory": "pppp",
    "dnnl_memory_desc_destroy": "p",
    "dnnl_memory_create": "pppp",
    "dnnl_memory_destroy": "p",
    "dnnl_memory_set_data_handle": "pp",
    "dnnl_primitive_attr_create": "p",
    "dnnl_primitive_attr_destroy": "p",
    "dnnl_primitive_attr_set_post_ops": "pp",
    "dnnl_primitive_attr_set_scales_mask": "pii",
    "dnnl_primitive_attr_set_scratchpad_mode": "pi",
    "dnnl_primitive_attr_set_zero_points_mask": "pii",
    "dnnl_post_ops_create": "p",
    "dnnl_post_ops_destroy": "p",
    "dnnl_post_ops_append_sum": "pfii",
    "dnnl_post_ops_append_eltwise": "piff",
    "dnnl_post_ops_append_binary": "pip",
    "dnnl_primitive_create": "pp",
    "dnnl_primitive_destroy": "p",
    "dnnl_primitive_desc_destroy": "p",
    "dnnl_primitive_desc_next_impl": "p",
    "dnnl_primitive_desc_query": "piip",
    "dnnl_convolution_forward_primitive_desc_create": "ppiippppppppp",
    "dnnl_convolution_backward_data_primitive_desc_create": "ppippppppppp",
    "dnnl_convolution_backward_weights_primitive_desc_create": "ppipppppppppp",
    "dnnl_matmul_primitive_desc_create": "ppppppp",
    "dnnl_pooling_forward_primitive_desc_create": "ppiipppppppp",
    "dnnl_pooling_backward_primitive_desc_create": "ppippppppppp",
    "dnnl_eltwise_forward_primitive_desc_create": "ppiippffp",
    "dnnl_eltwise_backward_primitive_desc_create": "ppipppffpp",
    "dnnl_binary_primitive_desc_create": "ppipppp",
    "dnnl_softmax_forward_primitive_desc_create": "ppiippip",
    "dnnl_layer_normalization_forward_primitive_desc_create": "ppipppfup",
    "dnnl_batch_normalization_forward_primitive_desc_create": "ppippfup",
    "dnnl_batch_normalization_backward_primitive_desc_create": "ppipppfupp",
    "dnnl_reduction_primitive_desc_create": "ppippffp",
    "dnnl_reorder_primitive_desc_create": "pppppp",
    "dnnl_concat_primitive_desc_create": "pppiipp",
    "dnnl_resampling_forward_primitive_desc_create": "ppiipppp",
    "dnnl_lstm_forward_primitive_desc_create": "ppii" + "p" * 11 + "up",
    "dnnl_gru_forward_primitive_desc_create": "ppii" + "p" * 7 + "up",
    "dnnl_lbr_gru_forward_primitive_desc_create": "ppii" + "p" * 7 + "up",
}
_TYPES = {
    "p": ctypes.c_void_p, "i": ctypes.c_int, "u": ctypes.c_uint, "l": ctypes.c_int64, "f": ctypes.c_float,
}  # fmt: skip


class OneDnnError(Exception):
    """oneDNN refused a call: the function and its status. Callers fall back to NumPy, or report it."""

    def __init__(self, function: str, status: int):
        self.status = status
        told = f"{function}: {_STATUS.get(status, f'status {status}')}"
        super().__init__(f"oneDNN has no code for this ({function})" if status == UNIMPLEMENTED else told)


class Library:
    """The loaded library with one CPU engine.

    All but executing is done by one thread at a time, by none when the process is forked: the library has locks of its
    own around what it makes and keeps, and a child's would stay locked.

    Attributes:
        execute: `dnnl_primitive_execute` without prototype checks, for prepared arguments; returns the status.
        execute_held: the same without letting other Python threads run meanwhile. Taking the interpreter back can
            take milliseconds where another thread computes, which for a few microseconds of work is no bargain.
        set_handle: `dnnl_memory_set_data_handle` likewise.
        execute_address, set_handle_address: of the two functions, for compiled code that calls them.
    """

    def __init__(self, path: str):
        self.path = path
        self._lock: Any = held_over_forks()
        self._ends = sys.is_finalizing  # modules are emptied before the last `__del__`
        self._c: Any = ctypes.CDLL(path)
        for name, parameters in _PROTOTYPES.items():
            function = getattr(self._c, name)
            function.argtypes = [_TYPES[p] for p in parameters]
            function.restype = ctypes.c_int
        # a second handle to the same library: prototypes belong to the handle
        fast: Any = ctypes.CDLL(path)
        self.execute = fast.dnnl_primitive_execute
        held: Any = ctypes.PyDLL(path)
        # who reports a fault wants the interpreter, in whichever thread of oneDNN it was
        self.execute_held = self.execute if guard.has_pages() else held.dnnl_primitive_execute
        self.set_handle = held.dnnl_memory_set_data_handle
        self.execute_address, self.set_handle_address = (
            ctypes.cast(function, ctypes.c_void_p).value or 0 for function in (self.execute, self.set_handle)
        )
        self._c.dnnl_primitive_desc_query_md.restype = ctypes.c_void_p
        self._c.dnnl_primitive_desc_query_md.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
        self._c.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
        self._c.dnnl_memory_desc_get_size.argtypes = [ctypes.c_void_p]
        self._c.dnnl_memory_desc_equal.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self._c.dnnl_get_effective_cpu_isa.restype = ctypes.c_int
        self._c.dnnl_version.restype = ctypes.POINTER(_Version)
        version = self._c.dnnl_version().contents
        self.version = f"{version.major}.{version.minor}.{version.patch}"
        if (named := processor.LEVELS.get(processor.level())) and named.onednn:
            self.call("dnnl_set_max_cpu_isa", named.onednn)
        self.engine = self.new("dnnl_engine_create", 1, 0)  # 1: dnnl_cpu

    def call(self, name: str, *args: Any) -> None:
        """Raises OneDnnError when the function does not succeed."""
        with self._lock:
            status = getattr(self._c, name)(*args)
        if status:
            raise OneDnnError(name, status)

    def destroy(self, name: str, handle: Any) -> None:
        """Give back what a handle is of; for `__del__`.

        Nothing is when the interpreter ends: its other threads are stopped wherever they ask for it, and one that was
        in `call` never leaves it.
        """
        if not self._ends():
            self.call(name, handle)

    def new(self, name: str, *args: Any) -> int:
        """Call a function whose first parameter is where it puts a new handle."""
        handle = ctypes.c_void_p()
        self.call(name, ctypes.byref(handle), *args)
        assert handle.value is not None
        return handle.value

    def new_stream(self) -> int:
        """A stream on the engine (in order, never destroyed: there is one per plan or thread)."""
        return self.new("dnnl_stream_create", self.engine, 1)

    def query_md(self, primitive_desc: int, what: int, index: int) -> int | None:
        return self._c.dnnl_primitive_desc_query_md(primitive_desc, what, index)

    def size_of(self, desc: int | None) -> int:
        return int(self._c.dnnl_memory_desc_get_size(desc))

    def equal(self, first: int | None, second: int | None) -> bool:
        return bool(self._c.dnnl_memory_desc_equal(first, second))

    @property
    def has_exact_int8(self) -> bool:
        """Whether sums of products of 8-bit numbers are exact: without VNNI pairs of them saturate at 16 bits."""
        return bool(self._c.dnnl_get_effective_cpu_isa() & _VNNI)

    @property
    def multiplies_bfloat16(self) -> bool:
        """Whether the processor does, and oneDNN may use it: elsewhere bfloat16 is slower than float32."""
        return bool(self._c.dnnl_get_effective_cpu_isa() & _BFLOAT16)

    def implementation(self, primitive_desc: int) -> str:
        """What oneDNN will run, such as "brgconv:avx512_core"."""
        text = ctypes.c_char_p()
        self.call("dnnl_primitive_desc_query", primitive_desc, 8, 0, ctypes.byref(text))
        return (text.value or b"").decode()


_VNNI = 0x08 | 0x40  # of dnnl_cpu_isa_t: with 256 or with 512 bits
_BFLOAT16 = 0x80


class _Version(ctypes.Structure):
    _fields_ = (("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int))


def candidates() -> list[str]:
    """Where the library may be, in order."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen == "off":
        return []
    if chosen:
        return [chosen]
    roots = dict.fromkeys([sys.prefix, sys.exec_prefix, str(Path(sys.executable).parent.parent)])
    return [str(path) for root in roots if (path := Path(root) / "lib" / NAME).exists()] + [NAME]


def is_present() -> bool:
    """Whether there is a library and it is wanted, judged by files alone: loading it takes 30 ms."""
    return _is_present(os.environ.get(VARIABLE, ""))


@functools.cache
def _is_present(_setting: str) -> bool:
    return any(Path(path).exists() if os.sep in path else _is_installed(path) for path in candidates())


def _is_installed(name: str) -> bool:
    """Whether the system's loader knows a library."""
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    if any(folder and (Path(folder) / name).exists() for folder in folders):
        return True
    try:
        return name.encode() in Path("/etc/ld.so.cache").read_bytes()
    except OSError:
        return False


@once
def library() -> Library | None:
    """The library, loaded once; None where there is none or it is switched off."""
    with _sleeping_soon():
        for path in candidates():
            try:
                return Library(path)
            except (OSError, AttributeError, OneDnnError):
                continue
    return None


@contextmanager
def _sleeping_soon() -> Generator[None]:
    """The OpenMP runtime that is loaded meanwhile has its threads sleep when they have waited for a little while.

    It reads its environment when it is loaded, and never again.
    """
    if any(name in os.environ for name in _OF_WAITING):
        yield
        return
    name = _OF_WAITING[1]
    os.environ[name] = str(LOOKS)
    try:
        yield
    finally:
        os.environ.pop(name, None)


@functools.cache
def processor_has_bfloat16() -> bool:
    """Whether the processor multiplies it (AVX512_BF16), judged without loading the library."""
    return processor.has("avx512_bf16")


def multiplies_bfloat16() -> bool:
    """Whether there is a library that does so faster than it multiplies float32."""
    found = library()
    return found is not None and found.multiplies_bfloat16


def offered(target: Target) -> Target:
    """A target without what oneDNN may not use here: its own variables can say that it shall do without."""
    found = library()
    if found is None:
        return target
    vectors = target.vectors
    bfloat16, exact = vectors.bfloat16 and found.multiplies_bfloat16, vectors.exact_int8 and found.has_exact_int8
    return target._replace(vectors=vectors._replace(bfloat16=bfloat16, exact_int8=exact))


def require() -> Library:
    """The library, for code that runs only where there is one."""
    found = library()
    assert found is not None, "oneDNN is not available"
    return found


@once
def _openmp() -> Any:
    """The OpenMP runtime that libdnnl was loaded with, or None."""
    if library() is None:
        return None
    maps = Path("/proc/self/maps").read_text(encoding="utf8").splitlines()
    paths = {line.split()[-1] for line in maps if "libgomp" in line or "libiomp" in line}
    for path in sorted(paths):
        try:
            found = ctypes.CDLL(path)
        except OSError:
            continue
        if "libgomp" in Path(path).name and hasattr(found, "omp_pause_resource"):
            os.register_at_fork(before=functools.partial(_end_team, found))
        return found
    return None


def _end_team(openmp: Any) -> None:
    """End the threads that GNU's OpenMP keeps for the next parallel region of this thread, which starts others.

    It is the one thread that a forked child has, where the next region would wait for the parent's threads for ever.
    """
    openmp.omp_pause_resource(_PAUSE_HARD, openmp.omp_get_initial_device())


def openmp_symbols(*names: str) -> dict[str, int]:
    """Addresses of functions of the OpenMP runtime that libdnnl uses; empty where there is none with all of them."""
    openmp = _openmp()
    try:
        return {name: ctypes.cast(getattr(openmp, name), ctypes.c_void_p).value or 0 for name in names}
    except AttributeError:
        return {}


def set_threads(count: int) -> None:
    """How many threads a primitive may use that this thread calls."""
    openmp = _openmp()
    if openmp is not None:
        openmp.omp_set_num_threads(count)


def threads() -> int:
    """How many threads primitives use now; 1 without the library."""
    openmp = _openmp()
    return int(openmp.omp_get_max_threads()) if openmp is not None else 1


@contextmanager
def one_thread() -> Generator[None]:
    """Primitives that are made meanwhile are for the calling thread alone."""
    before = threads()
    set_threads(1)
    try:
        yield
    finally:
        set_threads(before)
