"""A function for every registered op: `ops.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME")`.

The functions are made from the OpDefs when they are first asked for, under the op's own name (`ops.Conv2D`) and
in snake case (`ops.conv2d`, `ops.mat_mul`, `ops.add_v2`). They take the op's inputs in order, then its
attributes (first those without a default), then `name`; all may be given by name. They return a tensor, a tuple
with one entry per output of the OpDef, or the operation when it has no outputs.

The modules `math_ops`, `array_ops`, `nn_ops`, ... add what users mostly want on top.
"""

from __future__ import annotations

import functools
import inspect
import keyword
import re
from collections.abc import Callable
from typing import Any

from toolkit.client.construction.create import create_op, results
from toolkit.errors import UsageError
from toolkit.graph import opdefs, plugins
from toolkit.graph.opdefs import OpDef

_WORD = re.compile(r"(.)([A-Z][a-z]+)")
_EDGE = re.compile(r"([a-z])([A-Z])")


def snake_case(op: str) -> str:
    """`Conv2DBackpropInput` -> `conv2d_backprop_input`."""
    return _EDGE.sub(r"\1_\2", _WORD.sub(r"\1_\2", op)).lower().replace("__", "_")


@functools.lru_cache(1)
def _names(count: int) -> dict[str, str]:
    """Function name to op, of `count` ops (plugins add some); ops starting with '_' are internal and have none."""
    public = [op for op in opdefs.names() if not op.startswith("_") and ">" not in op]
    return {snake_case(op): op for op in public} | {op: op for op in public}


def parameters(op_def: OpDef) -> list[str]:
    """The order of an op function's arguments: inputs, required attributes, attributes with defaults."""
    free = [attr for attr in op_def.attrs.values() if attr.name not in op_def.inferred_attrs]
    names = [arg.name for arg in op_def.inputs]
    names += [attr.name for attr in free if not attr.has_default]
    return names + [attr.name for attr in free if attr.has_default]


@functools.cache
def function(op: str) -> Callable[..., Any]:
    """The function of an op, by the op's own name."""
    op_def = opdefs.get(op)
    order = parameters(op_def)
    input_names = [arg.name for arg in op_def.inputs]
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    defaults = {name: attr.default for name, attr in op_def.attrs.items() if attr.has_default}
    # Two ops call an input or attribute "name"; the node's name is then only accepted by keyword `node_name`.
    name_key = "node_name" if "name" in order else "name"

    def call(*args: Any, **kwargs: Any) -> Any:
        name = kwargs.pop(name_key, None)
        if len(args) > len(order):
            if len(args) == len(order) + 1 and name is None and isinstance(args[-1], str):
                name, args = args[-1], args[:-1]
            else:
                raise UsageError(f"{op} takes at most {len(order)} arguments ({', '.join(order)}), got {len(args)}")
        given = dict(zip(order, args, strict=False))
        for key, value in kwargs.items():
            key = key if key in order or not key.endswith("_") else key[:-1]  # `input_`, as Python needs at times
            if key in given:
                raise UsageError(f"{op} got '{key}' twice")
            given[key] = value
        inputs = {key: given.pop(key) for key in input_names if key in given}
        return results(create_op(op, inputs, given, name))

    call.__name__ = snake_case(op)
    call.__qualname__ = call.__name__
    call.__doc__ = f"Add a {op} node. Inputs: {', '.join(input_names) or 'none'}."
    call.__signature__ = inspect.Signature(
        [
            inspect.Parameter(
                f"{key}_" if keyword.iskeyword(key) else key,
                positional if key not in defaults else inspect.Parameter.KEYWORD_ONLY,
                default=defaults.get(key, inspect.Parameter.empty),
            )
            for key in order
        ]
        + [inspect.Parameter(name_key, inspect.Parameter.KEYWORD_ONLY, default=None)]
    )
    return call


def __getattr__(name: str) -> Callable[..., Any]:
    op = _names(opdefs.count()).get(name)
    if op is None and not name.startswith("_") and plugins.load_installed():
        op = _names(opdefs.count()).get(name)
    if op is None:
        raise AttributeError(f"there is no op function '{name}'")
    return function(op)


def __dir__() -> list[str]:
    return sorted(_names(opdefs.count()))
