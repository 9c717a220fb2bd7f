"""Nodes of two graphs in a form in which they can be compared."""

from __future__ import annotations

from typing import Any


def described(nodes: Any) -> list[tuple[Any, ...]]:
    """Name, op, inputs, control inputs in any order, device and attributes of every node of a GraphDef."""
    return [
        (
            node.name,
            node.op,
            [i for i in node.input if not i.startswith("^")],
            sorted(i for i in node.input if i.startswith("^")),
            node.device,
            # TensorFlow 2 marks what control edges start from; nothing in a graph file depends on it.
            {
                key: node.attr[key].SerializeToString(deterministic=True)
                for key in node.attr
                if key != "_has_manual_control_dependencies"
            },
        )
        for node in nodes
    ]
