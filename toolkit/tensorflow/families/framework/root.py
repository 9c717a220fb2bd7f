# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Names of the root that stand in no family: einsum, print, sections, switches, modules of variables."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops, spread_ops
from toolkit.client.checks import numeric_checks
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow import control_flow, critical_section, functional_flow, functional_ops
from toolkit.client.functions import recompute as recomputing
from toolkit.client.linalg import einsum as contraction
from toolkit.client.summaries import printing
from toolkit.client.trackables import Trackable
from toolkit.client.variables.base import BaseVariable
from toolkit.client.variables.scatter import scatter_nd
from toolkit.graph import dtypes

#: types of numbers that stand for others by a scale, with their references
QUANTIZED_DTYPES = frozenset(
    kind
    for name in ("qint8", "quint8", "qint16", "quint16", "qint32")
    for kind in (dtypes.from_name(name), dtypes.from_name(name + "_ref"))
)
CriticalSection = critical_section.CriticalSection


def einsum(equation: Any, *inputs: Any, **kwargs: Any) -> Tensor:
    return contraction.einsum(equation, *inputs, **kwargs)


def print(*inputs: Any, **kwargs: Any) -> Any:
    return printing.print_values(*inputs, **kwargs)


def add_check_numerics_ops() -> Any:
    return numeric_checks.add_check_numerics_ops()


def assert_variables_initialized(var_list: Any = None) -> Any:
    return numeric_checks.assert_variables_initialized(var_list)


def recompute_grad(f: Any) -> Any:
    return recomputing.recompute_grad(f)


def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: Any = None
) -> Tensor:
    return spread_ops.histogram_fixed_width_bins(values, value_range, nbins, name)


def scatter_nd_update(ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: Any = None) -> Any:
    return scatter_nd("ScatterNdUpdate", ref, indices, updates, use_locking, name)


def scatter_nd_add(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: Any = None) -> Any:
    return scatter_nd("ScatterNdAdd", ref, indices, updates, use_locking, name)


def scatter_nd_sub(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: Any = None) -> Any:
    return scatter_nd("ScatterNdSub", ref, indices, updates, use_locking, name)


def switch_case(branch_index: Any, branch_fns: Any, default: Any = None, name: str = "switch_case") -> Any:
    """The branch of that number; the last one, or `default`, for numbers that are out of range."""
    if not isinstance(branch_index, Tensor) or not branch_index.dtype.base.is_integer:
        raise TypeError(f"branch_index: expected an integer tensor, got {branch_index!r}")
    entries = branch_fns.items() if isinstance(branch_fns, dict) else branch_fns
    entries = list(enumerate(entries)) if all(map(callable, entries)) else [(*entry,) for entry in entries]
    if not entries:
        raise ValueError("branch_fns: expected one function or more")
    keys = sorted(key for key, _ in entries)
    if keys != list(range(len(keys))):
        raise ValueError(f"branch_fns: the numbers of branches must be 0 to {len(keys) - 1}, got {keys}")
    branches = [branch for _, branch in sorted(entries, key=lambda entry: entry[0])]
    if default is not None:
        branches.append(default)
    if len(branches) == 1:
        with name_scope(name, "case", [branch_index]):
            return branches[0]()
    return functional_flow.switch_case(branch_index, branches, name=name)


def vectorized_map(fn: Any, elems: Any, fallback_to_while_loop: bool = True, warn: bool = True) -> Any:
    """`fn` of every row, by a loop: the compiler sees to it that rows are computed together where that pays."""
    from toolkit.client.structures import nest

    given = nest.map_structure(convert_to_tensor, elems)
    rows = nest.map_structure(lambda tensor: tensor[0], given)
    with Graph().as_default():
        stand_ins = nest.map_structure(lambda row: array_ops.placeholder(row.dtype.base, row.static_shape), rows)
        made = fn(stand_ins)
        types = nest.map_structure(lambda value: convert_to_tensor(value).dtype.base, made)
    return functional_ops.map_fn(fn, given, dtype=types)


def is_symbolic_tensor(tensor: Any) -> bool:
    return isinstance(tensor, Tensor | BaseVariable) or hasattr(tensor, "to_tensor")


def my_fact() -> Tensor:
    return ops.fact()


def _refused(what: str, instead: str) -> None:
    raise NotImplementedError(f"{what} is TensorFlow 2's behaviour, which graphmill does not have; {instead}")


def enable_control_flow_v2() -> None:
    """Conditionals and loops are If and While from now on."""
    control_flow.use_functions(True)


def enable_tensor_equality() -> None:
    _refused("enable_tensor_equality()", "leave the call out, and compare tensors with tf.equal")


def enable_v2_tensorshape() -> None:
    _refused(
        "enable_v2_tensorshape()",
        "leave the call out: an entry of a shape is a Dimension; int() and .value give its number",
    )


class Module(Trackable):
    """Holds variables, and modules that do, as attributes; operations that its methods make share a scope of names.

    Args:
        name: of the scope; default: the class's, in small letters.
    """

    def __init__(self, name: str | None = None):
        chosen = _snake(type(self).__name__) if name is None else name
        if not re.fullmatch(r"[A-Za-z_]\w*", chosen):
            raise ValueError(f"{chosen!r} is no name for a module; expected a Python identifier")
        self._name = chosen
        with name_scope(chosen) as scope:
            self._scope = scope

    @property
    def name(self) -> str:
        return self._name

    @property
    def name_scope(self) -> Any:
        return _scope(self._scope)

    @staticmethod
    def with_name_scope(method: Any) -> Any:
        """The method, with the operations that it makes in the module's scope."""
        import functools

        @functools.wraps(method)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return call

    @property
    def variables(self) -> tuple[Any, ...]:
        return tuple(self._found(lambda value: isinstance(value, BaseVariable)))

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        return tuple(each for each in self.variables if getattr(each, "trainable", True))

    @property
    def non_trainable_variables(self) -> tuple[Any, ...]:
        return tuple(each for each in self.variables if not getattr(each, "trainable", True))

    @property
    def submodules(self) -> tuple[Any, ...]:
        return tuple(each for each in self._found(lambda value: isinstance(value, Module)) if each is not self)

    def _found(self, wanted: Any) -> list[Any]:
        """What attributes hold, modules and containers looked into, each once, by the names of attributes."""
        found: dict[int, Any] = {}
        seen: set[int] = set()

        def look(value: Any) -> None:
            if id(value) in seen:
                return
            seen.add(id(value))
            if wanted(value):
                found[id(value)] = value
            if isinstance(value, dict):
                for key in sorted(value, key=str):
                    look(value[key])
            elif isinstance(value, list | tuple):
                for each in value:
                    look(each)
            elif isinstance(value, Module):
                for key in sorted(vars(value)):
                    look(vars(value)[key])

        look(self)
        return list(found.values())


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


@contextmanager
def _scope(scope: str) -> Any:
    from toolkit.client.construction.context import get_default_graph

    with get_default_graph().name_scope(scope) as found:
        yield found
