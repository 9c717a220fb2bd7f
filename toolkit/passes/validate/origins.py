"""Where the paths come from that ops are given: constants, assets, through the calls of functions."""

from __future__ import annotations

from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, cast

from toolkit.graph import dtypes
from toolkit.graph.node import Node, Output
from toolkit.passes.validate.subject import Body, Subject, references
from toolkit.policy.outside import Row

#: what passes a path on as it is
_PASS = frozenset({"Identity", "Snapshot", "StopGradient", "PlaceholderWithDefault"})
#: ops whose inputs are a function's arguments, and how many inputs come before them
_CALLS = {"PartitionedCall": 0, "StatefulPartitionedCall": 0, "If": 1, "StatelessIf": 1, "Case": 1, "StatelessCase": 1}
#: what is fed
_FED = frozenset({"Placeholder", "PlaceholderV2", "PlaceholderWithDefault"})
#: what TensorFlow's savers call a checkpoint until its name is fed: older ones in a constant
_UNNAMED = "model"
_MOST = 1000  # steps of one search


class Origins:
    """The constant texts that reach the inputs of nodes of one subject.

    Args:
        subject: its main graph and functions.
    """

    def __init__(self, subject: Subject):
        self._subject = subject
        assets = subject.folder and subject.folder / "assets"  # a model without a folder names them only
        self._assets = {
            asset.tensor_info.name.partition(":")[0]: str(assets / asset.filename) if assets else asset.filename
            for asset in subject.assets
        }

    def paths(self, body: Body, node: Node, row: Row) -> list[str] | None:
        """The paths that a node may be given by a row of the table; None where not all of them are known."""
        if row.attr:
            value: Any = node.attr_or(row.attr, b"")
            items = cast("list[Any]", value) if isinstance(value, list) else [value]
            return [_text(item) for item in items]
        if row.input is None or row.input >= len(node.inputs):
            return None
        found: list[str] = []
        waiting: list[tuple[Body, Output]] = [(body, node.inputs[row.input])]
        seen: set[tuple[str, int, int]] = set()
        while waiting:
            inside, (source, index) = waiting.pop()
            key = (inside.function, source.id, index)
            if key in seen:
                continue
            seen.add(key)
            if len(seen) > _MOST:
                return None
            if not inside.function and source.name in self._assets:
                found.append(self._assets[source.name])
            elif source.op in ("Const", "HostConst"):
                value = source.attr_or("value", None)
                if value is None:
                    return None
                found += [_text(item) for item in value.string_val]
            elif source.op in _PASS and source.inputs:
                waiting.append((inside, source.inputs[0]))
            elif source.op == "ReadVariableOp":  # TensorFlow 2 keeps the paths of assets in variables
                assigned = self._assigned(source.inputs[0].node)
                if not assigned:
                    return None
                waiting += assigned
            elif source.op == "_Arg" and inside.function:
                calls = self._arguments(inside.function, source.attr_or("index", -1))
                if not calls:
                    return None
                waiting += calls
            else:
                return None
        return found

    def _arguments(self, function: str, index: int) -> list[tuple[Body, Output]]:
        """What the calls of a function give it for an argument; nothing where one of them is not understood."""
        found: list[tuple[Body, Output]] = []
        for body, node in self._callers.get(function, ()):
            before = 0 if node.op == function else _CALLS.get(node.op)
            if before is None or before + index >= len(node.inputs):
                return []
            found.append((body, node.inputs[before + index]))
        return found

    def _assigned(self, handle: Node) -> list[tuple[Body, Output]]:
        """What a variable of texts is assigned anywhere; nothing where that is not known.

        Handles of one container and shared name are one variable; of a handle that is an argument, or comes out of
        another op, nobody knows which it is.
        """
        if handle.op != "VarHandleOp":
            return []
        found: list[tuple[Body, Output]] = []
        for body, node in self._subject.nodes():
            if node.op != "AssignVariableOp" or len(node.inputs) != 2:
                continue
            other = node.inputs[0].node
            if other.op != "VarHandleOp" and node.attr_or("dtype", dtypes.string) is dtypes.string:
                return []
            if other.op == "VarHandleOp" and _variable(other) == _variable(handle):
                found.append((body, node.inputs[1]))
        return found

    def is_given(self, body: Body, node: Node, row: Row) -> bool:
        """Whether whoever runs the model has a say in a path that is computed, and no constant leads it elsewhere.

        As a saver's are: the text that is fed as the checkpoint's name, and `_temp/part` and the number of the shard
        behind it.
        """
        if row.input is None or row.input >= len(node.inputs):
            return False
        given = False
        waiting: list[tuple[Body, Output]] = [(body, node.inputs[row.input])]
        seen: set[tuple[str, int, int]] = set()
        while waiting and len(seen) <= _MOST:
            inside, (source, index) = waiting.pop()
            key = (inside.function, source.id, index)
            if key in seen:
                continue
            seen.add(key)
            if source.op in ("Const", "HostConst"):
                value = source.attr_or("value", None)
                texts = [_text(item) for item in getattr(value, "string_val", ())]
                if any(text and not is_inside(text) for text in texts):
                    return False
                given = given or texts == [_UNNAMED]
                continue
            calls = self._arguments(inside.function, source.attr_or("index", -1)) if source.op == "_Arg" else []
            given = given or source.op in _FED or (source.op == "_Arg" and not calls)
            waiting += calls or [(inside, output) for output in source.inputs]
        return given and not waiting

    @cached_property
    def _callers(self) -> dict[str, list[tuple[Body, Node]]]:
        callers: dict[str, list[tuple[Body, Node]]] = {}
        for body, node in self._subject.nodes():
            for ref in references(node):
                callers.setdefault(ref.name, []).append((body, node))
        return callers


def is_inside(path: str) -> bool:
    """Whether a path stays in the folder that it is relative to."""
    pure = PurePosixPath(path)
    return bool(path) and "://" not in path and not pure.is_absolute() and ".." not in pure.parts


def _variable(handle: Node) -> tuple[bytes, bytes]:
    """What makes two handles one variable."""
    return handle.attr_or("container", b""), handle.attr_or("shared_name", b"") or handle.name.encode()


def _text(value: Any) -> str:
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else str(value)
