"""RunGraph's responses, read with no copy of their tensors that is not needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import DecodeError

from schemas import worker_pb2
from toolkit.cluster.rpc import tensors, wire
from toolkit.errors import GraphmillError, InternalError
from toolkit.formats.models import protoscan

# numbers of fields of RunGraphResponse
_RECV, _CODE, _MESSAGE = 1, 5, 6


@dataclass(slots=True)
class RunAnswer:
    """What came of a graph.

    Attributes:
        values: by the keys that were asked for.
        code, message: its status.
        rest: what else there is: step_stats, cost_graph.
    """

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    code: int = 0
    message: str = ""
    rest: worker_pb2.RunGraphResponse = field(default_factory=worker_pb2.RunGraphResponse)


def read_answer(data: bytes) -> RunAnswer:
    """A RunGraphResponse.

    Raises:
        InternalError: it is none.
    """
    answer = RunAnswer()
    rest: list[bytes] = []
    try:
        for each in protoscan.fields(data, 0, len(data)):
            if each.number == _RECV:
                name, value = tensors.read_named(data, each.value, each.end)
                answer.values[name] = value
            elif each.number == _CODE:
                answer.code = wire.value(data, each)
            elif each.number == _MESSAGE:
                answer.message = data[each.value : each.end].decode(errors="replace")
            else:
                rest.append(data[each.start : each.end])
        if rest:
            answer.rest.MergeFromString(b"".join(rest))
    except (protoscan.WireError, DecodeError, GraphmillError) as error:
        raise InternalError(f"a worker has answered with what is no result of a graph: {error}") from None
    return answer
