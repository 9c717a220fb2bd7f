"""The functions of a spec, as its entries and the attributes of ops name them."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.client.functions.trace import TracedFunction
from toolkit.client.spec.builder import FAILED, FollowError, SpecBuilder
from toolkit.errors import did_you_mean
from toolkit.formats.settings.tree import YamlItem
from toolkit.graph.attrs import FuncRef


@dataclass(frozen=True)
class SpecFunction:
    """A function of a spec.

    Attributes:
        traced: the function of the graph's library.
        inputs: the names of its arguments, in order.
        keys: of its results; None: it gives one tensor, which has no key.
    """

    traced: TracedFunction
    inputs: list[str]
    keys: list[str] | None


#: what the name of a function stands for in its own body
BEING_MADE = object()


def function_named(spec: SpecBuilder, item: YamlItem) -> SpecFunction:
    """The function of a name.

    Raises:
        SpecError: the spec has none of that name, or it is in the body of that function.
    """
    found = spec.functions.get(item.text())
    if found is FAILED:
        raise FollowError("")
    if found is BEING_MADE:
        raise item.error("a function cannot call itself; a loop is an entry `while`")
    if found is None:
        raise item.error(f"there is no function '{item.value}'{did_you_mean(item.text(), spec.functions)}")
    return found


def called_by_ops(spec: SpecBuilder, item: YamlItem) -> FuncRef:
    """A function as an attribute of an op, which calls it with its own inputs alone.

    Raises:
        SpecError: there is none of that name, or it uses something that the op does not hand on.
    """
    name = item.text()
    if name not in spec.functions and name in spec.graph.core.library:
        return FuncRef(name)
    function = function_named(spec, item)
    if function.traced.captured:
        used = ", ".join(sorted(tensor.op.name.removesuffix("/read") for tensor in function.traced.captured))
        raise item.error(f"the function '{name}' uses {used}, which an op does not hand on: make it an input of {name}")
    return function.traced.ref
