"""Ways that are chosen by measuring: which is taken, what is asked of the libraries, and when nothing is measured."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.kernels.cuda import test_libraries as stand_ins
from toolkit.kernels.cuda import device as devices
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.base import DriverError, GpuSpan
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.kernels.cuda.libraries import choosing, cublaslt, cudnn_graphs
from toolkit.kernels.cuda.libraries.base import LibraryError, Product
from toolkit.kernels.cuda.libraries.choosing import Choosing, Way, is_repeatable


def _context(times: list[float]) -> Any:
    """A fake GPU that measures, on which ways take these times, each for all of its replays."""
    context: Any = FakeDriver(1).open(0)
    context.measures = True
    replays = 1 + choosing.REPLAYS
    found = itertools.chain.from_iterable([each] * replays for each in times)
    context.elapsed = lambda start, end: next(found)
    return context


def _ways(context: Any, done: list[int], count: int) -> Iterator[Way]:
    for number in range(count):

        def run(stream: Any, number: int = number) -> None:
            context.submit("work", lambda: done.append(number), stream)

        yield Way(number, run)


def test_the_fastest_is_taken_and_each_is_done_in_the_stream_that_wants_it() -> None:
    context, done = _context([3.0, 2.0, 4.0]), list[int]()
    stream = context.stream()
    assert Choosing(context).fastest(_ways(context, done, 3), stream) == 1
    each = 1 + choosing.CALLS * (1 + choosing.REPLAYS)
    assert done == [0] * each + [1] * each + [2] * each


def test_a_hopeless_way_is_replayed_once() -> None:
    context, done = _context([1.0]), list[int]()
    context.elapsed = lambda start, end: 1.0 if max(done) == 0 else 4.0
    assert Choosing(context).fastest(_ways(context, done, 2), context.stream()) == 0
    assert done.count(1) == 1 + choosing.CALLS


def test_so_many_ways_are_looked_at() -> None:
    count = choosing.MOST_WAYS + 5
    context, done = _context([float(count - number) for number in range(count)]), list[int]()
    assert Choosing(context).fastest(_ways(context, done, count), context.stream()) == choosing.MOST_WAYS - 1


def test_when_the_time_is_up_the_best_so_far_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    context, done = _context([2.0, 1.0, 0.5]), list[int]()
    seconds = itertools.accumulate(itertools.repeat(0.2))
    monkeypatch.setattr(choosing.time, "perf_counter", lambda: next(seconds))
    chooses = Choosing(context)
    assert chooses.fastest(_ways(context, done, 3), context.stream()) == 1
    assert not chooses.is_over
    monkeypatch.setattr(choosing, "ALL_SECONDS", chooses.seconds)
    assert chooses.is_over


def test_ways_that_do_not_work_are_passed_over() -> None:
    context, done = _context([2.0]), list[int]()

    def refuse(stream: Any) -> None:
        raise LibraryError("no")

    def late(stream: Any) -> None:
        if context.is_recorded(stream):
            raise LibraryError("not in a recording")

    ways = [Way("refused", refuse), Way("late", late), *_ways(context, done, 1)]
    chooses = Choosing(context)
    assert chooses.fastest(ways, context.stream()) == 0
    assert chooses.fastest(ways[:2], context.stream()) is None


def test_an_error_that_loses_the_gpu_is_told() -> None:
    context = _context([])
    context.faults.arm("cuStreamBeginCapture", "CUDA_ERROR_ILLEGAL_ADDRESS")
    with pytest.raises(DriverError, match="context is lost"):
        Choosing(context).fastest(_ways(context, [], 2), context.stream())


def test_what_reads_its_result_is_not_done_twice() -> None:
    out, other, within = GpuSpan(4096, 256), GpuSpan(4352, 64), GpuSpan(4300, 64)
    assert is_repeatable((out, None), (other, None))
    assert not is_repeatable((out,), (other, out))
    assert not is_repeatable((out,), (within,))


@pytest.fixture
def lt(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any, Any]:
    library = stand_ins.LibraryStandIn(algorithms=3)
    monkeypatch.setattr(cublaslt, "load", lambda: library)
    context = _context([2.0, 3.0, 1.0])
    return library, cublaslt.CublasLt(context, lambda: None), context


_PRODUCT = Product(5, 6, 4, "float32")
_SPANS = GpuSpan(4096, 80), GpuSpan(8192, 96), GpuSpan(12288, 120)


def test_of_a_product_s_algorithms_the_fastest_is_used_from_then_on(lt: tuple[Any, Any, Any]) -> None:
    library, blas, context = lt
    stream = context.stream()
    blas.matmul(_PRODUCT, *_SPANS, stream)
    (asked,) = library.named("cublasLtMatmulAlgoGetHeuristic")
    assert asked[-3] == choosing.MOST_WAYS
    runs = library.named("cublasLtMatmul")
    # each is put into the stream once and then recorded; the stand-in works at once
    assert [run[14] for run in runs] == [4096] * 6 + [8192] * 6 + [16384] * 6 + [16384]  # bytes of workspace
    assert {run[13] for run in runs} != {0}
    blas.matmul(_PRODUCT, *_SPANS, stream)
    assert [run[14] for run in library.named("cublasLtMatmul")[len(runs) :]] == [16384]


def test_nothing_is_measured_while_a_step_is_recorded(lt: tuple[Any, Any, Any]) -> None:
    library, blas, context = lt
    stream = context.stream()
    context.begin_capture(stream)
    blas.matmul(_PRODUCT, *_SPANS, stream)
    context.end_capture(stream)
    assert [run[14] for run in library.named("cublasLtMatmul")] == [4096]
    blas.matmul(_PRODUCT, *_SPANS, stream)  # but then
    assert library.named("cublasLtMatmul")[-1][14] == 16384


def test_a_product_that_is_added_to_its_result_is_done_once(lt: tuple[Any, Any, Any]) -> None:
    library, blas, context = lt
    stream = context.stream()
    blas.matmul(Product(5, 6, 4, "float32", beta=1.0), *_SPANS, stream)
    assert [run[14] for run in library.named("cublasLtMatmul")] == [4096]


class _Graph(stand_ins.GraphStandIn):
    """With three plans: the first cannot be built, the third wants the more memory."""

    def __getattr__(self, name: str) -> Any:
        call = super().__getattr__(name)

        def counted(*arguments: Any, **named: Any) -> Any:
            found = call(*arguments, **named)
            if name == "get_execution_plan_count":
                return 3
            if name == "build_plan_at_index" and arguments[0] == 0:
                raise ValueError("excluded")
            return 8192 * arguments[0] if name == "get_workspace_size_plan_at_index" else found

        return counted


def test_of_a_convolution_s_plans_the_fastest_is_used_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    library = stand_ins.CudnnStandIn()
    library.pygraph = lambda **how: _Graph(library, **how)
    monkeypatch.setattr(cudnn_graphs, "load", lambda: library)
    context = _context([2.0, 1.0])
    dnn, stream = cudnn_graphs.Cudnn(context, lambda: None), context.stream()
    x, w, y = (GpuSpan(4096 * at, 4096) for at in (1, 2, 3))
    for _ in range(2):
        dnn.convolve(stand_ins.CONVOLUTION, x, w, y, stream)
    runs = [arguments[2] for arguments, _ in library.named("execute_plan_at_index")]
    assert runs == [1] * 6 + [2] * 6 + [2, 2]
    assert not library.named("execute")


def test_devices_measure_unless_their_bits_shall_be_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(devices.DETERMINISTIC, raising=False)
    monkeypatch.delenv(devices.AUTOTUNE, raising=False)
    with choose.using(FakeDriver(1)):
        device = devices.device(0)
        assert device.context.measures
        device.deterministic = True
        assert not device.context.measures
    monkeypatch.setenv(devices.AUTOTUNE, "0")
    with choose.using(FakeDriver(1)):
        assert not devices.device(0).context.measures
        np.testing.assert_array_equal(devices.device(0).to_host(devices.device(0).zeros((2,), np.float32)), [0, 0])
