"""Two calls for each function that is one op, made from the op's definition: types that it allows, values that fit."""

from __future__ import annotations

from typing import Any

from toolkit.graph import opdefs
from toolkit.graph.dtypes import DType
from toolkit.graph.opdefs import ArgDef, AttrDef, OpDef
from toolkit.tensorflow.api import Fact

#: functions whose op asks for more than types: shapes, references; and where they are called instead
NEED_MORE: dict[str, str] = dict.fromkeys(
    """
    approx_top_k math.approx_max_k math.approx_min_k batch_to_space_nd space_to_batch_nd train.sdca_shrink_l1
    nn.fractional_avg_pool nn.quantized_avg_pool nn.quantized_conv2d nn.quantized_max_pool
    """.split(),  # noqa: SIM905 (one line for each would be long)
    "asks for shapes or references that no type tells",
)
_PREFERRED = ("float32", "int32", "string", "complex64", "bool", "float64", "int64", "uint8", "int8", "half")


def calls(fact: Fact) -> list[str]:
    """Expressions that call a function by its canonical name; the second gives a name to the node."""
    op = opdefs.get(fact.detail["op"])
    parameter_of = dict(map(tuple, fact.detail["arguments"]))
    found: list[str] = []
    for variant in (0, 1):
        types: dict[str, str] = {}
        given: list[str] = []
        for arg in op.inputs:
            if arg.name in parameter_of:
                given.append(f"{parameter_of[arg.name]}={_input(arg, op, types, variant)}")
        for attr in op.attrs.values():
            if attr.name not in parameter_of or attr.name in op.inferred_attrs:
                continue
            if not attr.has_default:
                given.append(f"{parameter_of[attr.name]}={_value(attr)}")
        if variant:
            given.append("name='n'")
        found.append(f"tf.{fact.canonical}({', '.join(given)})")
    return found


def _allowed(attr: AttrDef) -> list[DType]:
    return list(attr.allowed or ())


def _type(attr: AttrDef | None, variant: int) -> str:
    if attr is None or not attr.allowed:
        return "float32"
    names = [dtype.name for dtype in _allowed(attr)]
    fitting = [name for name in _PREFERRED if name in names] or names
    return fitting[min(variant, len(fitting) - 1)]


def _input(arg: ArgDef, op: OpDef, types: dict[str, str], variant: int) -> str:
    if arg.type is not None:
        name = arg.type.base.name
    elif arg.type_attr:
        name = types.setdefault(arg.type_attr, _type(op.attrs.get(arg.type_attr), variant))
    else:
        name = "float32"
    one = f"tf.placeholder(tf.{name})"
    if arg.number_attr:
        least = max(op.attrs[arg.number_attr].minimum or 1, 2)
        return f"[{', '.join([one] * least)}]"
    return f"[{one}, {one}]" if arg.type_list_attr else one


def _value(attr: AttrDef) -> Any:
    """A value for an attribute without default."""
    kind = attr.type
    if attr.allowed:
        first = attr.allowed[0]
        shown = f"tf.{_type(attr, 0)}" if isinstance(first, DType) else repr(first)
        return f"[{shown}]" if kind.startswith("list(") else shown
    plain = {
        "int": str(max(attr.minimum or 1, 1)), "float": "0.5", "bool": "True", "string": "'a'", "type": "tf.float32",
        "shape": "[2]",
    }  # fmt: skip
    inner = plain.get(kind.removeprefix("list(").removesuffix(")"), "None")
    return f"[{', '.join([inner] * max(attr.minimum or 1, 1))}]" if kind.startswith("list(") else inner
