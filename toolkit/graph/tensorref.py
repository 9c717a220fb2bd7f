"""How files name values: `node`, `node:1`, `^node`, and inside functions `node:output_arg:1`."""

from __future__ import annotations

from typing import NamedTuple

from toolkit.errors import UsageError

CONTROL_INDEX = -1


class TensorRef(NamedTuple):
    """A node's output by name; index -1 is the node itself as a control dependency."""

    node: str
    index: int  # pyright: ignore[reportIncompatibleMethodOverride] -- nobody searches a reference as a tuple

    @property
    def is_control(self) -> bool:
        return self.index == CONTROL_INDEX

    def __str__(self) -> str:
        """The NodeDef.input spelling: `n`, `n:1`, `^n`."""
        if self.index == CONTROL_INDEX:
            return "^" + self.node
        return self.node if self.index == 0 else f"{self.node}:{self.index}"

    @property
    def tensor_name(self) -> str:
        """The spelling with the index always written, `n:0`."""
        return f"{self.node}:{self.index}"


def parse_input(text: str) -> TensorRef:
    """Read a NodeDef.input entry. It never fails: what is not `^name` or `name:digits` is a name.

    Digits are 0 to 9, and an index has at most nine of them: TensorFlow's are 32 bits wide.
    """
    if text[:1] == "^":
        return TensorRef(text[1:], CONTROL_INDEX)
    name, colon, index = text.rpartition(":")
    if colon and len(index) < 10 and index.isascii() and index.isdigit():
        return TensorRef(name, int(index))
    return TensorRef(text, 0)


def parse_tensor(text: str) -> TensorRef:
    """Read a tensor a user typed: `name` (output 0) or `name:index`.

    Raises:
        UsageError: it is empty, a control reference, or has no node name.
    """
    ref = parse_input(text)
    if not ref.node or ref.is_control:
        raise UsageError(f"'{text}' is not a tensor name; expected NODE or NODE:INDEX")
    return ref
