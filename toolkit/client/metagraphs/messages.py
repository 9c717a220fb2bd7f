"""The messages that collections hold, whose texts are all names of a graph's nodes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from schemas import control_flow_pb2, queue_runner_pb2, saver_pb2, variable_pb2
from toolkit.graph.metagraph import GraphKeys

VARIABLE_COLLECTIONS = (
    GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES, GraphKeys.MODEL_VARIABLES, GraphKeys.TRAINABLE_VARIABLES,
    GraphKeys.MOVING_AVERAGE_VARIABLES, GraphKeys.GLOBAL_STEP,
)  # fmt: skip

#: collections of messages, with the field that says which scope one belongs to
MESSAGES: dict[str, tuple[Any, str]] = {
    GraphKeys.QUEUE_RUNNERS: (queue_runner_pb2.QueueRunnerDef, "queue_name"),
    GraphKeys.SAVERS: (saver_pb2.SaverDef, "restore_op_name"),
    GraphKeys.COND_CONTEXT: (control_flow_pb2.CondContextDef, "context_name"),
    GraphKeys.WHILE_CONTEXT: (control_flow_pb2.WhileContextDef, "context_name"),
    **dict.fromkeys(VARIABLE_COLLECTIONS, (variable_pb2.VariableDef, "variable_name")),
}


def prepended(name: str, scope: str | None) -> str:
    """A name in a scope; "^" and "loc:@" stay before it."""
    if not scope:
        return name
    mark = next((each for each in ("^", "loc:@") if name.startswith(each)), "")
    return f"{mark}{scope.rstrip('/')}/{name.removeprefix(mark)}"


def stripped(name: str, scope: str | None) -> str:
    """A name without the scope it starts with; "^" and "loc:@" before it stay."""
    if not scope:
        return name
    return re.sub(rf"(\^|loc:@|^){re.escape(scope.rstrip('/'))}/+(.*)", r"\1\2", name, count=1)


def rename_all(message: Any, rename: Callable[[str], str]) -> None:
    """Give every text in a message another one."""
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            entries = [(rename(k), rename(v)) for k, v in value.items()]
            value.clear()
            value.update(entries)
        elif field.type == field.TYPE_MESSAGE:
            for each in value if hasattr(value, "add") else [value]:
                rename_all(each, rename)
        elif field.type == field.TYPE_STRING:
            if hasattr(value, "append"):
                value[:] = [rename(each) for each in value]
            else:
                setattr(message, field.name, rename(value))
