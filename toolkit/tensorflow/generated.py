# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Functions of TensorFlow that are one op: TensorFlow's signature in front of the client's op constructor.

What goes where is in the exported facts (`schemas.export_tf1_api`): the op, which of its arguments takes which
parameter, the name scope around it, and the fields of the named tuple that is returned where an op has several outputs.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

from toolkit.client.construction import create
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.graph import opdefs
from toolkit.tensorflow.api import Fact, signature_of


def op_function(fact: Fact, value_of: Callable[[str], Any]) -> Callable[..., Any]:
    """The function for a name whose kind is "op".

    Args:
        value_of: what a dotted name in a default stands for.
    """
    op: str = fact.detail["op"]
    signature = signature_of(fact.signature, value_of)
    parameter_of: dict[str, str] = dict(fact.detail["arguments"])
    definition = opdefs.get(op)
    inputs = [(arg.name, parameter_of[arg.name]) for arg in definition.inputs if arg.name in parameter_of]
    known = {arg.name for arg in definition.inputs}
    attrs = [(attr, parameter) for attr, parameter in parameter_of.items() if attr not in known]
    fields: list[str] | None = fact.detail.get("outputs")
    short = fact.canonical.rsplit(".", 1)[-1]
    result: Any = None if fields is None else collections.namedtuple(op, fields)  # pyright: ignore[reportUntypedNamedTuple]
    order = list(signature.parameters)
    defaults = {p.name: p.default for p in signature.parameters.values() if p.default is not p.empty}

    fixed: dict[str, Any] = fact.detail.get("fixed", {})
    scope: str | None = fact.detail.get("scope")
    converts: list[tuple[str, str | None, str | None]] = fact.detail.get("converts", [])

    def made(given: dict[str, Any], name: str | None) -> Any:
        for parameter, constant, like in converts:
            dtype = None if like is None else given[like].dtype.base
            given[parameter] = convert_to_tensor(given[parameter], dtype, constant)
        args = {arg: given[parameter] for arg, parameter in inputs} | {a: v for a, v in fixed.items() if a in known}
        rest = {attr: given[parameter] for attr, parameter in attrs} | {
            a: v for a, v in fixed.items() if a not in known
        }
        values = create.results(create.create_op(op, args, rest, name))
        return values if result is None else result(*values)

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) > len(order) or any(key not in order for key in kwargs):
            signature.bind(*args, **kwargs)  # says what is wrong
        given = dict(defaults)
        given.update(zip(order, args, strict=False))
        given.update(kwargs)
        if len(given) < len(order) or any(key in kwargs for key in order[: len(args)]):
            signature.bind(*args, **kwargs)
        name = given.get("name")
        if scope is None:
            return made(given, name)
        with name_scope(name, scope, [given[p] for p in order if p != "name"]) as entered:
            return made(given, entered)

    call.__name__ = call.__qualname__ = short
    call.__module__ = "tensorflow." + fact.canonical.rpartition(".")[0] if "." in fact.canonical else "tensorflow"
    call.__doc__ = f"Adds the op {op} to the graph."
    call.__signature__ = signature
    return call
