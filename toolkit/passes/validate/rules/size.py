"""How large the file and its constants are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from toolkit.formats.io import PROTO_LIMIT
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import Node
from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Body, Subject

if TYPE_CHECKING:
    from toolkit.formats.node_tables.table import NodeTable

_NEAR = PROTO_LIMIT * 3 // 4
#: constants below this many bytes may well be there twice
_WORTH_SHARING = 4096


@family(
    "size",
    Rule("limit", Severity.ERROR, "the file is over the 2 GiB that a message may have",
         "keep the weights in a checkpoint instead of freezing them"),
    Rule("near-limit", Severity.WARNING, "the file is near the 2 GiB that a message may have",
         "keep the weights in a checkpoint instead of freezing them"),
    Rule("duplicate-constants", Severity.NOTE, "constants with equal values", "let their consumers share one"),
)  # fmt: skip
def size(subject: Subject) -> Iterator[Problem]:
    table = subject.bodies[0].table
    if table is not None and next(_constants(_counted(subject, table)), None) is None:
        return
    yield from _constants((body, node, 1) for body, node in subject.nodes())


def _counted(subject: Subject, table: NodeTable) -> Iterator[tuple[Body, Node, int]]:
    """One node of each kind of the main graph, and how many there are; all nodes of functions."""
    main, *functions = subject.bodies
    counts = table.first_counts()
    for node in main.graph.examples():
        yield main, node, counts[int(table.kinds.first[table.kind[node.id]])]
    yield from ((body, node, 1) for body in functions for node in body.graph.nodes)


def _constants(nodes: Iterable[tuple[Body, Node, int]]) -> Iterator[Problem]:
    """What is wrong with constants of which there are so many each."""
    constants: dict[bytes, list[tuple[Body, Node, int]]] = {}
    total = 0
    small: dict[NodeKind, int] = {}  # bytes of what is not worth sharing
    for body, node, count in nodes:
        if node.op != "Const":
            continue
        kind = node.kind
        if kind is not None and kind in small:
            total += small[kind] * count
            continue
        if node.base is None or "value" not in node.base.attr:
            continue
        tensor = node.base.attr["value"].tensor
        length = tensor.ByteSize()
        total += length * count
        if length < _WORTH_SHARING:
            if kind is not None:
                small[kind] = length
        else:
            digest = hashlib.blake2b(tensor.SerializeToString(deterministic=True), digest_size=16).digest()
            constants.setdefault(digest, []).extend([(body, node, length)] * count)
    if total > _NEAR:
        message = f"the constants of the graph take {total:,} bytes of the {PROTO_LIMIT:,} that a file may have"
        yield Problem("size/near-limit", message)
    for same in constants.values():
        if len(same) > 1:
            (body, node, length), *rest = same
            others = ", ".join(f"'{other.name}'" for _, other, _ in rest[:3]) + (", ..." if len(rest) > 3 else "")
            message = f"its {length:,} bytes are those of {others} again; sharing saves {length * len(rest):,} bytes"
            yield Problem("size/duplicate-constants", message, node.name, body.function)
