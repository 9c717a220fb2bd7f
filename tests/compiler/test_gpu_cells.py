"""Loops over time as TensorFlow 1 writes them, on GPUs: values and gradients beside the CPU's, and what a step is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import perturbation, tolerance
from tests.bench.cuda.paper import PaperDriver
from tests.compiler.layers import normal
from toolkit import client as gm
from toolkit.client.gradients import gradients
from toolkit.client.recurrent import rnn, rnn_cell
from toolkit.client.recurrent.cells.fused import GRUBlockCellV2, LSTMBlockCell
from toolkit.client.recurrent.cells.gated import NASCell, SRUCell
from toolkit.client.recurrent.wrappers import DropoutWrapper
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.runtime.session import Session

pytest.importorskip("llvmlite")
STEPS, BATCH, UNITS = 4, 3, 8

CELLS: dict[str, Callable[[int], Any]] = {
    "basic": rnn_cell.BasicLSTMCell,
    "lstm": rnn_cell.LSTMCell,
    "peepholes": lambda units: rnn_cell.LSTMCell(units, use_peepholes=True),
    "projection": lambda units: rnn_cell.LSTMCell(units, num_proj=max(units // 2, 1)),
    "gru": rnn_cell.GRUCell,
    "basic rnn": rnn_cell.BasicRNNCell,
    "chosen": lambda units: rnn_cell.BasicRNNCell(units, activation=lambda x: gm.where(x > 0, x, x * 0.25)),
    "nas": NASCell,
    "sru": SRUCell,
    "lstm block": LSTMBlockCell,
    "lstm block, peepholes": lambda units: LSTMBlockCell(units, use_peephole=True),
    "gru block": GRUBlockCellV2,
    "two layers": lambda units: rnn_cell.MultiRNNCell([rnn_cell.BasicLSTMCell(units) for _ in range(2)]),
}


#: launches of a step without and with gradients by the weights: a product and a kernel for each product of a state,
#: there and back; a second layer has another product of what the first one gives
LAUNCHES = {
    "basic": (2, 4),
    "nas": (2, 4),
    "sru": (4, 8),
    "lstm block": (2, 4),
    "gru block": (4, 9),
    "peepholes": (2, 4),
    "gru": (4, 8),
    "chosen": (2, 4),
    "two layers": (5, 10),
}


def _weights(shape: Any, dtype: Any = None, partition_info: Any = None, **_: Any) -> Any:
    """Numbers that are the same in every session."""
    sizes = tuple(int(size) for size in shape)
    return gm.constant(normal(*sizes, seed=len(sizes)) / np.float32(sizes[0] ** 0.5))


def layer(
    x: Any, cell: str, units: int, lengths: list[int] | None = None, *, both_ways: bool = False
) -> tuple[list[Any], list[Any]]:
    """Outputs and states of a layer over x[steps, batch, inputs]; and its gradients by x and all weights."""
    make = CELLS[cell]
    with gm.variable_scope("layer", initializer=_weights):
        if both_ways:
            outputs, states = rnn.bidirectional_dynamic_rnn(
                make(units), make(units), x, lengths, dtype=gm.float32, time_major=True
            )
        else:
            outputs, states = rnn.dynamic_rnn(make(units), x, lengths, dtype=gm.float32, time_major=True)
    made = gm.nest.flatten([outputs, states])
    loss = gm.add_n([gm.reduce_sum(each * normal(*each.static_shape.as_list(), seed=9)) for each in made])
    return made, gradients([loss], [x, *gm.trainable_variables()])


def compared(
    shape: tuple[int, ...], cell: str, units: int, precision: str = "f32", *, learns: bool = True, **more: Any
) -> list[str]:
    """Run a layer on the CPU and three times on a GPU (launched, recorded, replayed).

    Returns:
        what the GPU's backend made; of numbers that are further apart than rounding explains a failure.
    """
    x = normal(*shape)
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, list(shape))
        made, by = layer(given, cell, units, **more)
        wanted = [*made, *by] if learns else made
        start = gm.global_variables_initializer()
    with Session(graph, devices={"CPU": 1}) as session:
        session.run(start)
        expected = session.run(wanted, {given: x})
    allowed = perturbation.allowed(
        graph, wanted, {given: x}, [start], **({} if precision == "f32" else {"precision": precision})
    )
    with choose.using(FakeDriver()), Session(graph, devices={"GPU": 1}, precision=precision) as session:
        session.run(start)
        for _ in range(3):
            found = session.run(wanted, {given: x})
            for value, one, other, apart in zip(wanted, found, expected, allowed, strict=True):
                tolerance.assert_within(one, other, apart, value.name)
        return session.explain(wanted, {given: x})


def bodies(lines: list[str]) -> list[list[str]]:
    """What each iteration of each loop does, in the words of a plan."""
    found: list[list[str]] = []
    inside = False
    for line in lines:
        if line.startswith("    one iteration"):
            found.append([])
            inside = True
        elif inside and line.startswith("      ") and line.split()[0].isdigit():
            found[-1].append(line.split()[1])
        else:
            inside = False
    return found


@pytest.mark.parametrize("cell", CELLS)
def test_cells(cell: str) -> None:
    """A step is recorded as one CUDA graph, in which the host decides on nothing; what is given comes in beforehand."""
    lines = compared((STEPS, BATCH, 5), cell, UNITS)
    assert not any("launch by launch" in line or "the host decides" in line for line in lines), lines
    forwards, _ = bodies(lines)
    assert "gpu_host_number" in forwards


def _launches(cell: str, steps: int, *, learns: bool) -> int:
    """What a driver on paper is asked for in a step that was recorded, copies aside."""
    driver: Any = PaperDriver()
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, [steps, 4, 5])
        made, by = layer(given, cell, 16)
        wanted = by[1:] if learns else made
        start = gm.global_variables_initializer()
    with choose.using(driver), Session(graph, devices={"GPU": 1}) as session:
        session.run(start)
        for _ in range(3):
            session.run(wanted, {given: normal(steps, 4, 5)})
        done = driver.open(0).launches
        done.clear()
        session.run(wanted, {given: normal(steps, 4, 5)})
        kernels = [each for each in done if each.kind != "copy"]
        assert all(each.captured for each in kernels)
        return len(kernels)


def test_dropout() -> None:
    """Draws are no reason to leave products in a loop; what was kept does not go through host memory."""
    x = normal(STEPS, 4, 5)
    with gm.Graph().as_default() as graph, gm.variable_scope("layer", initializer=_weights):
        given = gm.placeholder(gm.float32, list(x.shape))
        cell = DropoutWrapper(rnn_cell.BasicLSTMCell(16), output_keep_prob=0.5, state_keep_prob=0.9, seed=3)
        outputs, _ = rnn.dynamic_rnn(cell, given, dtype=gm.float32, time_major=True)
        wanted = [outputs, *gradients([gm.reduce_sum(outputs * outputs)], gm.trainable_variables())]
        start = gm.global_variables_initializer()

    def work(session: Session) -> list[Any]:
        session.run(start)
        return [each for _ in range(3) for each in session.run(wanted, {given: x})]

    with choose.using(FakeDriver()), Session(graph, devices={"GPU": 1}) as session:
        there, lines = work(session), session.explain(wanted, {given: x})
    assert not any("launch by launch" in line for line in lines), lines
    assert all("ConcatV2" not in body for body in bodies(lines))
    with Session(graph, devices={"CPU": 1}) as session:
        here = work(session)
    assert not np.array_equal(here[0], here[len(wanted)])
    perturbation.assert_agree([there, here], lambda: perturbation.of_work(graph, work))


@pytest.mark.parametrize("cell", LAUNCHES)
def test_launches(cell: str) -> None:
    """Two steps more are so many launches more; what is done for all steps at once does not count."""
    for learns, each in zip((False, True), LAUNCHES[cell], strict=True):
        few, many = (_launches(cell, steps, learns=learns) for steps in (10, 12))
        assert many - few == 2 * each, (cell, learns)


@pytest.mark.parametrize("cell", ["basic", "gru", "two layers"])
def test_lengths(cell: str) -> None:
    """Rows whose sequence is over keep their state; how often the loop runs depends on what the lengths are."""
    compared((STEPS, BATCH, 5), cell, UNITS, lengths=[2, 4, 1])


def test_both_ways() -> None:
    """So many steps that one kernel joins them."""
    compared((9, 2, 3), "lstm", 4, lengths=[3, 9], both_ways=True)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("cell", ["basic", "gru"])
def test_cells_of_16_bits(cell: str, precision: str) -> None:
    compared((STEPS, BATCH, 5), cell, UNITS, precision)


@pytest.mark.parametrize(("rows", "count", "again"), [(6, 6, False), (STEPS, 6, True)], ids=["unwritten", "again"])
def test_rows_that_are_read(rows: int, count: int, again: bool) -> None:
    """Of an array with more elements than were written the others are zeros; one that keeps them is read again."""
    x = normal(STEPS, BATCH, 5)

    def build(given: Any) -> list[Any]:
        w = gm.constant(normal(5 + UNITS, UNITS, seed=3) / np.float32(4))
        array = gm.TensorArray(gm.float32, size=rows, element_shape=[BATCH, 5], clear_after_read=not again)
        array = array.unstack(given)

        def body(i: Any, h: Any) -> list[Any]:
            row = array.read(gm.ops.floor_mod(i, STEPS) if again else i)
            return [i + 1, gm.tanh(gm.matmul(gm.concat([row, h], 1), w))]

        return [gm.while_loop(lambda i, h: i < count, body, [gm.constant(0), gm.zeros([BATCH, UNITS])])[1]]

    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, list(x.shape))
        wanted = build(given)
    with Session(graph, devices={"CPU": 1}) as session:
        (expected,) = session.run(wanted, {given: x})
    (apart,) = perturbation.allowed(graph, wanted, {given: x})
    with choose.using(FakeDriver()), Session(graph, devices={"GPU": 1}) as session:
        for _ in range(3):
            (found,) = session.run(wanted, {given: x})
            tolerance.assert_within(found, expected, apart, "state")


@settings(max_examples=4, deadline=None)
@given(
    cell=st.sampled_from(sorted(CELLS)), steps=st.integers(1, 10), batch=st.integers(1, 5), inputs=st.integers(1, 9),
    units=st.integers(1, 10), learns=st.booleans(), data=st.data(),
)  # fmt: skip
def test_layers_of_any_size(
    cell: str, steps: int, batch: int, inputs: int, units: int, learns: bool, data: st.DataObject
) -> None:
    lengths = data.draw(st.none() | st.lists(st.integers(0, steps), min_size=batch, max_size=batch))
    compared((steps, batch, inputs), cell, units, learns=learns, lengths=lengths)
