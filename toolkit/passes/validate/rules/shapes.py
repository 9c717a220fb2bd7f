"""Types and shapes along every edge: static shape inference over everything that conforms."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.errors import GraphmillError
from toolkit.graph.attrs import shape_from_proto
from toolkit.graph.infer import HandleData, infer
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape
from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Body, Subject


@family(
    "shapes",
    Rule("contradiction", Severity.ERROR, "shapes that do not fit together", "correct the shape of one of the inputs"),
    Rule("noted", Severity.ERROR, "'_output_shapes' says another shape than the op gives", "remove the attribute"),
)
def shapes(subject: Subject) -> Iterator[Problem]:
    for body in subject.bodies:
        found: dict[str, str] = {}

        def keep(node: Node, error: GraphmillError, found: dict[str, str] = found) -> None:
            found.setdefault(error.node or node.name, error.message)

        try:
            infer(body.sound, strict=False, arguments=_arguments(body), on_contradiction=keep)
        except GraphmillError as error:
            found.setdefault(error.node or "", error.message)
        for name, message in found.items():
            rule = "shapes/noted" if "'_output_shapes' says" in message else "shapes/contradiction"
            yield Problem(rule, message, name or None, body.function)


def _arguments(body: Body) -> dict[Output, tuple[Shape, HandleData | None]] | None:
    """The shapes of a function's arguments, where the function notes them."""
    if body.proto is None:
        return None
    out: dict[Output, tuple[Shape, HandleData | None]] = {}
    for position, arg in enumerate(body.proto.signature.input_arg):
        if position not in body.proto.arg_attr or "_output_shapes" not in body.proto.arg_attr[position].attr:
            continue
        noted = body.proto.arg_attr[position].attr["_output_shapes"].list.shape
        node = body.sound.get(arg.name)
        if len(noted) == 1 and node is not None and node.op == "_Arg":
            out[node.output()] = (shape_from_proto(noted[0]), None)
    return out or None
