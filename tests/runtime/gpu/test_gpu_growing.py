"""Lists and stacks without a limit in loops that tensors decide: steps that learn are one launch, on the fake driver.

What is learned is compared with the CPU's, and bit for bit with a GPU whose driver is too old for conditional nodes, so
that the host decides and nothing is recorded.
"""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.compiler.layers import normal
from tests.kernels.cuda.assembler import assembled
from tests.runtime.gpu import decided_graphs
from tests.runtime.gpu.decided_graphs import X, large
from tests.runtime.gpu.learning_graphs import COUNTED, GRAPHS, trained, weights
from tests.runtime.gpu.test_gpu_conditional import CPU, GPU, Steps
from toolkit import client as gm
from toolkit.client.flow import functional_flow
from toolkit.client.flow.tensor_list_array import TensorListArray
from toolkit.client.layers.core import Dense
from toolkit.client.recurrent import rnn_cell
from toolkit.client.seq2seq import decoder, helpers
from toolkit.compiler.backends.cuda.conditionals import array_kernels as conditional_arrays
from toolkit.compiler.backends.cuda.conditionals import growing as conditional_growing
from toolkit.compiler.backends.cuda.conditionals import nodes as conditional_nodes
from toolkit.compiler.backends.cuda.conditionals.list_uses import Capacity
from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cuda.draws import Draws
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.base import CONDITIONS_FROM
from toolkit.kernels.cuda.simt import ptx

#: the driver before conditional nodes
OLD = 12020
#: few iterations, then more than memory is for at first, few again, and more than it was doubled to
SCALES = (1.0, 1e4, 2e4, 0.1, 1e9, 1e9)


class Repeats:
    """How often a replay was taken back."""

    def __init__(self, patch: pytest.MonkeyPatch):
        self.count = 0
        give_back = Draws.give_back

        def counted(draws: Draws) -> None:
            self.count += 1
            give_back(draws)

        patch.setattr(Draws, "give_back", counted)


@pytest.mark.parametrize("name", GRAPHS)
def test_steps_that_learn_are_one_launch_and_give_the_cpus_numbers(name: str) -> None:
    steps = Steps(GRAPHS[name])
    scales = (1.0, 1.5, 0.5, 2.0)
    for scale in scales:
        steps.compare(X * scale)
    assert steps.notes == [] and steps.replays == len(scales) - 1


@pytest.mark.parametrize("name", ["shrinking", "functional_shrinking", "drawn", "lists_of_lists"])
def test_a_list_that_was_too_small_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    repeats = Repeats(monkeypatch)
    steps, beside = Steps(GRAPHS[name]), Steps(GRAPHS[name], version=OLD)
    for scale in SCALES:
        found, wanted = steps.run(GPU, X * scale), beside.run(GPU, X * scale)
        for one, other in zip(found, wanted, strict=True):
            assert one.tobytes() == other.tobytes() and one.dtype == other.dtype
    assert steps.notes == [] and not beside.replays
    assert repeats.count == 2 and steps.replays == len(SCALES) - 1, "two recordings were too small"


@pytest.mark.parametrize("name", ["growing_arrays", "growing_lists_by_place", "growing_lists_as_tensors"])
def test_what_grows_beyond_its_memory_is_recorded_anew(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors as long as the loop ran come back as long, whatever there is memory for."""
    repeats = Repeats(monkeypatch)
    make = decided_graphs.GRAPHS[name]
    steps, beside = Steps(make), Steps(make, version=OLD)
    for scale in SCALES:
        found, wanted = steps.run(GPU, X * scale), beside.run(GPU, X * scale)
        for one, other in zip(found, wanted, strict=True):
            assert one.shape == other.shape and one.tobytes() == other.tobytes() and one.dtype == other.dtype
    assert steps.notes == [] and repeats.count == 2 and steps.replays == len(SCALES) - 1


def _decoded(x: Any) -> Any:
    """A greedy decoder: its loop ends where all sentences do, and what it gives is as long."""

    def numbers(shape: Any, *_: Any, **__: Any) -> Any:
        return gm.constant(normal(*map(int, shape), seed=4))

    cell, words = rnn_cell.GRUCell(3, kernel_initializer=numbers), gm.constant(normal(3, 3, seed=5))
    layer = Dense(3, use_bias=False, kernel_initializer=numbers)
    helper = helpers.GreedyEmbeddingHelper(words, gm.constant([1, 1, 1, 1]), 0)
    outputs, _, lengths = decoder.dynamic_decode(
        decoder.BasicDecoder(cell, helper, x, output_layer=layer), maximum_iterations=20
    )
    return [outputs.rnn_output, outputs.sample_id, lengths]


def test_a_greedy_decoder_is_one_launch() -> None:
    steps, lengths = Steps(_decoded), set[int]()
    for scale in (0.5, 3.0, -4.0, -1.0, 9.0):
        steps.compare(X * np.float32(scale))
        lengths.add(steps.run(GPU, X * np.float32(scale))[1].shape[1])
    assert steps.notes == [] and steps.replays == 2 * 5 - 1 and len(lengths) > 1


def _summed(x: Any) -> Any:
    return [gm.reduce_sum(_grown(x).stack(), [0])]


def _beside_another(x: Any) -> Any:
    return [gm.concat([_grown(x).stack(), gm.expand_dims(x, 0)], 0)]


def _learned_from(x: Any) -> Any:
    w = weights()
    return trained(gm.reduce_mean(gm.square(_grown(gm.matmul(x, w.value())).stack())))


def _grown(x: Any) -> Any:
    made = gm.TensorArray(gm.float32, size=0, dynamic_size=True)
    return gm.while_loop(
        lambda i, y, made: large(y, 0.3), lambda i, y, made: [i + 1, y * 0.75, made.write(i, y)],
        [gm.constant(0), x, made],
    )[2]  # fmt: skip


@pytest.mark.parametrize("make", [_summed, _beside_another, _learned_from], ids=lambda make: make.__name__)
def test_what_asks_for_the_length_is_the_hosts(make: Any) -> None:
    steps = Steps(make)
    for scale in (1.0, 1.5, 3.0, 0.5):
        steps.compare(X * np.float32(scale))
    assert steps.notes


def _written_again(x: Any) -> Any:
    """Where one iteration is followed by another, that writes the same element."""
    made = gm.TensorArray(gm.float32, size=0, dynamic_size=True)
    body: Any = lambda i, y, made: [i + 1, y * 0.75, made.write(i * 0, y)]  # noqa: E731  as the others are
    _, y, made = gm.while_loop(lambda i, y, made: large(y), body, [gm.constant(0), x, made])
    return [y, made.stack()]


def _negative(x: Any) -> Any:
    """Where one iteration is followed by another, that sets an element before the first one."""
    made = TensorListArray(gm.float32, size=0, dynamic_size=True, element_shape=[4, 3])
    body: Any = lambda i, y, made: [i + 1, y * 0.75, made.write(i * -1, y)]  # noqa: E731  as the others are
    _, y, made = functional_flow.while_loop(lambda i, y, made: large(y), body, [gm.constant(0), x, made])
    return [y, made.stack()]


@pytest.mark.parametrize(
    ("make", "told"),
    [(_written_again, "already been written to"), (_negative, "Trying to modify element")],
    ids=["again", "negative"],
)
def test_what_an_array_that_grows_refuses_is_an_error_of_the_replay(make: Any, told: str) -> None:
    Steps(make).refuse_larger(told)


def _random_step(seed: int) -> Any:
    """A loop of a random body with up to three states, as a While or as loops of TensorFlow 1."""
    rng = np.random.default_rng(seed)
    count, kind = int(rng.integers(1, 4)), int(rng.integers(2))
    decay, picks = rng.uniform(0.4, 0.8, count), rng.integers(0, 4, (count, 2))

    def make(x: Any) -> Any:
        w = weights()

        def one(number: int, states: Any) -> Any:
            value = states[picks[number][0] % count]
            value = [
                lambda: gm.matmul(value, w.value()), lambda: value * gm.reduce_mean(w.value() + 0.6),
                lambda: value - 0.1 * gm.tanh(value), lambda: 0.5 * (value + states[0]),
            ][picks[number][1]]()  # fmt: skip
            return value * float(decay[number])

        def body(*states: Any) -> list[Any]:
            return [one(number, states) for number in range(count)]

        def goes_on(*states: Any) -> Any:
            return large(gm.add_n(list(states)), 0.4)

        loop = functional_flow.while_loop if kind else gm.while_loop
        last = loop(goes_on, body, [x * (number + 1.0) for number in range(count)])
        states = last if isinstance(last, list | tuple) else [last]
        # the weights learn whatever the body takes of them
        return trained(gm.add_n([gm.reduce_mean(gm.square(y - 0.1)) for y in states]) + gm.reduce_mean(w.value()))

    return make


@pytest.mark.parametrize("seed", range(4))
def test_random_loops_learn_what_they_learn_launch_by_launch(seed: int) -> None:
    make, rng = _random_step(seed), np.random.default_rng(seed)
    steps, beside = Steps(make, seed=seed), Steps(make, version=OLD)
    scales = 10.0 ** rng.uniform(-1, 5, 6)
    for scale in scales.astype(np.float32):
        for one, other in zip(steps.run(GPU, X * scale), beside.run(GPU, X * scale), strict=True):
            assert one.tobytes() == other.tobytes()
    assert steps.notes == [] and steps.replays == len(scales) - 1


class CountedSteps(Steps):
    """Steps of a graph that is fed whole numbers, too.

    Args:
        like: numbers of their shape.
    """

    def __init__(self, make: Callable[[Any, Any], Any], like: Any, *, seed: int = 0, version: int = CONDITIONS_FROM):
        self._counts: list[Any] = []

        def with_counts(x: Any) -> Any:
            self._counts.append(gm.placeholder(gm.int32, like.shape))
            return make(x, self._counts[-1])

        super().__init__(with_counts, seed=seed, version=version)

    def run(self, there: str, x: Any, counts: Any = None) -> list[Any]:
        session, placeholder, fetched = self._steps[there]
        with choose.using(self.driver):
            return session.run(fetched, {placeholder: x, self._counts[there == GPU]: counts})


@pytest.mark.parametrize("name", COUNTED)
def test_counts_that_are_others_in_each_step_are_the_devices(name: str) -> None:
    """One recording for the first numbers, and one for all others."""
    make, counts = COUNTED[name]
    steps = CountedSteps(make, counts[0])
    for number, count in enumerate(counts):
        x = X + np.float32(number * 0.01)
        for found, wanted in zip(steps.run(GPU, x, count), steps.run(CPU, x, count), strict=True):
            # a hundred roundings of numbers around 1
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert steps.notes == [] and steps.replays == len(counts) - 1


def _counted_before(x: Any) -> Any:
    """A variable is changed before the list that may be too small."""
    seen = gm.Variable(np.zeros((), np.float32), use_resource=True)
    with gm.get_default_graph().control_dependencies([seen.assign_add(1.0)]):
        before = gm.stop_gradient(seen.read_value())
    return GRAPHS["shrinking"](x * (before * 0.0 + 1.0))


def _learned_in_the_loop(x: Any) -> Any:
    """A variable is changed in each iteration, and so is the list."""
    total = gm.Variable(np.zeros((4, 3), np.float32), use_resource=True)
    w = weights()

    def body(y: Any) -> list[Any]:
        with gm.get_default_graph().control_dependencies([total.assign_add(y)]):
            return [gm.matmul(y, w.value()) * 0.7]

    y = gm.while_loop(lambda y: large(y, 0.3), body, [x])
    return trained(gm.reduce_mean(gm.square(y - 0.1)))


def _after(x: Any, *before: Any) -> Any:
    """The same numbers, behind others."""
    with gm.get_default_graph().control_dependencies(list(before)):
        return gm.identity(x)


def _counted_on_a_branch(x: Any) -> Any:
    """A variable is changed on a branch that tensors decide, before the list that may be too small."""
    seen = gm.Variable(np.zeros((), np.float32), use_resource=True)
    once = gm.cond(large(x, 0.001), lambda: seen.assign_add(1.0), lambda: gm.zeros([]))
    return [gm.stop_gradient(once), *GRAPHS["shrinking"](_after(x, once))]


def _pushing(x: Any, stack: Any) -> Any:
    return gm.while_loop(lambda y: large(y, 0.3), lambda y: [gm.ops.stack_push_v2(stack, y) * 0.75], [x])


def _counted_behind_on_a_branch(x: Any) -> Any:
    """On one branch a stack grows, and behind that a variable is changed."""
    seen = gm.Variable(np.zeros((), np.float32), use_resource=True)
    stack = gm.ops.stack_v2(gm.constant(-1), elem_type=gm.float32)

    def grown() -> Any:
        y = _pushing(x, stack)
        with gm.get_default_graph().control_dependencies([y]):
            count = seen.assign_add(1.0)
        return _after(y, count)

    y = gm.cond(large(x, 0.001), grown, lambda: x * 1.0)
    with gm.get_default_graph().control_dependencies([y]):
        return [y, seen.read_value()]


def _counted_with_each(x: Any) -> Any:
    """On a branch of each iteration an element is pushed, and a variable is changed."""
    seen = gm.Variable(np.zeros((), np.float32), use_resource=True)
    stack = gm.ops.stack_v2(gm.constant(-1), elem_type=gm.float32)

    def pushed(y: Any) -> Any:
        with gm.get_default_graph().control_dependencies([gm.ops.stack_push_v2(stack, y)]):
            count = seen.assign_add(1.0)
        return _after(y, count)

    def body(y: Any) -> Any:
        return [gm.cond(large(y, 0.4), lambda: pushed(y), lambda: y * 1.0) * 0.75]

    y = gm.while_loop(lambda y: large(y, 0.3), body, [x])
    with gm.get_default_graph().control_dependencies([y]):
        return [y, seen.read_value()]


@pytest.mark.parametrize(
    "make",
    [_counted_before, _learned_in_the_loop, _counted_on_a_branch, _counted_behind_on_a_branch, _counted_with_each],
    ids=lambda make: make.__name__,
)
def test_variables_that_change_before_are_given_back(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    repeats = Repeats(monkeypatch)
    steps, beside = Steps(make), Steps(make, version=OLD)
    for scale in SCALES:
        for one, other in zip(steps.run(GPU, X * scale), beside.run(GPU, X * scale), strict=True):
            assert one.tobytes() == other.tobytes()
    assert steps.notes == [] and repeats.count == 2 and steps.replays == len(SCALES) - 1


def _limited(x: Any) -> Any:
    """A stack that may have two elements."""
    stack = gm.ops.stack_v2(gm.constant(2), elem_type=gm.float32)

    def body(y: Any) -> list[Any]:
        return [gm.ops.stack_push_v2(stack, y) * 0.75]

    y = gm.while_loop(lambda y: large(y), body, [x])
    with gm.get_default_graph().control_dependencies([y]):
        return [y, gm.ops.stack_pop_v2(stack, elem_type=gm.float32)]


def _emptied(x: Any) -> Any:
    """A stack of one element, from which each iteration takes one."""
    stack = gm.ops.stack_v2(gm.constant(-1), elem_type=gm.float32)
    with gm.get_default_graph().control_dependencies([gm.ops.stack_push_v2(stack, x)]):
        y = gm.identity(x)

    def body(y: Any) -> list[Any]:
        popped = gm.ops.stack_pop_v2(stack, elem_type=gm.float32)
        popped.set_shape([4, 3])
        return [y * 0.75 + 0.0 * popped]

    return gm.while_loop(lambda y: large(y), body, [y])


@pytest.mark.parametrize(
    ("make", "told"), [(_limited, r"overflowed its max_size \(2\)"), (_emptied, "is empty when calling Pop()")],
    ids=["full", "empty"],
)  # fmt: skip
def test_what_a_stack_refuses_is_an_error_of_the_replay(make: Any, told: str) -> None:
    Steps(make).refuse_larger(told)


def test_an_error_changes_no_variable() -> None:
    """An update stands behind a loop in which something is wrong."""

    def make(x: Any) -> Any:
        w = gm.Variable(np.zeros((4, 3), np.float32), use_resource=True)
        y = _limited(x)[0]
        with gm.get_default_graph().control_dependencies([w.assign_add(y + 1.0)]):
            return [w.read_value()]

    steps = Steps(make)
    once = X * np.float32(np.sqrt(0.6 / np.square(X).sum()))
    for _ in range(3):
        steps.compare(once)
    for there in (GPU, CPU):
        with pytest.raises(InvalidArgumentError, match="max_size"):
            steps.run(there, X * 3)
    steps.compare(once)
    assert steps.replays == 4, steps.notes


def test_an_assertion_about_tensors_is_told_as_the_host_tells_it() -> None:
    """The step is one launch as long as it holds; else the host does it again, with what it says in the message."""

    def make(x: Any) -> Any:
        w = gm.Variable(np.zeros((4, 3), np.float32), use_resource=True)
        total = gm.reduce_sum(x)
        with gm.get_default_graph().control_dependencies([gm.Assert(total < 5.0, ["the sum is", total])]):
            y = gm.identity(x)
        with gm.get_default_graph().control_dependencies([w.assign_add(y)]):
            return [w.read_value()]

    steps = Steps(make)
    for scale in (1.0, 0.5, 2.0):
        steps.compare(np.abs(X) * np.float32(scale) * 0.3)
    assert steps.notes == [] and steps.replays == 2
    for there in (GPU, CPU):
        with pytest.raises(InvalidArgumentError, match=r"the sum is\s*\]? ?\[?13"):
            steps.run(there, np.abs(X) * 2)
    for scale in (1.0, 2.0):
        steps.compare(np.abs(X) * np.float32(scale) * 0.3)
    assert steps.replays == 5, "the step that failed was one, and what follows is recorded anew"


def test_memory_doubles() -> None:
    capacity = Capacity((2,))
    rows: list[int] = []
    for length in (0, 3, 16, 17, 9, 32, 33, 1000):
        capacity.note(length)
        rows.append(capacity.rows)
    assert rows == [16, 16, 16, 32, 32, 32, 64, 1024]


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0)], ids=str)
def test_kernels_are_assembled(capability: tuple[int, int]) -> None:
    arrays = (conditional_arrays.entry_kernel, conditional_arrays.whole_kernel)
    kernels = [*(of(conditional_arrays.ADD) for of in arrays), conditional_nodes.assertion_kernel()]
    kernels += [conditional_nodes.condition_kernel(wanted, is_checked=True) for wanted in ((), (True,))]
    kernels += [conditional_arrays.first_kernel()]
    kernels += [
        conditional_arrays.entry_kernel(op, grows=True) for op in (conditional_arrays.READ, conditional_arrays.WRITE)
    ]
    kernels += [
        conditional_growing.place_kernel(is_set=is_set, enlarges=enlarges)
        for is_set, enlarges in ((False, False), (True, False), (True, True))
    ]
    for kernel in kernels:
        assert assembled(ptx.write(kernel, capability), capability).spills == 0
