"""Edits of what constants hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.errors import GraphError, UsageError
from toolkit.graph.dtypes import DType
from toolkit.passes.edit.base import TEXT, VALUE, argument
from toolkit.passes.edit.draft import Draft


@dataclass(frozen=True)
class SetConstant:
    """Set the value of a constant; its type stays, and its shape where one number is given for all elements."""

    name: ClassVar[str] = "set_constant"

    node: str = argument(TEXT, "the constant")
    value: Any = argument(VALUE, "a number, text, or nested lists of them", None)
    file: str = argument(TEXT, "or a file with the array: FILE.npy, FILE.npz:NAME", "")

    def apply(self, draft: Draft) -> str:
        from toolkit.formats.arrays import tensor

        node = draft.graph.node(self.node)
        if node.op != "Const":
            raise GraphError(f"it is a {node.op}, not a constant", node=node.name)
        if (self.value is None) == (not self.file):
            raise UsageError("give either 'value' or 'file'")
        dtype: DType = node.attr("dtype")
        value = self.value
        if self.file:
            from toolkit.formats.arrays.given import read_array

            value = read_array(self.file)
        is_number = not self.file and not isinstance(value, list)
        shape = tensor.shape_of(node.attr("value")) if is_number else None
        node.attrs["value"] = made = tensor.from_array(value, dtype, shape)
        if "_output_shapes" in node.attrs:
            from toolkit.graph.shape import Shape

            node.attrs["_output_shapes"] = [Shape(tensor.shape_of(made))]
        return f"set the value of '{node.name}'"
