"""Datasets that call a user's function: map, filter, flat map, interleave, scan, groups."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError, OutOfRangeError
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import flag, integer, require
from toolkit.kernels.cpu.datasets.batch import batched, stack_elements
from toolkit.kernels.datasets.base import UNKNOWN, CapturedFunction, Dataset, Element, Next, Run, a_dataset
from toolkit.kernels.datasets.options import kernel
from toolkit.kernels.registry import Compute, KernelNode, Kind
from toolkit.kernels.types import Array


def _captured(op: KernelNode, name: str = "Targuments") -> int:
    return len(op.attr(name))


def mapped(source: Dataset, function: CapturedFunction, preserve_cardinality: bool) -> Dataset:
    """The function's results, element by element."""

    def start(run: Run) -> Next:
        current = source.start(run)

        def following() -> Element | None:
            element = current()
            if element is None:
                return None
            try:
                return function(run, element)
            except OutOfRangeError as error:
                if preserve_cardinality:  # it must not look like the end of the input
                    raise InvalidArgumentError(f"Function invocation produced OutOfRangeError: {error}") from None
                return None

        return following

    return Dataset(start, source.cardinality if preserve_cardinality else UNKNOWN)


@kernel("MapDataset", "ExperimentalMapDataset", "ParallelMapDataset", "ParallelMapDatasetV2")
def map_dataset(op: KernelNode) -> Compute:
    count = _captured(op)
    preserve: bool = op.attr("preserve_cardinality", False)
    ref, library = op.attr("f"), op.library

    def compute(dataset: Any, *rest: Any) -> Dataset:
        return mapped(a_dataset(dataset), CapturedFunction(library, ref, rest[:count]), preserve)

    return compute


@kernel("MapAndBatchDataset", "ExperimentalMapAndBatchDataset")
def map_and_batch_dataset(op: KernelNode) -> Compute:
    count = _captured(op)
    preserve: bool = op.attr("preserve_cardinality", False)
    ref, library = op.attr("f"), op.library

    def compute(dataset: Any, *rest: Any) -> Dataset:
        batch_size, _, drop = rest[count:]
        inner = mapped(a_dataset(dataset), CapturedFunction(library, ref, rest[:count]), preserve)
        return batched(inner, integer(batch_size, "batch_size"), flag(drop, "drop_remainder"), stack_elements)

    return compute


@kernel("FilterDataset", "ParallelFilterDataset")
def filter_dataset(op: KernelNode) -> Compute:
    count = _captured(op)
    ref, library = op.attr("predicate"), op.library

    def compute(dataset: Any, *rest: Any) -> Dataset:
        source, predicate = a_dataset(dataset), CapturedFunction(library, ref, rest[:count])

        def start(run: Run) -> Next:
            current = source.start(run)

            def following() -> Element | None:
                while True:
                    element = current()
                    if element is None or predicate.test(run, element):
                        return element

            return following

        return Dataset(start, 0 if source.cardinality == 0 else UNKNOWN)

    return compute


@kernel("TakeWhileDataset", "ExperimentalTakeWhileDataset")
def take_while_dataset(op: KernelNode) -> Compute:
    ref, library = op.attr("predicate"), op.library

    def compute(dataset: Any, *rest: Any) -> Dataset:
        source, predicate = a_dataset(dataset), CapturedFunction(library, ref, rest)

        def start(run: Run) -> Next:
            current = source.start(run)
            over = False

            def following() -> Element | None:
                nonlocal over
                element = None if over else current()
                if element is None or not predicate.test(run, element):
                    over = True
                    return None
                return element

            return following

        return Dataset(start)

    return compute


def _inner(run: Run, function: CapturedFunction, element: Element) -> Next:
    """The iteration over the dataset that a function returns."""
    result = function(run, element)
    require(len(result) == 1, "Function must return a single scalar of dtype DT_VARIANT.")
    return a_dataset(result[0]).start(run)


@kernel("FlatMapDataset")
def flat_map_dataset(op: KernelNode) -> Compute:
    ref, library = op.attr("f"), op.library

    def compute(dataset: Any, *rest: Any) -> Dataset:
        source, function = a_dataset(dataset), CapturedFunction(library, ref, rest)

        def start(run: Run) -> Next:
            current = source.start(run)
            inner: Next | None = None

            def following() -> Element | None:
                nonlocal inner
                while True:
                    if inner is None:
                        element = current()
                        if element is None:
                            return None
                        inner = _inner(run, function, element)
                    result = inner()
                    if result is not None:
                        return result
                    inner = None

            return following

        return Dataset(start)

    return compute


@kernel(
    "InterleaveDataset", "ParallelInterleaveDataset", "ExperimentalParallelInterleaveDataset",
    "LegacyParallelInterleaveDatasetV2", "ParallelInterleaveDatasetV2", "ParallelInterleaveDatasetV3",
    "ParallelInterleaveDatasetV4",
)  # fmt: skip
def interleave_dataset(op: KernelNode) -> Compute:
    """Elements of `cycle_length` inner datasets in turn, `block_length` at a time."""
    count = _captured(op)
    ref, library = op.attr("f"), op.library

    def compute(dataset: Any, *rest: Any) -> Dataset:
        source, function = a_dataset(dataset), CapturedFunction(library, ref, rest[:count])
        cycle_length, block_length = integer(rest[count], "cycle_length"), integer(rest[count + 1], "block_length")
        if cycle_length == -1:  # to be chosen for the machine
            cycle_length = os.cpu_count() or 1
        require(cycle_length > 0, "`cycle_length` must be > 0")
        require(block_length > 0, "`block_length` must be > 0")
        return Dataset(lambda run: _interleaved(source, function, cycle_length, block_length, run))

    return compute


def _interleaved(source: Dataset, function: CapturedFunction, cycle_length: int, block_length: int, run: Run) -> Next:
    current = source.start(run)
    cycle: list[Next | None] = []  # as many as there have been yet: a length is a number in a model
    at = in_block = num_open = 0
    is_over = False

    def advance() -> None:
        nonlocal at, in_block
        at, in_block = at + 1, 0
        if at == cycle_length or (is_over and at >= len(cycle)):
            at = 0

    def following() -> Element | None:
        nonlocal in_block, num_open, is_over
        while not is_over or num_open:
            inner = cycle[at] if at < len(cycle) else None
            if inner is not None:
                result = inner()
                if result is None:
                    cycle[at] = None
                    num_open -= 1
                    advance()
                    continue
                in_block += 1
                if in_block == block_length:
                    advance()
                return result
            element = None if is_over else current()
            if element is None:
                is_over = True
                advance()
            else:
                cycle[at : at + 1] = [_inner(run, function, element)]
                num_open += 1
        return None

    return following


@kernel("ScanDataset", "ExperimentalScanDataset")
def scan_dataset(op: KernelNode) -> Compute:
    """As map, with a state that goes from call to call."""
    num_state = len(op.attr("Tstate"))
    preserve: bool = op.attr("preserve_cardinality", False)
    ref, library = op.attr("f"), op.library

    def compute(dataset: Any, *rest: Any) -> Dataset:
        source, function = a_dataset(dataset), CapturedFunction(library, ref, rest[num_state:])

        def start(run: Run) -> Next:
            current = source.start(run)
            state = list(rest[:num_state])

            def following() -> Element | None:
                nonlocal state
                element = current()
                if element is None:
                    return None
                result = function(run, [*state, *element])
                state = result[:num_state]
                return result[num_state:]

            return following

        return Dataset(start, source.cardinality if preserve else UNKNOWN)

    return compute


@kernel("ReduceDataset", kind=Kind.STATEFUL)
def reduce_dataset(op: KernelNode) -> Compute:
    num_state = len(op.attr("Tstate"))
    ref, library = op.attr("f"), op.library

    def compute(step: StepContext, dataset: Any, *rest: Any) -> Element:
        run = Run(step)
        current, function = a_dataset(dataset).start(run), CapturedFunction(library, ref, rest[num_state:])
        state = list(rest[:num_state])
        while (element := current()) is not None:
            if step.cancellation.is_cancelled:
                from toolkit.errors import CancelledError

                raise CancelledError("the step was cancelled")
            state = function(run, [*state, *element])
        return state

    return compute


def _key(function: CapturedFunction, run: Run, element: Element) -> int:
    """A group's number.

    Raises:
        InvalidArgumentError: the key function gives anything else.
    """
    result = function(run, element)
    if len(result) != 1 or np.ndim(result[0]) or np.asarray(result[0]).dtype != np.int64:
        raise InvalidArgumentError("`key_func` must return a scalar int64.")
    return int(result[0])


def _functions(op: KernelNode, *names: str) -> Callable[[tuple[Any, ...]], list[CapturedFunction]]:
    """The functions of an op, each with its share of the captured inputs."""
    counts = [_captured(op, f"T{name}_other_arguments") for name in names]
    refs, library = [op.attr(name) for name in names], op.library

    def make(rest: tuple[Any, ...]) -> list[CapturedFunction]:
        made: list[CapturedFunction] = []
        at = 0
        for ref, count in zip(refs, counts, strict=True):
            made.append(CapturedFunction(library, ref, rest[at : at + count]))
            at += count
        return made

    return make


@kernel("GroupByWindowDataset", "ExperimentalGroupByWindowDataset")
def group_by_window_dataset(op: KernelNode) -> Compute:
    """Windows of elements with the same key; each becomes a dataset that a function reduces to another one."""
    functions = _functions(op, "key_func", "reduce_func", "window_size_func")

    def compute(dataset: Any, *rest: Any) -> Dataset:
        source, (key_of, reduce, size_of) = a_dataset(dataset), functions(rest)

        def start(run: Run) -> Next:
            current = source.start(run)
            groups: dict[int, list[Element]] = {}
            sizes: dict[int, int] = {}
            inner: Next | None = None
            left: deque[int] | None = None  # the groups to finish after the end of the input

            def begin(key: int) -> Next:
                window = groups.pop(key)
                return _inner(run, reduce, [np.int64(key), _list_dataset(window)])

            def following() -> Element | None:
                nonlocal inner, left
                while True:
                    if inner is not None:
                        result = inner()
                        if result is not None:
                            return result
                        inner = None
                    if left is not None:
                        if not left:
                            return None
                        inner = begin(left.popleft())
                        continue
                    element = current()
                    if element is None:
                        left = deque(sorted(groups))
                        continue
                    key = _key(key_of, run, element)
                    if key not in sizes:
                        sizes[key] = int(size_of(run, [np.int64(key)])[0])
                        require(sizes[key] > 0, f"Window size must be greater than zero, but got {sizes[key]}.")
                    groups.setdefault(key, []).append(element)
                    if len(groups[key]) == sizes[key]:
                        inner = begin(key)

            return following

        return Dataset(start)

    return compute


def _list_dataset(elements: list[Element]) -> Dataset:
    def start(run: Run) -> Next:
        rows = iter(elements)
        return lambda: next(rows, None)

    return Dataset(start, len(elements))


@kernel("GroupByReducerDataset", "ExperimentalGroupByReducerDataset")
def group_by_reducer_dataset(op: KernelNode) -> Compute:
    """One result per key, in the order of the keys' first appearance."""
    functions = _functions(op, "key_func", "init_func", "reduce_func", "finalize_func")

    def compute(dataset: Any, *rest: Any) -> Dataset:
        source, (key_of, initial, reduce, finalize) = a_dataset(dataset), functions(rest)

        def start(run: Run) -> Next:
            states: dict[int, Element] | None = None
            keys: deque[int] = deque()

            def following() -> Element | None:
                nonlocal states
                if states is None:
                    states = {}
                    current = source.start(run)
                    while (element := current()) is not None:
                        key = _key(key_of, run, element)
                        if key not in states:
                            states[key] = initial(run, [np.int64(key)])
                        states[key] = reduce(run, [*states[key], *element])
                    keys.extend(states)
                return finalize(run, states[keys.popleft()]) if keys else None

            return following

        return Dataset(start)

    return compute


@kernel("GeneratorDataset")
def generator_dataset(op: KernelNode) -> Compute:
    """A state, and a function that takes it to each next element until it raises OutOfRange."""
    counts = [_captured(op, f"T{name}_func_args") for name in ("init", "next", "finalize")]
    refs, library = [op.attr(f"{name}_func") for name in ("init", "next", "finalize")], op.library

    def compute(*captured: Array) -> Dataset:
        low, high = counts[0], counts[0] + counts[1]
        begin = CapturedFunction(library, refs[0], captured[:low])
        advance = CapturedFunction(library, refs[1], captured[low:high])
        finish = CapturedFunction(library, refs[2], captured[high:])

        def start(run: Run) -> Next:
            state: Element | None = None
            over = False

            def following() -> Element | None:
                nonlocal state, over
                if over:
                    return None
                if state is None:
                    state = begin(run, [])
                try:
                    return advance(run, state)
                except OutOfRangeError:
                    over = True
                    finish(run, state)
                    return None

            return following

        return Dataset(start)

    return compute
