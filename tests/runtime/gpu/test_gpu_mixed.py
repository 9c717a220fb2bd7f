"""Steps spread over CPUs and GPUs in odd ways: who decides is elsewhere, a type has no kernel, a part is malformed."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from toolkit import client as gm
from toolkit.client.flow import functional_flow
from toolkit.errors import InvalidArgumentError, ResourceExhaustedError
from toolkit.graph import dtypes
from toolkit.graph.node import Output
from toolkit.kernels.cuda import settings
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.runtime.session import Session

ops = gm.ops
X = np.arange(3, dtype=np.float32)
ALL = {"CPU": 2, "GPU": 2}


@pytest.fixture(params=[0, 1], autouse=True)
def _gpus(request: pytest.FixtureRequest) -> Iterator[None]:
    """Two devices that do their work in one order or another."""
    with choose.using(FakeDriver(2, seed=request.param)):
        yield
    settings.forget()


@pytest.mark.parametrize("tokens", [False, True])
@pytest.mark.parametrize("decides", ["CPU:0", "CPU:1", "GPU:0", "GPU:1"])
@pytest.mark.parametrize("changed", ["CPU:0", "GPU:1"])
def test_another_device_decides_what_becomes_of_a_variable(decides: str, changed: str, tokens: bool) -> None:
    """By reference, so that the Switch is where the variable is and what decides comes from elsewhere."""
    with gm.Graph().as_default() as graph:
        with graph.device(f"/device:{changed}"):
            w = gm.Variable(np.ones(3, np.float32))
        with graph.device(f"/device:{decides}"):
            x = gm.placeholder(gm.float32, [3])
            more = gm.cond(gm.reduce_sum(x) > 0.5, lambda: w.assign_add(gm.identity(x)), lambda: w.assign(x * 0.5))
        start = gm.global_variables_initializer()
    with Session(graph, devices=ALL, force_tokens=tokens) as session:
        session.run(start)
        for given, wanted in ((X, X + 1), (X, 2 * X + 1), (-X, -X / 2)):
            session.run(more.op, {x: given})
            np.testing.assert_array_equal(session.run(w.value()), wanted)


@pytest.mark.parametrize("tokens", [False, True])
def test_small_integers_come_from_another_gpu(tokens: bool) -> None:
    """What is wanted in host memory there may lie in the memory of the GPU that it comes from."""
    with gm.Graph().as_default() as graph:
        with graph.device("/device:GPU:0"):
            x = gm.placeholder(gm.float32, [3])
            n = gm.cast(x, gm.int32)
        with graph.device("/device:GPU:1"):
            both = ops.pack([n, n])
            tiled = ops.tile(x, n[1:2])
    with Session(graph, devices=ALL, force_tokens=tokens) as session:
        for _ in range(3):
            made, twice = session.run([both, tiled], {x: X * 2})
            np.testing.assert_array_equal(made, [[0, 2, 4]] * 2)
            np.testing.assert_array_equal(twice, [0, 2, 4] * 2)


def test_variables_of_types_with_and_without_kernels() -> None:
    """The handles look alike; what they are of decides where they can be."""
    with gm.Graph().as_default() as graph:
        made = [gm.Variable(np.ones(3, kind), use_resource=True) for kind in (np.float32, np.int32, np.float64)]
        values = [each.read_value() * 2 for each in made]
        start = gm.global_variables_initializer()
    with Session(graph, devices=ALL) as session:
        session.run(start)
        for value, variable in zip(session.run(values), made, strict=True):
            np.testing.assert_array_equal(value, [2, 2, 2])
            assert value.dtype == variable.dtype.base.numpy


@pytest.mark.parametrize("kind", ["float32", "int64", "string"])
@pytest.mark.parametrize("is_true", [False, True])
def test_numbers_and_texts_decide(kind: str, is_true: bool) -> None:
    with gm.Graph().as_default() as graph:
        decides, x = gm.placeholder(getattr(gm, kind), [], name="decides"), gm.placeholder(gm.float32, [3])
        y = functional_flow.cond(gm.placeholder(gm.bool, []), lambda: x * 2.0, lambda: x - 1.0)
        y = gm.identity(y)
    node = next(each for each in graph.core if each.op in ("If", "StatelessIf"))
    node.inputs[0] = Output(graph.core.node("decides"), 0)
    node.attrs["Tcond"] = dtypes.from_name(kind)
    given: Any = {"float32": 0.5, "int64": 3, "string": b"yes"}[kind] if is_true else b"" if kind == "string" else 0
    with Session(graph, devices=ALL) as session:
        for _ in range(3):
            np.testing.assert_array_equal(session.run(y, {decides: given, x: X}), X * 2 if is_true else X - 1)


@pytest.mark.parametrize("devices", [{"CPU": 2}, {"CPU": 1, "GPU": 1}])
def test_what_no_step_needs_may_be_malformed(devices: dict[str, int]) -> None:
    """It is looked at when a step needs it; to place the others, nobody has to understand it."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [3])
        w = gm.Variable(np.ones(3, np.float32))
        y, bad = x * 2.0, w.assign(x)
    node = bad.op.node
    node.inputs[1] = Output(node.inputs[1].node, 7)
    node.inputs.append(Output(node.inputs[0].node, 0))
    with Session(graph, devices=devices) as session:
        np.testing.assert_array_equal(session.run(y, {x: X}), X * 2)


@pytest.mark.parametrize("devices", [{"CPU": 1}, {"CPU": 2}, {"CPU": 1, "GPU": 2}])
def test_nothing_is_asked_for(devices: dict[str, int]) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [3])
    with Session(graph, devices=devices) as session:
        for _ in range(3):
            assert session.run([]) == [] and session.run([], {x: X}) == []


def _checked(x: Any, n: Any) -> Any:
    return ops.check_numerics(ops.log(1.0 - gm.cast(n, gm.float32) + x[0]), "it is none")


def _sliced(x: Any, n: Any) -> Any:
    return ops.slice(x * 2.0, gm.stack([n]), [2])


def _joined(x: Any, n: Any) -> Any:
    return gm.concat([gm.zeros(gm.stack([1 + n, 3])), gm.reshape(x, [1, 3])], 1)


def _matrix(x: Any, n: Any) -> Any:
    """Of ones, and singular, where n is 2."""
    return gm.ones([2, 2]) + gm.constant(2 * np.eye(2, dtype=np.float32)) * (gm.cast(n - 2, gm.float32) * x[1])


def _inverted(x: Any, n: Any) -> Any:
    return ops.matrix_inverse(_matrix(x, n))


def _solved(x: Any, n: Any) -> Any:
    return ops.matrix_solve(_matrix(x, n), gm.ones([2, 1]))


def _summed(w: Any, x: Any) -> Any:
    return w.assign_add(x)


def _averaged(w: Any, x: Any) -> Any:
    """w + x, as the average that a graph keeps of 4 x."""
    return w.assign_sub((w.read_value() - (w.read_value() + 4.0 * x)) * 0.25)


def _mixed(w: Any, x: Any) -> Any:
    """Likewise, as a sum of shares."""
    return w.assign(w.read_value() * 0.75 + (w.read_value() + 4.0 * x) * 0.25)


@pytest.mark.parametrize("update", [_summed, _averaged, _mixed])
@pytest.mark.parametrize("fails", [_checked, _sliced, _joined, _inverted, _solved])
def test_what_is_done_before_a_step_fails_is_done(fails: Any, update: Any) -> None:
    """An update that stands before what fails, in the order that the graph asks for."""
    with gm.Graph().as_default() as graph:
        x, n = gm.placeholder(gm.float32, [3]), gm.placeholder(gm.int32, [])
        w = gm.Variable(np.zeros(3, np.float32), use_resource=True)
        with graph.control_dependencies([update(w, x).op]):
            y = fails(gm.identity(x), gm.identity(n))
        start = gm.global_variables_initializer()
    with Session(graph, devices=ALL) as session:
        session.run(start)
        for step, is_bad in enumerate((True, False, False, True, False), start=1):
            if is_bad:
                with pytest.raises(InvalidArgumentError):
                    session.run(y, {x: X, n: 2})
            else:
                session.run(y, {x: X, n: 0})
            np.testing.assert_array_equal(session.run(w.value()), step * X)


@pytest.mark.parametrize("asked", ["CPU:1", "GPU:0", "GPU:1"])
def test_a_loop_of_functions_runs_where_it_is_called(asked: str) -> None:
    """Whatever its body asks for; in place of the call, too."""
    with gm.Graph().as_default() as graph, graph.device("/device:GPU:0"):
        x = gm.placeholder(gm.float32, [3])

        def body(i: Any, y: Any) -> Any:
            with gm.get_default_graph().device(f"/device:{asked}"):
                return [i + 1, gm.tanh(y) + 1.0]

        y = functional_flow.while_loop(lambda i, y: i < 3, body, [gm.constant(0), x])[1]
        with graph.device(""):
            z = gm.identity(y)
    wanted = X
    for _ in range(3):
        wanted = np.tanh(wanted) + 1
    with Session(graph, devices=ALL) as session:
        for _ in range(3):
            np.testing.assert_allclose(session.run(z, {x: X}), wanted, rtol=tolerance.gamma(30, np.dtype(np.float32)))


def test_what_is_fed_and_finds_no_room_is_named() -> None:
    with gm.Graph().as_default() as graph, graph.device("/device:GPU:0"):
        x = gm.placeholder(gm.float32, [None], name="much")
        y = ops.reverse_v2(x, [0])
    with (
        choose.using(FakeDriver(1, memory=1 << 20)),
        Session(graph, devices={"CPU": 1, "GPU": 1}) as session,
        pytest.raises(ResourceExhaustedError, match="node 'much': /device:GPU:0 has no room for 2000000 bytes"),
    ):
        session.run(y, {x: np.zeros(500_000, np.float32)})


@pytest.mark.parametrize("there", ["CPU:0", "GPU:0"])
def test_elements_of_an_array_may_be_empty(there: str) -> None:
    with gm.Graph().as_default() as graph, graph.device(f"/device:{there}"):
        x = gm.placeholder(gm.float32, [3, None, 4])
        handle, flow = ops.tensor_array_v3(3, dtype=gm.float32)
        flow = ops.tensor_array_scatter_v3(handle, [0, 1, 2], x, flow)
        y = [ops.tensor_array_read_v3(handle, k, flow, dtype=gm.float32) * 2.0 for k in range(3)]
    with Session(graph, devices=ALL) as session:
        for rows in (0, 2, 0):
            value = np.arange(3 * rows * 4, dtype=np.float32).reshape(3, rows, 4)
            for one, other in zip(session.run(y, {x: value}), value * 2, strict=True):
                np.testing.assert_array_equal(one, other, strict=True)
