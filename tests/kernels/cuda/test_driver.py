"""NVIDIA's driver as it is asked, without a GPU; and which driver a process gets."""

from __future__ import annotations

import ast
import gc
import importlib.util
import struct
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kernels.cuda.bindings import Bindings, CUresult
from tests.kernels.cuda.simple import blocks, combine, every_type
from toolkit.errors import UsageError
from toolkit.formats.code_cache import CodeCache
from toolkit.kernels.cuda.device import device
from toolkit.kernels.cuda.driver import choose, real, real_function
from toolkit.kernels.cuda.driver.base import DriverError, GpuSpan, OutOfDeviceMemory
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.kernels.cuda.driver.real_context import CudaContext
from toolkit.kernels.cuda.transfers import SMALL

N = 100


@pytest.fixture
def bindings(monkeypatch: pytest.MonkeyPatch) -> Bindings:
    found = Bindings()
    _install(monkeypatch, found)
    return found


def _install(monkeypatch: pytest.MonkeyPatch, found: Any) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", found)
    monkeypatch.setitem(sys.modules, "cuda.bindings", type(sys)("cuda.bindings"))


def _driver() -> real.CudaDriver:
    found, missing = real.find()
    assert isinstance(found, real.CudaDriver), missing
    return found


def _context(bindings: Bindings) -> CudaContext:
    return _driver().open(0)


# -- what is missing ---------------------------------------------------------------------------------------------------


def test_without_the_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    found, missing = real.find()
    assert found is None and missing.startswith("cuda-bindings is not installed")
    assert missing.endswith(': pip install "graphmill[cuda]"')


def test_without_the_driver(bindings: Bindings, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise RuntimeError("Failed to dlopen libcuda.so.1")

    monkeypatch.setattr(bindings, "cuInit", fail, raising=False)
    assert real.find() == (
        None, "NVIDIA's driver (libcuda.so.1) is not installed: Failed to dlopen libcuda.so.1"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "fails", "told"),
    [
        (Bindings(), {"cuInit": CUresult.CUDA_ERROR_NO_DEVICE}, "no GPU: cuInit failed: CUDA_ERROR_NO_DEVICE (words"),
        (Bindings(version=11040), {}, "NVIDIA's driver is for CUDA 11.4; install one for 12.0 or later"),
        (Bindings(devices=0), {}, "NVIDIA's driver finds no GPU (CUDA_VISIBLE_DEVICES may hide it)"),
    ],
)  # fmt: skip
def test_drivers_that_will_not_do(
    given: Bindings, fails: dict[str, CUresult], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given.fails = fails
    _install(monkeypatch, given)
    found, missing = real.find()
    assert found is None and told in missing and "\n" not in missing


# -- which driver ------------------------------------------------------------------------------------------------------


def test_which_driver_is_said_by_the_environment(monkeypatch: pytest.MonkeyPatch, bindings: Bindings) -> None:
    monkeypatch.setattr(choose, "_known", {})
    monkeypatch.setenv(choose.VARIABLE, "fake:3,seed=5,memory=1000")
    found = choose.driver()
    assert isinstance(found, FakeDriver) and found.count() == 3 and found.properties(2).memory == 1000
    assert choose.driver() is found is choose.known() and choose.missing() == ""
    monkeypatch.setenv(choose.VARIABLE, "off")
    assert choose.missing() == "GRAPHMILL_CUDA is off"
    with pytest.raises(UsageError, match="there is no GPU here: GRAPHMILL_CUDA is off"):
        choose.driver()
    monkeypatch.setenv(choose.VARIABLE, "fake")
    assert choose.driver().count() == 1
    monkeypatch.delenv(choose.VARIABLE)
    assert isinstance(choose.driver(), real.CudaDriver)
    with choose.using(found):
        assert choose.driver() is found


@pytest.mark.parametrize("wrong", ["real", "fake:x", "fake:1,seed", "fake,speed=1", "fake:-1", "fakes", "fake:0"])
def test_what_the_environment_may_not_say(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "_known", {})
    monkeypatch.setenv(choose.VARIABLE, wrong)
    with pytest.raises(UsageError, match=f"GRAPHMILL_CUDA is '{wrong}'; expected off, fake, fake:N"):
        choose.driver()


# -- calls -------------------------------------------------------------------------------------------------------------


def test_properties_are_asked_for(bindings: Bindings) -> None:
    found = _driver().properties(1)
    assert (found.name, found.memory, found.capability, found.multiprocessors) == (
        "GPU of tests 1",
        1 << 30,
        (9, 0),
        16,
    )
    assert (found.shared_per_block, found.l2, found.clock, found.driver) == (8, 38, 13, 12040)
    assert real.dotted(found.driver) == "12.4"


def test_each_thread_has_the_context_it_works_in(bindings: Bindings) -> None:
    driver = _driver()
    first, second = driver.open(0), driver.open(1)
    assert driver.open(0) is first
    for context in (first, first, second, first):
        context.event()
    assert [given for name, given in bindings.calls if name == "cuCtxSetCurrent"] == [
        ("context 0",), ("context 1",), ("context 0",),
    ]  # fmt: skip
    thread = threading.Thread(target=first.event)
    thread.start()
    thread.join()
    assert bindings.count("cuCtxSetCurrent") == 4 and bindings.count("cuEventCreate") == 5


def test_a_device_works_over_it(bindings: Bindings) -> None:
    """All that a device does, with everything done at once."""
    with choose.using(_driver()):
        gpu, other = device(0), device(1)
        for count in (5, SMALL):
            array = np.arange(count, dtype=np.int32)
            there = gpu.memory.copy_in(array)
            np.testing.assert_array_equal(gpu.memory.copy_out(gpu.copied(there)), array)
            np.testing.assert_array_equal(other.memory.copy_out(other.memory.copy_across(there, gpu.memory)), array)
        assert bindings.count("cuCtxEnablePeerAccess") == 1
        np.testing.assert_array_equal(gpu.to_host(gpu.full((3,), np.uint8, 7)), [7, 7, 7])
        bindings.parameters = 5
        gpu.launch(combine(), blocks(N), there, there, 2, -3, N)
        with gpu.recording() as recording:
            made = gpu.zeros((3,), np.float32)
        recording.replay()
        assert recording.graph is not None and recording.graph.operations == 7
        (instance,) = (given[0] for name, given in bindings.calls if name == "cuGraphLaunch")
        del made
        recording.close()
        gpu.synchronize()
    assert bindings.launches[0][:2] == (blocks(N), 64)
    assert ("cuGraphExecDestroy", (instance,)) in bindings.calls and bindings.count("cuGraphDestroy") == 1


def test_arguments_are_packed_as_c_has_them(bindings: Bindings) -> None:
    context = _context(bindings)
    function, stream = context.function(every_type()), context.stream()
    assert (function.registers, function.spills, function.shared) == (40, 30, 10) and ".entry" in function.ptx
    bindings.parameters = 10
    memory = GpuSpan(0x1234567890, 4)
    for given in (
        [True, -3, 4, 0xFFFFFFFE, -5, 0.5, 1.0, 2.5, 3.5],
        [np.bool_(True), np.int8(-3), 4, np.uint32(0xFFFFFFFE), np.int64(-5), 0.5, 1, np.float32(2.5), np.float64(3.5)],
    ):
        context.launch(function, 3, [memory, *given], stream)
        (_, _, got) = bindings.launches[-1]
        formats, expected = "QBbhiqeHfd", (0x1234567890, 1, -3, 4, -2, -5, 0.5, 0x3F80, 2.5, 3.5)
        for raw, format, value in zip(got, formats, expected, strict=True):
            assert struct.unpack_from(f"<{format}", raw)[0] == value
    assert context.function(every_type()) is function and bindings.count("cuModuleLoadDataEx") == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "0 arguments; it takes 5"),
        ([GpuSpan(0, 0), GpuSpan(0, 0), 1, 1, 1 << 32], "4294967296 as i32"),
        ([GpuSpan(0, 0), GpuSpan(0, 0), 1, 1, 1.5], "1.5 as i32"),
    ],
)
def test_arguments_that_do_not_fit(bindings: Bindings, arguments: list[Any], told: str) -> None:
    context = _context(bindings)
    with pytest.raises(DriverError, match=f"cuLaunchKernel of combine failed: CUDA_ERROR_INVALID_VALUE .{told}"):
        context.launch(context.function(combine()), 1, arguments, context.stream())
    assert not bindings.launches


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (CUresult.CUDA_ERROR_INVALID_PTX,
         "of kernel combine failed: CUDA_ERROR_INVALID_PTX (words for 218: ptxas error line 3 fatal)"),
        (CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the driver is older than the PTX: install a newer one"),
    ],
)  # fmt: skip
def test_what_the_compiler_says_is_told(bindings: Bindings, status: CUresult, told: str) -> None:
    context = _context(bindings)
    bindings.fails["cuModuleLoadDataEx"], bindings.log = status, b"ptxas error\n line 3\nfatal"
    with pytest.raises(DriverError) as found:
        context.function(combine())
    assert told in str(found.value) and "\n" not in str(found.value)
    (_, given) = next(call for call in bindings.calls if call[0] == "cuModuleLoadDataEx")
    assert given[0].endswith(b"\0") and given[1] == len(given[2]) == len(given[3]) == 2


def test_every_status_is_looked_at(bindings: Bindings) -> None:
    context = _context(bindings)
    stream, address = context.stream(), context.allocate(100)
    bindings.fails = {"cuMemAlloc": CUresult.CUDA_ERROR_OUT_OF_MEMORY}
    with pytest.raises(OutOfDeviceMemory, match=r"cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY .words for 2"):
        context.allocate(100)
    bindings.fails = {"cuEventQuery": CUresult.CUDA_ERROR_NOT_READY}
    assert not context.done(context.event())
    bindings.fails = dict.fromkeys(
        ("cuEventQuery", "cuStreamSynchronize", "cuLaunchKernel", "cuMemsetD8Async"),
        CUresult.CUDA_ERROR_ILLEGAL_ADDRESS,
    )
    function, given = context.function(combine()), [GpuSpan(address, 4), GpuSpan(address, 4), 1, 1, 1]
    for call in (
        lambda: context.done(context.event()), lambda: context.synchronize(stream),
        lambda: context.launch(function, 1, given, stream), lambda: context.fill(address, 0, 1, stream),
    ):  # fmt: skip
        with pytest.raises(DriverError, match=r"CUDA_ERROR_ILLEGAL_ADDRESS .words for 700.; the GPU's context is lost"):
            call()
    assert context.lost is not None and context.lost.call == "cuEventQuery"


def test_a_thread_that_records_may_allocate(bindings: Bindings) -> None:
    context = _context(bindings)
    stream = context.stream()
    context.begin_capture(stream)
    bindings.calls.clear()
    context.free(context.allocate(10))
    names = [name for name, _ in bindings.calls]
    exchange = "cuThreadExchangeStreamCaptureMode"
    assert names == [exchange, "cuMemAlloc", exchange, exchange, "cuMemFree", exchange]
    (mode,) = bindings.calls[0][1]
    assert mode is bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    context.end_capture(stream)


def test_what_nobody_refers_to_is_destroyed_later(bindings: Bindings) -> None:
    context = _context(bindings)
    pinned, stream, event = context.pinned(1000), context.stream(), context.event()
    assert pinned.dtype == np.uint8 and pinned.shape == (1000,) and pinned.flags.writeable
    part = pinned[10:20]
    del pinned, stream, event
    gc.collect()
    context.stream()
    assert bindings.count("cuStreamDestroy") == bindings.count("cuEventDestroy") == 1
    assert bindings.count("cuMemFreeHost") == 0  # a part is alive
    del part
    gc.collect()
    context.stream()
    assert bindings.count("cuMemFreeHost") == 1


def test_a_stream_tells_whether_it_is_recorded(bindings: Bindings) -> None:
    context = _context(bindings)
    stream = context.stream()
    found = [context.is_recorded(stream)]
    context.begin_capture(stream)
    found.append(context.is_recorded(stream))
    context.end_capture(stream)
    assert [*found, context.is_recorded(stream)] == [False, True, False]


def test_a_freed_graph_is_not_replayed(bindings: Bindings) -> None:
    context = _context(bindings)
    stream = context.stream()
    context.begin_capture(stream)
    graph = context.end_capture(stream)
    context.free_graph(graph)
    context.free_graph(graph)
    assert bindings.count("cuGraphExecDestroy") == 1
    with pytest.raises(DriverError, match="the graph was freed"):
        context.replay(graph, stream)


def test_the_rest_is_passed_on(bindings: Bindings) -> None:
    context = _context(bindings)
    event, stream = context.event(timing=True), context.stream()
    assert context.memory_info() == (1 << 29, 1 << 30) and context.elapsed(event, event) == 1.5
    context.synchronize()
    context.synchronize(event)
    assert ("cuEventCreate", (0,)) in bindings.calls and ("cuStreamCreate", (1,)) in bindings.calls
    assert bindings.count("cuCtxSynchronize") == bindings.count("cuEventSynchronize") == 1 and stream.handle


def test_ptx_is_kept_for_the_next_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    write = real_function.ptx.write
    monkeypatch.setattr(real_function, "_cache", lambda: CodeCache(tmp_path / "code", tmp_path / "key"))
    monkeypatch.setattr(real_function.ptx, "write", lambda kernel, of: (written.append(of), write(kernel, of))[1])
    first = [real_function.ptx_of(combine(), capability) for capability in ((8, 0), (9, 0))]
    again = [real_function.ptx_of(combine(), capability) for capability in ((8, 0), (9, 0))]
    assert first == again and written == [(8, 0), (9, 0)] and "sm_80" in first[0]


# -- the bindings that are installed -----------------------------------------------------------------------------------


def test_the_bindings_have_what_is_asked_of_them() -> None:
    """All names that the driver's modules use are there, with enum members; of the bindings NVIDIA publishes."""
    assert importlib.util.find_spec("cuda.bindings") is not None, "pip install 'cuda-bindings>=12'"
    from cuda.bindings import driver

    folder = Path(real.__file__).parent
    trees = [ast.parse((folder / name).read_text()) for name in ("real.py", "real_context.py", "real_function.py")]
    texts = {
        n.value for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }
    names = {n.attr for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    functions = {text.split()[0] for text in texts | names if text.startswith("cu") and text[2:3].isupper()}
    assert {"cuInit", "cuLaunchKernel", "cuMemcpyPeerAsync", "cuGraphInstantiate"} <= functions
    assert not [name for name in functions if not callable(getattr(driver, name, None))]
    for kind, prefix in (
        ("CUfunction_attribute", "CU_FUNC_ATTRIBUTE_"), ("CUjit_option", "CU_JIT_"),
        ("CUstreamCaptureMode", "CU_STREAM_CAPTURE_MODE_"),
    ):  # fmt: skip
        members = {name for name in names if name.startswith(prefix)}
        assert members and all(hasattr(getattr(driver, kind), name) for name in members)
    for member in Bindings.CUdevice_attribute:
        assert int(getattr(driver.CUdevice_attribute, member.name)) == member
    for member in CUresult:
        assert int(getattr(driver.CUresult, member.name)) == member
