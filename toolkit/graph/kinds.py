"""What nodes have in common: types by op and attributes, kept once for all nodes that share them.

Large graphs are the same few nodes again and again, under other names and with other inputs. A file's nodes of one op
with the same bytes of attributes are of one kind: the attributes are decoded once, types are worked out once, and
whether op and attributes fit is looked at once (`toolkit.graph.check`).
"""

from __future__ import annotations

from typing import Any

from schemas.node_def_pb2 import NodeDef
from toolkit.graph.dtypes import DType
from toolkit.graph.opdefs import PLUGIN, OpDef
from toolkit.graph.packed import VALUE, PackedTensor
from toolkit.graph.shape import Shape


class NodeTypes:
    """The signature of an op and the types of a node's tensors, as far as they have been worked out.

    Attributes:
        op_def: of a registered op; None for functions, which are added and replaced.
        inputs, outputs: reference types included; do not change the lists.
    """

    __slots__ = ("inputs", "op_def", "outputs")

    def __init__(self) -> None:
        self.op_def: OpDef | None = None
        self.inputs: list[DType] | None = None
        self.outputs: list[DType] | None = None


class NodeKind(NodeTypes):
    """What nodes of a file have in common that differ in name, device and inputs alone.

    Attributes:
        op: the op or function.
        is_shared: whether several nodes may have it.
        names_plugin: whether an attribute says which plugin the op comes from.
        judged: the producer version for which `is_sound` was found; None before.
        is_sound: nothing is wrong with op and attributes, and nothing about them depends on the rest of the graph but
            `companions`.
        companions: the nodes that `_class` says it is to be placed with; None: nobody has looked.
        like: the first kind that differs from this one in the names that `_class` has, alone; None: there is none
            before this one. What is found of one of them holds for all.
        values: attributes that were asked for and do not change: numbers, texts, types, shapes.
        packed: the attribute `value`, where it is a large tensor that is still among the bytes of the file.
    """

    __slots__ = (
        "_bytes", "_head", "_message", "_names_functions", "companions", "is_shared", "is_sound", "judged", "like",
        "names_plugin", "op", "packed", "values",
    )  # fmt: skip

    def __init__(self, op: str, attributes: bytes, *, is_shared: bool):
        """Raises DecodeError when the bytes are no attributes, ValueError when other fields are among them."""
        super().__init__()
        message = NodeDef.FromString(attributes)
        if message.name or message.op or message.device or message.input:
            raise ValueError("a node's fields are out of order")
        self.op = op
        self.is_shared = is_shared
        self.judged: int | None = None
        self.is_sound = False
        self.companions: tuple[str, ...] | None = None
        self.like: NodeKind | None = None
        self.values: dict[str, Any] = {}
        self.packed: PackedTensor | None = None
        self._head: NodeDef | None = None
        self._names_functions: bool | None = None
        self.names_plugin = PLUGIN in message.attr
        # what few bytes say is decoded again when it is asked for, and many bytes are written again: constants are
        # held once
        is_small = len(attributes) <= _SMALL
        written = message.SerializeToString(deterministic=True) if is_small else b""
        self._bytes = attributes if written == attributes else written  # which others hold too
        self._message = None if is_small else message

    @classmethod
    def of_constant(cls, op: str, attributes: bytes, value: PackedTensor) -> NodeKind:
        """The kind of a constant whose value stays where it was read.

        Args:
            attributes: all others.

        Raises:
            DecodeError: the bytes are no attributes.
            ValueError: other fields are among them, or another value.
        """
        kind = cls(op, attributes, is_shared=False)
        head = NodeDef.FromString(attributes)
        if VALUE in head.attr:
            raise ValueError("it has two values")
        head.attr[VALUE].tensor.CopyFrom(value.head)
        kind._head, kind._bytes, kind._message = head, b"", None
        kind.packed = PackedTensor(head.attr[VALUE].tensor, value.content)
        return kind

    def with_companions(self, attributes: bytes, companions: tuple[str, ...]) -> NodeKind:
        """A kind like this one but for what `_class` says, which has to be a list of texts in both: nothing is
        decoded or judged again.

        Args:
            attributes: as a deterministic serialization has them.
        """
        kind = NodeKind.__new__(NodeKind)
        kind.op_def, kind.inputs, kind.outputs = self.op_def, self.inputs, self.outputs
        kind.op, kind.is_shared, kind.names_plugin = self.op, True, self.names_plugin
        kind.judged, kind.is_sound, kind.companions, kind.like = None, False, companions, self
        kind.values = self.values  # no list is among them
        kind.packed = kind._head = None
        kind._names_functions = self._names_functions
        kind._bytes, kind._message = attributes, None
        return kind

    def take_verdict(self, other: NodeKind) -> None:
        """Have what was found of a kind that is the same but for the names in `_class`."""
        self.op_def, self.inputs, self.outputs = other.op_def, other.inputs, other.outputs
        self.judged, self.is_sound = other.judged, other.is_sound

    @property
    def attributes(self) -> bytes:
        """What a NodeDef has behind its device: attributes, sorted by name as a deterministic serialization has them,
        and what is not known."""
        if self._bytes:
            return self._bytes
        message = self._whole() if self._message is None else self._message  # which is not kept for this
        return message.SerializeToString(deterministic=True)

    @property
    def names_functions(self) -> bool:
        """Whether an attribute holds functions."""
        if self._names_functions is None and self.like is not None:
            self._names_functions = self.like.names_functions
        elif self._names_functions is None:
            self._names_functions = any(
                value.HasField("func") or (value.HasField("list") and bool(value.list.func))
                for value in self.head.attr.values()
            )
        return bool(self._names_functions)

    @property
    def message(self) -> NodeDef:
        """The attributes as a message without name, op, inputs and device; do not change it."""
        if self._message is None:
            self._message = self._whole()
        return self._message

    @property
    def head(self) -> NodeDef:
        """As `message`, but what is `packed` has no content."""
        return self.message if self._head is None else self._head

    def _whole(self) -> NodeDef:
        if self.packed is None or self._head is None:
            return NodeDef.FromString(self._bytes)
        message = NodeDef()
        message.CopyFrom(self._head)
        message.attr[VALUE].tensor.tensor_content = bytes(self.packed.content)
        return message


#: the types of values that may be kept
PLAIN = frozenset((bool, int, float, bytes, DType, Shape))
#: bytes of attributes above which they are held decoded from the start
_SMALL = 256
