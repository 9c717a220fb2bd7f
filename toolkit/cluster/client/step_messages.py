"""Requests and responses of steps, written and read with one copy of each large tensor.

RunStep's and RunCallable's messages are those of `schemas/master.proto`. The protobuf library would copy a tensor four
times on its way; here its bytes go from the array into the request, and the response's bytes are the array.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from google.protobuf.message import DecodeError

from schemas import config_pb2, master_pb2, types_pb2
from schemas.resource_handle_pb2 import ResourceHandleProto
from schemas.tensor_pb2 import TensorProto, VariantTensorDataProto
from toolkit.cluster.rpc.tensors import read_tensor, tensor_header
from toolkit.errors import GraphError, GraphmillError, InternalError
from toolkit.formats.arrays.tensor import dtype_of, from_array, to_array
from toolkit.formats.models import protoscan
from toolkit.formats.models.protoscan import varint_bytes
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.node import Node, Output

Part = Any  # bytes, or an array of bytes

# numbers of fields: RunStepRequest, NamedTensorProto, TensorProto, RunStepResponse; RunCallable's
_FEED, _OPTIONS, _NAME, _TENSOR = 2, 5, 1, 2
_RESULT, _METADATA, _STATUS, _MESSAGE = 1, 2, 3, 4
_CALLABLE_FEED = 3


@dataclass(slots=True)
class StepAnswer:
    """What came of a step.

    Attributes:
        values: by name, or by position where they have none.
        code, message: the step's status.
    """

    values: dict[str | int, Any] = field(default_factory=dict[str | int, Any])
    metadata: config_pb2.RunMetadata | None = None
    code: int = 0
    message: str = ""


class RemoteStep:
    """A combination of feeds, fetches and targets, with what all of its requests have in common.

    What is fetched and fed at once is not asked for: its value is what was fed.
    """

    def __init__(self, feeds: Sequence[Output], fetches: Sequence[Output], targets: Sequence[Node]):
        self.feeds = list(feeds)
        self.fetches = list(fetches)
        self.feed_names = [output.name for output in feeds]
        fed = {output: position for position, output in enumerate(feeds)}
        self.passed = {position: fed[output] for position, output in enumerate(fetches) if output in fed}
        self.fetch_names = [output.name for output in fetches if output not in fed]
        self.target_names = [node.name for node in targets]
        self.wanted = [*self.fetch_names, *self.target_names]
        self._types = [output.dtype.base for output in feeds]
        self._common = master_pb2.RunStepRequest(
            fetch=self.fetch_names, target=self.target_names, store_errors_in_response_body=True
        ).SerializeToString()

    def request(
        self, handle: str, arguments: Sequence[Any], options: config_pb2.RunOptions | None, partial_run: str = ""
    ) -> bytes:
        """A RunStepRequest."""
        start = master_pb2.RunStepRequest(session_handle=handle, partial_run_handle=partial_run).SerializeToString()
        parts: list[Part] = [start, self._common]
        if options is not None:
            _field(parts, _OPTIONS, [options.SerializeToString()])
        for name, dtype, value in zip(self.feed_names, self._types, arguments, strict=True):
            named: list[Part] = []
            _field(named, _NAME, [name.encode()])
            _field(named, _TENSOR, tensor_parts(value, dtype))
            _field(parts, _FEED, named)
        return b"".join(parts)

    def callable_request(self, handle: str, number: int, arguments: Sequence[Any]) -> bytes:
        """A RunCallableRequest."""
        parts: list[Part] = [
            master_pb2.RunCallableRequest(session_handle=handle, handle=number).SerializeToString(),
        ]
        for dtype, value in zip(self._types, arguments, strict=True):
            _field(parts, _CALLABLE_FEED, tensor_parts(value, dtype))
        return b"".join(parts)

    def results(self, answer: StepAnswer, arguments: Sequence[Any]) -> list[Any]:
        """The values in the order of the fetches.

        Raises:
            InternalError: the master has left one out.
        """
        found: list[Any] = []
        asked = 0
        for position, output in enumerate(self.fetches):
            if position in self.passed:
                found.append(np.asarray(arguments[self.passed[position]]))
                continue
            key: str | int = output.name if output.name in answer.values else asked
            asked += 1
            if key not in answer.values:
                raise InternalError(f"the master has sent no value for '{output.name}'")
            found.append(answer.values[key])
        return found


def _size(part: Part) -> int:
    return part.nbytes if isinstance(part, np.ndarray) else len(part)


def _field(out: list[Part], number: int, parts: Iterable[Part]) -> None:
    """Append a field of known length."""
    parts = list(parts)
    out.append(varint_bytes(number << 3 | protoscan.LENGTH) + varint_bytes(sum(map(_size, parts))))
    out += parts


def tensor_parts(value: Any, dtype: DType) -> list[Part]:
    """A TensorProto's bytes, in parts of which the last may be the array's own memory."""
    header = tensor_header(value) if isinstance(value, np.ndarray) and _is_written_by_its_type(value, dtype) else None
    if header is None:
        return [from_array(value, dtype).SerializeToString()]
    dense: Any = np.ascontiguousarray(cast("Any", value))
    return [header, dense.reshape(-1).view(np.uint8)] if dense.size else [header]


def _is_written_by_its_type(array: Any, dtype: DType) -> bool:
    """Whether an array's own type says what a tensor is: quantized numbers are arrays of other types."""
    return dtype.kind not in "rv" and array.dtype == dtype.numpy and dtypes.from_numpy(array.dtype) == dtype


def read_answer(data: bytes, *, named: bool) -> StepAnswer:
    """A RunStepResponse, whose values have names, or a RunCallableResponse, whose values have none.

    Args:
        named: which of the two.

    Raises:
        InternalError: it is neither.
    """
    answer = StepAnswer()
    try:
        for each in protoscan.fields(data, 0, len(data)):
            if each.number == _METADATA:
                answer.metadata = config_pb2.RunMetadata.FromString(data[each.value : each.end])
            elif each.number == _STATUS:
                answer.code, _ = protoscan.varint(data, each.value, each.end, each.end)
            elif each.number == _MESSAGE:
                answer.message = data[each.value : each.end].decode(errors="replace")
            elif each.number == _RESULT and named:
                name, value = _named(data, each.value, each.end)
                answer.values[name] = value
            elif each.number == _RESULT:
                answer.values[len(answer.values)] = _value(data, each.value, each.end)
    except (protoscan.WireError, DecodeError, GraphmillError) as error:
        raise InternalError(f"the master has answered with what is no result of a step: {error}") from None
    return answer


def _named(data: bytes, start: int, end: int) -> tuple[str, Any]:
    name, tensor = "", (end, end)
    for each in protoscan.fields(data, start, end):
        if each.number == _NAME:
            name = data[each.value : each.end].decode(errors="replace")
        elif each.number == _TENSOR:
            tensor = each.value, each.end
    return name, _value(data, *tensor)


def _value(data: bytes, start: int, end: int) -> Any:
    """The array of a TensorProto in data[start:end]; a large one is a view of these bytes.

    Raises:
        GraphError: its bytes do not fit its shape.
        WireError: it is no message.
    """
    try:
        return read_tensor(data, start, end)
    except GraphError:
        proto = TensorProto.FromString(data[start:end])
        if not proto.tensor_content or dtype_of(proto).kind not in "rv":
            raise
        return _handles(proto)


def _handles(proto: TensorProto) -> Any:
    """Handles and variants, which servers pack as they pack texts; files never have them so."""
    kind = ResourceHandleProto if dtype_of(proto).kind == "r" else VariantTensorDataProto
    proto.dtype = types_pb2.DT_STRING
    texts = to_array(proto)
    found = np.empty(texts.shape, object)
    for index, text in np.ndenumerate(texts):
        found[index] = kind.FromString(text)
    return found
