"""Cases of ops that change variables: both kinds of variable, all of them compared after the op has run."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from tests.kernels import op_bounds
from tests.kernels.op_suite import SAME, compare, from_device, kernels_session, outcome, to_device
from tests.kernels.step import FakeStep
from toolkit.errors import BY_CODE, OpError
from toolkit.graph import dtypes, opdefs
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.kernels import device_types, registry
from toolkit.kernels.context import RefVariable
from toolkit.kernels.facts import input_in_host_memory
from toolkit.kernels.resources.handles import ResourceHandle
from toolkit.kernels.resources.variables import Variable


@dataclass(frozen=True, eq=False)
class Var:
    """A variable input with its initial value; None is not initialised (then `like` gives type and shape)."""

    value: Any
    like: Any = None

    @property
    def template(self) -> Any:
        return self.value if self.value is not None else self.like


@dataclass(frozen=True, eq=False)
class StateCase:
    """One row: inputs in the OpDef's order; a `Var` for each variable."""

    op: str
    inputs: Sequence[Any]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    id: str = ""

    @property
    def label(self) -> str:
        shapes = [f"{np.asarray(_plain(v)).dtype}{list(np.shape(_plain(v)))}".replace(" ", "") for v in self.inputs]
        return "-".join([self.op, self.id, *shapes, *([self.error] if self.error else [])])

    @property
    def is_resource(self) -> bool:
        first = opdefs.get(self.op).inputs[0]
        return first.type is dtypes.resource


def _plain(value: Any) -> Any:
    return value.template if isinstance(value, Var) else value


def _attributes(case: StateCase) -> dict[str, Any]:
    """The attributes with types filled in from the inputs."""
    op_def = opdefs.get(case.op)
    attrs = dict(case.attrs)
    for name, definition in op_def.attrs.items():
        if definition.type == "type" and isinstance(attrs.get(name), str):
            attrs[name] = dtypes.from_name(attrs[name])
    for arg, value in zip(op_def.inputs, case.inputs, strict=True):
        if arg.type_attr and arg.type_attr not in attrs:
            attrs[arg.type_attr] = dtypes.from_numpy(np.asarray(_plain(value)).dtype)
    return attrs


def build(case: StateCase) -> Node:
    """A graph of placeholders and the node; returns the node."""
    attrs, graph = _attributes(case), Graph()
    op_def = opdefs.get(case.op)
    types = [t.base for t in op_def.expand(op_def.inputs, attrs, case.op)]
    sources = [graph.add("Placeholder", f"in{i}", attrs={"dtype": t}) for i, t in enumerate(types)]
    return graph.add(case.op, "node", sources, attrs=attrs)


def run_ours(case: StateCase, device: str = "CPU") -> tuple[list[Any], list[Any]]:
    """(outputs, the variables' values after the op), of the kernel of a device type."""
    node, step = build(case), FakeStep()
    node.device = f"/device:{device}:0"
    entry = registry.get(node, device)
    compute = entry.factory(registry.KernelNode(node))
    inputs: list[Any] = []
    cells: list[Any] = []
    for i, value in enumerate(case.inputs):
        if not isinstance(value, Var):
            stays = device == "CPU" or input_in_host_memory(node, device, i)
            inputs.append(np.asarray(value) if stays else to_device(device, np.asarray(value)))
            continue
        array = np.asarray(value.template)
        dtype, shape = dtypes.from_numpy(array.dtype), Shape(array.shape)
        if case.is_resource:
            cell: Any = Variable(f"v{i}", dtype, shape)
            if value.value is not None:
                step.resources.create("", f"v{i}", cell)
            inputs.append(ResourceHandle("", f"v{i}", "Var", ((dtype, shape),)))
        else:
            cell = RefVariable(f"v{i}", dtype, shape, threading.RLock())
            inputs.append(cell)
        # devices whose kernels are made of the CPU's keep variables in host memory
        there = "CPU" if device not in device_types.listed() else device
        cell.value = None if value.value is None else to_device(there, array.copy())
        cells.append(cell)
    with np.errstate(all="ignore"):
        result = compute(step, *inputs) if entry.kind is registry.Kind.STATEFUL else compute(*inputs)
    outputs = list(result) if isinstance(result, tuple | list) else [] if result is None else [result]
    given = [o.value if isinstance(o, RefVariable) else o for o in outputs]
    return [from_device(device, o) for o in given], [from_device(device, _final(step, c)) for c in cells]


def _final(step: FakeStep, cell: Any) -> Any:
    """The value of a variable after the op, which may have made it."""
    for (_, name, _), made in step.resources.items.items():
        if name == cell.name and isinstance(made, Variable):
            return made.value
    return cell.value


def run_tensorflow(case: StateCase) -> tuple[list[Any], list[Any]]:
    import tensorflow as tf

    v1 = tf.compat.v1
    op_def = opdefs.get(case.op)
    with tf.Graph().as_default(), tf.device("CPU:0"):
        arguments: dict[str, Any] = {}
        feeds: dict[Any, Any] = {}
        made: list[Any] = []
        for i, (arg, value) in enumerate(zip(op_def.inputs, case.inputs, strict=True)):
            if isinstance(value, Var):
                variable = v1.get_variable(f"v{i}", initializer=value.template, use_resource=case.is_resource)
                made.append((variable, value.value is not None))
                arguments[arg.name] = variable.handle if case.is_resource else variable._ref()
            else:
                array = np.asarray(value)
                given = v1.placeholder(dtypes.from_numpy(array.dtype).name)
                feeds[given] = array
                arguments[arg.name] = given
        result = getattr(tf.raw_ops, case.op)(**arguments, **case.attrs)
        operation = result if isinstance(result, tf.Operation) else None
        fetches = [] if operation is not None else [result]
        with kernels_session(tf) as session:
            session.run([variable.initializer for variable, initialised in made if initialised])
            outputs = session.run(fetches, feeds) if fetches else session.run(operation, feeds) or []
            values = [
                session.run(v) if initialised or session.run(v1.is_variable_initialized(v)) else None
                for v, initialised in made
            ]
    return [np.asarray(o) for o in outputs], values


def check_state(case: StateCase) -> None:
    """Raise AssertionError unless TensorFlow's outputs and variables are ours."""
    import tensorflow as tf

    status = None
    theirs: Any = None
    try:
        theirs = run_tensorflow(case)
    except tf.errors.OpError as error:
        status, theirs = BY_CODE[error.error_code].status, str(error)
    except (ValueError, TypeError) as error:
        status, theirs = "INVALID_ARGUMENT", str(error)
    if case.error is None:
        assert status is None, f"TensorFlow refuses this case: {status}: {theirs}"
    elif case.error != SAME:
        assert status == case.error, f"the case says {case.error}, TensorFlow: {status or 'succeeds'}: {theirs}"
    if status is not None:
        mine, message = outcome(lambda: list(run_ours(case)))
        assert mine == status, f"expected {status} ({theirs}), ours: {mine or 'succeeds'}: {message}"
        return
    try:
        ours = run_ours(case)
    except OpError as error:
        raise AssertionError(f"TensorFlow succeeds, ours fails: {error}") from error
    wanted = [[None if each is None else np.asarray(each) for each in part] for part in theirs]
    compare_parts(case, ours, wanted)


def compare_parts(case: StateCase, ours: Sequence[Sequence[Any]], wanted: Sequence[Sequence[Any]]) -> None:
    """Raise AssertionError unless outputs and variables of two kernels, run with a case's inputs, agree."""
    allowed = _Bounds(case, [each for part in wanted for each in part if each is not None])
    place = 0
    for what, mine_all, theirs_all in zip(("output", "variable"), ours, wanted, strict=True):
        for position, (mine, expected) in enumerate(zip(mine_all, theirs_all, strict=True)):
            assert (mine is None) == (expected is None), f"{case.op} {what} {position}: {mine} != {expected}"
            if expected is not None:
                compare(mine, expected, f"{case.op} {what} {position}", allowed=partial(allowed.of, place))
                place += 1


class _Bounds:
    """How far outputs and variables may be from TensorFlow's; worked out when somebody asks."""

    def __init__(self, case: StateCase, wanted: Sequence[Any]):
        self.case, self.wanted = case, wanted
        self._found: list[Any] | None = None

    def of(self, place: int) -> Any:
        """Of one of the numbers in `wanted`."""
        if self._found is None:
            values = [np.asarray(_plain(each)) for each in self.case.inputs]
            self._found = op_bounds.allowed(self.case.op, self._run, values, self.wanted)
        return self._found[place]

    def _run(self, values: Sequence[Any]) -> list[Any]:
        inputs = [
            replace(each, **{"like" if each.value is None else "value": value}) if isinstance(each, Var) else value
            for each, value in zip(self.case.inputs, values, strict=True)
        ]
        made = run_ours(replace(self.case, inputs=inputs))
        return [each for part in made for each in part if each is not None]
