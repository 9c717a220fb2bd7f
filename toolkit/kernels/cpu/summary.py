"""Summary ops: serialized Summary messages, and writers of event files."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from schemas import event_pb2
from toolkit.errors import GraphmillError, InvalidArgumentError, UnknownError
from toolkit.formats.arrays.tensor import to_array
from toolkit.formats.records.events import EventWriter
from toolkit.graph import dtypes
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import integer, np, require, require_scalar, shape_text
from toolkit.kernels.cpu.strings.basic import scalar
from toolkit.kernels.encodings.summaries import Summary, add_audio, add_images, add_tensor, histogram
from toolkit.kernels.registry import REAL, Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources.handles import ResourceHandle, handle_name, lookup
from toolkit.kernels.types import Array
from toolkit.policy.outside import Reach


def _packed(summary: Any) -> Array:
    return scalar(summary.SerializeToString(deterministic=True))


def _tag(value: Array, what: str = "tag") -> str:
    require_scalar(value, what)
    return value.item().decode("utf-8", "replace")


@kernel("ScalarSummary", types={"T": REAL})
def scalar_summary(op: KernelNode) -> Compute:
    def compute(tags: Array, values: Array) -> Array:
        require(
            tags.shape == values.shape or (tags.ndim == 0 and values.size == 1),
            f"tags and values are not the same shape: {shape_text(tags)} != {shape_text(values)}",
        )
        summary = Summary()
        for tag, value in zip(tags.ravel().tolist(), values.ravel(), strict=True):
            summary.value.add(tag=tag.decode("utf-8", "replace"), simple_value=float(value))
        return _packed(summary)

    return compute


@kernel("HistogramSummary", types={"T": REAL})
def histogram_summary(op: KernelNode) -> Compute:
    def compute(tag: Array, values: Array) -> Array:
        summary = Summary()
        summary.value.add(tag=_tag(tag)).histo.CopyFrom(histogram(values, op.name))
        return _packed(summary)

    return compute


@kernel("ImageSummary")
def image_summary(op: KernelNode) -> Compute:
    most, bad_color = op.attr("max_images"), to_array(op.attr("bad_color"))
    require(bad_color.ndim == 1 and bad_color.dtype == np.uint8, "bad_color must be a vector of uint8")

    def compute(tag: Array, images: Array) -> Array:
        summary = Summary()
        add_images(summary, _tag(tag), images, most, bad_color)
        return _packed(summary)

    return compute


@kernel("AudioSummary", "AudioSummaryV2")
def audio_summary(op: KernelNode) -> Compute:
    most = op.attr("max_outputs")
    fixed = op.attr("sample_rate") if op.op == "AudioSummary" else None

    def compute(tag: Array, sounds: Array, rate: Array | None = None) -> Array:
        summary = Summary()
        if rate is not None:
            require_scalar(rate, "sample_rate")
        chosen: Any = fixed if rate is None else rate
        add_audio(summary, _tag(tag), sounds, float(chosen), most)
        return _packed(summary)

    return compute


@kernel("MergeSummary")
def merge_summary(op: KernelNode) -> Compute:
    def compute(*inputs: Array) -> Array:
        merged, seen = Summary(), set[str]()
        for text in (text for x in inputs for text in x.ravel().tolist()):
            for value in _parse(text).value:
                require(not value.tag or value.tag not in seen, f"Duplicate tag {value.tag} found in summary inputs")
                seen.add(value.tag)
                merged.value.add().CopyFrom(value)
        return _packed(merged)

    return compute


def _parse(text: bytes) -> Any:
    try:
        return Summary.FromString(text)
    except Exception:  # protobuf's DecodeError, in each of its implementations
        raise InvalidArgumentError("Could not parse one of the summary inputs") from None


def _tensor_value(summary: Any, tag: str, tensor: Array, dtype: Any, metadata: Array) -> None:
    value = summary.value.add(tag=tag)
    add_tensor(value, tensor, dtype)
    require_scalar(metadata, "serialized_summary_metadata")
    text = metadata.item()
    if text:
        try:
            value.metadata.MergeFromString(text)
        except Exception:  # protobuf's DecodeError, in each of its implementations
            raise InvalidArgumentError("serialized_summary_metadata is not a SummaryMetadata message") from None


@kernel("TensorSummary")
def tensor_summary(op: KernelNode) -> Compute:
    dtype = op.attr("T")

    def compute(tensor: Array) -> Array:
        summary = Summary()
        add_tensor(summary.value.add(node_name=op.name), tensor, dtype)
        return _packed(summary)

    return compute


@kernel("TensorSummaryV2")
def tensor_summary_v2(op: KernelNode) -> Compute:
    dtype = op.attr("T")

    def compute(tag: Array, tensor: Array, metadata: Array) -> Array:
        summary = Summary()
        _tensor_value(summary, _tag(tag), tensor, dtype, metadata)
        return _packed(summary)

    return compute


# -- writers -------------------------------------------------------------------------------------------------


class SummaryWriter:
    """The resource behind summary writer handles; it holds an event file once one was created."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.events: EventWriter | None = None

    def add(self, step: int, fill: Callable[[Any], None]) -> None:
        event = event_pb2.Event(wall_time=time.time(), step=step)
        fill(event)
        if self.events is not None:
            self.events.add_event(event)

    def close(self) -> None:
        if self.events is not None:
            self.events.close()
            self.events = None

    release = close  # the end of the session


@kernel("SummaryWriter")
def summary_writer(op: KernelNode) -> Compute:
    container, shared = handle_name(op)
    handle = ResourceHandle(container, shared or op.name, "SummaryWriter")
    return lambda: handle


@kernel("CreateSummaryFileWriter", kind=Kind.STATEFUL)
def create_summary_file_writer(op: KernelNode) -> Compute:
    files = op.files

    def compute(step: StepContext, handle: Any, logdir: Array, queue: Array, millis: Array, suffix: Array) -> None:
        folder, ending = files.may(Reach.WRITE, _tag(logdir, "logdir") or "."), _tag(suffix, "suffix")
        require_scalar(queue, "max_queue")
        require_scalar(millis, "flush_millis")
        require("/" not in ending, f"filename_suffix must not hold a slash: {ending!r}")
        writer = step.resources.get_or_create(handle.container, handle.name, SummaryWriter, SummaryWriter)
        with writer.lock:
            if writer.events is None:
                try:
                    writer.events = EventWriter(folder, ending, int(millis) / 1000, lambda path: files.open(path, "xb"))
                except GraphmillError as error:
                    raise UnknownError(str(error), node=op.name) from None

    return compute


def _writer(step: StepContext, handle: Any) -> SummaryWriter:
    return lookup(step, handle, SummaryWriter)


@kernel("FlushSummaryWriter", kind=Kind.STATEFUL)
def flush_summary_writer(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any) -> None:
        events = _writer(step, handle).events
        if events is not None:
            events.flush()

    return compute


@kernel("CloseSummaryWriter", kind=Kind.STATEFUL)
def close_summary_writer(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any) -> None:
        _writer(step, handle).close()
        step.resources.delete(handle.container, handle.name)

    return compute


def _value_writer(add: Callable[..., None]) -> Callable[[KernelNode], Compute]:
    """A factory for ops that write one summary: `add(summary, op, *inputs after the step)`."""

    def factory(op: KernelNode) -> Compute:
        def compute(step: StepContext, handle: Any, number: Array, *inputs: Any) -> None:
            summary = Summary()
            add(summary, op, *inputs)
            _writer(step, handle).add(integer(number, "step"), lambda event: event.summary.CopyFrom(summary))

        return compute

    return factory


def _scalar_value(summary: Any, op: KernelNode, tag: Array, value: Array) -> None:
    require_scalar(value, "value")
    summary.value.add(tag=_tag(tag), simple_value=float(value))


def _histogram_value(summary: Any, op: KernelNode, tag: Array, values: Array) -> None:
    summary.value.add(tag=_tag(tag)).histo.CopyFrom(histogram(values, op.name))


def _image_value(summary: Any, op: KernelNode, tag: Array, images: Array, bad_color: Array) -> None:
    add_images(summary, _tag(tag), images, op.attr("max_images"), bad_color)


def _audio_value(summary: Any, op: KernelNode, tag: Array, sounds: Array, rate: Array) -> None:
    require_scalar(rate, "sample_rate")
    add_audio(summary, _tag(tag), sounds, float(rate), op.attr("max_outputs"))


def _any_value(summary: Any, op: KernelNode, tensor: Array, tag: Array, metadata: Array) -> None:
    _tensor_value(summary, _tag(tag), tensor, op.attr("T"), metadata)


def _raw_value(summary: Any, op: KernelNode, texts: Array) -> None:
    for text in texts.ravel().tolist():
        summary.MergeFrom(_parse(text))


kernel("WriteScalarSummary", kind=Kind.STATEFUL)(_value_writer(_scalar_value))
kernel("WriteHistogramSummary", types={"T": REAL | {dtypes.bool_}}, kind=Kind.STATEFUL)(_value_writer(_histogram_value))
kernel("WriteImageSummary", kind=Kind.STATEFUL)(_value_writer(_image_value))
kernel("WriteAudioSummary", kind=Kind.STATEFUL)(_value_writer(_audio_value))
kernel("WriteSummary", kind=Kind.STATEFUL)(_value_writer(_any_value))
kernel("WriteRawProtoSummary", kind=Kind.STATEFUL)(_value_writer(_raw_value))


@kernel("WriteGraphSummary", kind=Kind.STATEFUL)
def write_graph_summary(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any, number: Array, graph: Array) -> None:
        require_scalar(graph, "tensor")

        def fill(event: Any) -> None:
            event.graph_def = graph.item()

        _writer(step, handle).add(integer(number, "step"), fill)

    return compute


@kernel("ImportEvent", kind=Kind.STATEFUL)
def import_event(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any, text: Array) -> None:
        require_scalar(text, "event")
        try:
            event = event_pb2.Event.FromString(text.item())
        except Exception:  # protobuf's DecodeError, in each of its implementations
            raise InvalidArgumentError("event is not an Event message") from None
        writer = _writer(step, handle)
        if writer.events is not None:
            writer.events.add_event(event)

    return compute
