"""Variables on GPUs: where their values are, who shares them, and what moves where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels.step import FakeStep
from toolkit import client as gm
from toolkit.errors import FailedPreconditionError, InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.kernels import registry
from toolkit.kernels.cuda.device import device
from toolkit.kernels.gpu.state import cells
from toolkit.kernels.resources import variables
from toolkit.kernels.resources.handles import ResourceHandle
from toolkit.kernels.resources.variables import Variable, make_ref_variable
from toolkit.runtime.session import Session

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def _compute(op: str, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    """The kernel of a node on GPU:0."""
    graph = Graph()
    sources = [graph.add("Placeholder", f"in{at}", attrs={"dtype": each}) for at, each in enumerate(inputs)]
    node = graph.add(op, "node", sources, attrs=attrs)
    node.device = "/device:GPU:0"
    return registry.get(node, "GPU").factory(registry.KernelNode(node))


def _reference(value: Any = X) -> Any:
    cell = make_ref_variable("v", dtypes.float32, Shape(None))
    cell.value = value if value is None else device(0).to_device(value)
    return cell


def test_a_variable_shares_what_it_was_assigned_until_it_is_written() -> None:
    gpu, types = device(0), {"T": dtypes.float32}
    assign = _compute("Assign", [dtypes.float32, dtypes.float32], types)
    add = _compute("AssignAdd", [dtypes.float32, dtypes.float32], types)
    first, second = _reference(None), _reference(None)
    given = gpu.to_device(X)
    assign(first, given)
    assign(second, first.value)
    assert first.value.address == second.value.address == given.address
    add(first, given)
    assert first.value.address != second.value.address == given.address
    address = first.value.address
    add(first, given)  # nobody else has it now
    assert first.value.address == address
    np.testing.assert_array_equal(gpu.to_host(first.value), 3 * X)
    np.testing.assert_array_equal(gpu.to_host(second.value), X)


def test_what_was_read_stays_what_it_was() -> None:
    gpu, step = device(0), FakeStep()
    handle = ResourceHandle("", "v", variables.VARIABLE, ((dtypes.float32, Shape([2, 3])),))
    cell = Variable("v", dtypes.float32, Shape([2, 3]))
    cell.value = gpu.to_device(X)
    step.resources.create("", "v", cell)
    types = {"dtype": dtypes.float32}
    read = _compute("ReadVariableOp", [dtypes.resource], types)
    subtract = _compute("AssignSubVariableOp", [dtypes.resource, dtypes.float32], types)
    before = read(step, handle)
    flat = before.reshaped((6,))
    del before  # a view alone holds the memory as well
    subtract(step, handle, gpu.to_device(X))
    np.testing.assert_array_equal(gpu.to_host(flat), X.ravel())
    np.testing.assert_array_equal(gpu.to_host(read(step, handle)), 0 * X)
    with pytest.raises(InvalidArgumentError, match=r"Cannot update variable with shape \[2, 3\]"):
        subtract(step, handle, gpu.to_device(X[0]))


def test_values_move_to_whoever_reads_or_writes_them() -> None:
    gpu, other = device(0), device(1)
    cell: Any = _reference()
    np.testing.assert_array_equal(variables.read(cell), X)  # a copy: the variable stays
    assert gpu.memory.owns(cell.value)
    np.testing.assert_array_equal(other.to_host(cells.read(other, cell)), X)
    assert other.memory.owns(cell.value)
    variables.writable(cell)[:] += 1
    assert type(cell.value) is np.ndarray
    np.testing.assert_array_equal(gpu.to_host(cells.writable(gpu, cell)), X + 1)
    assert gpu.memory.owns(cell.value)
    np.testing.assert_array_equal(variables.owned(cell.value), X + 1)
    np.testing.assert_array_equal(variables.Donated(cell.value).take(), X + 1)


def test_a_variable_without_a_value_says_so() -> None:
    with pytest.raises(FailedPreconditionError, match="uninitialized value v"):
        cells.read(device(0), _reference(None))


def test_temporary_variables() -> None:
    step, attrs = FakeStep(), {"dtype": dtypes.float32, "shape": Shape([2, 3]), "var_name": b"t"}
    step.frame_iter = (0, 0)  # type: ignore[attr-defined]
    cell = _compute("TemporaryVariable", [], attrs)(step)
    destroy = _compute("DestroyTemporaryVariable", [dtypes.float32], {"T": dtypes.float32, "var_name": b"t"})
    np.testing.assert_array_equal(device(0).to_host(destroy(step, cell)), np.zeros((2, 3), np.float32))


def test_a_part_of_a_tensor_in_another_shape_is_still_that_part() -> None:
    gpu = device(0)
    part = gpu.to_device(X).viewed(np.float32, (2,), offset=16)
    np.testing.assert_array_equal(gpu.to_host(part.reshaped((2, 1))), X.ravel()[4:, None])


def _updated(device: str, dtype: Any, start: Any, update: Any) -> Any:
    """A resource variable of a type after an op over its handle."""
    with gm.Graph().as_default() as graph, graph.device(device):
        handle = gm.ops.var_handle_op(dtype=dtype, shape=start.shape, shared_name="v")
        first = gm.ops.assign_variable_op(handle, start)
        with graph.control_dependencies([first]):
            changed = update(handle)
        with graph.control_dependencies([changed]):
            read = gm.ops.read_variable_op(handle, dtype=dtype)
    with Session(graph, devices={"GPU": 1}) as session:
        return session.run(read)


@pytest.mark.parametrize("how", ["min", "max"])
@pytest.mark.parametrize("name", ["uint8", "uint16", "uint32", "uint64"])
def test_integers_without_sign_are_ordered_as_such(name: str, how: str) -> None:
    """Half of them have the first bit set."""
    most = int(np.iinfo(name).max)
    start = np.array([[0, most], [most // 2, most // 2 + 1], [5, most - 5]], name)
    values = np.array([[most - 1, 1], [7, most], [most // 2, most // 2 + 2]], name)
    rows = np.array([0, 2, 0], np.int32)

    def update(handle: Any) -> Any:
        return getattr(gm.ops, f"resource_scatter_{how}")(handle, rows, values)

    def by_coordinates(handle: Any) -> Any:
        return getattr(gm.ops, f"resource_scatter_nd_{how}")(handle, rows[:, None], values)

    wanted = start.copy()
    (np.minimum if how == "min" else np.maximum).at(wanted, rows, values)
    for each in (update, by_coordinates):
        np.testing.assert_array_equal(_updated("/device:GPU:0", name, start, each), wanted)


@pytest.mark.parametrize("how", ["add", "sub"])
@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex_variables_are_added_to(name: str, how: str) -> None:
    start, value = (np.array([[1 + 2j, -3j], [4, 5 - 1j]], name) * factor for factor in (1, 0.5 - 1j))
    found = _updated(
        "/device:GPU:0", name, start, lambda handle: getattr(gm.ops, f"assign_{how}_variable_op")(handle, value)
    )
    np.testing.assert_array_equal(found, start + value if how == "add" else start - value)


def test_rows_of_truth_values_are_replaced() -> None:
    start, rows = np.array([[True, False], [False, False], [True, True]]), np.array([2, 0], np.int32)
    values = np.array([[False, True], [False, True]])
    found = _updated(
        "/device:GPU:0", "bool", start, lambda handle: gm.ops.resource_scatter_update(handle, rows, values)
    )
    np.testing.assert_array_equal(found, [[False, True], [False, False], [False, True]])
