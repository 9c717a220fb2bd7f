"""Signatures: their tensors exist and are what they say; an earlier version's callers go on working."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from schemas.meta_graph_pb2 import SignatureDef, TensorInfo
from toolkit.errors import GraphmillError, did_you_mean
from toolkit.formats.inspection.detect import ModelKind, detect
from toolkit.formats.models.message import read_message
from toolkit.graph import dtypes
from toolkit.graph.attrs import known_shape
from toolkit.graph.infer import ShapeMap
from toolkit.graph.metagraph import tensor_parts
from toolkit.graph.tensorref import parse_input
from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Subject


@family(
    "signatures",
    Rule("malformed", Severity.ERROR, "signatures or collections that cannot be read", "export the model again"),
    Rule("tensor", Severity.ERROR, "a signature names a tensor that does not exist", "name one of the graph's tensors"),
    Rule("dtype", Severity.ERROR, "a signature says another type than its tensor has", "correct the signature"),
    Rule("shape", Severity.ERROR, "a signature says a shape that its tensor cannot have", "correct the signature"),
    Rule("no-outputs", Severity.WARNING, "a signature without outputs", "add the outputs, or remove the signature"),
    Rule("none", Severity.NOTE, "a SavedModel without signatures", "export it with signatures to serve it"),
    Rule("removed", Severity.ERROR, "a signature of the earlier version is gone", "keep the signature for its callers"),
    Rule("input", Severity.ERROR, "callers of the earlier version pass other inputs", "keep the inputs as they were"),
    Rule("output", Severity.ERROR, "callers of the earlier version miss an output", "keep the outputs as they were"),
    Rule("earlier-version", Severity.ERROR, "the earlier version cannot be read", "give a file that can"),
)
def signatures(subject: Subject) -> Iterator[Problem]:
    found = subject.proto.signature_def
    shapes: ShapeMap | None = None
    for key in sorted(found):
        signature = found[key]
        if key.startswith("__"):
            continue  # TensorFlow's own, such as __saved_model_init_op
        if not signature.outputs:
            yield Problem("signatures/no-outputs", f"signature '{key}' has no outputs")
        for side, infos in (("input", signature.inputs), ("output", signature.outputs)):
            for name in sorted(infos):
                if shapes is None:
                    shapes = subject.bodies[0].inferred[0]
                yield from _info(subject, shapes, f"{side} '{name}' of signature '{key}'", infos[name])
    if subject.kind is ModelKind.SAVED_MODEL and not any(not key.startswith("__") for key in found):
        yield Problem("signatures/none", "the model has no signatures")
    if subject.options.compatible_with:
        yield from _against(subject)


def _info(subject: Subject, shapes: ShapeMap, where: str, info: TensorInfo) -> Iterator[Problem]:
    for name in tensor_parts(info).values():
        node_name, index = parse_input(name)
        node = subject.graph.get(node_name)
        if node is None:
            hint = did_you_mean(node_name, (n.name for n in subject.graph.nodes))
            yield Problem("signatures/tensor", f"{where} is '{name}', which does not exist{hint}")
            continue
        try:
            types = node.output_types
        except GraphmillError:
            continue  # the node is the finding
        if not 0 <= index < len(types):
            message = f"{where} is '{name}', but {node.op} has {len(types)} output(s)"
            yield Problem("signatures/tensor", message, node.name)
            continue
        if info.WhichOneof("encoding") != "name":
            continue
        if info.dtype and info.dtype % 100 != types[index].base.enum:
            message = f"{where} says {_type(info.dtype)}, the tensor '{name}' is {types[index].base}"
            yield Problem("signatures/dtype", message, node.name)
        sound = subject.bodies[0].sound.get(node.name)
        if sound is not None and info.HasField("tensor_shape"):
            said, known = known_shape(info.tensor_shape), shapes[sound.output(index)]
            if not said.is_compatible_with(known):
                yield Problem("signatures/shape", f"{where} says {said}, the tensor '{name}' has {known}", node.name)


def _type(enum: int) -> str:
    try:
        return str(dtypes.from_enum(enum))
    except GraphmillError:
        return f"type number {enum}"


# -- an earlier version ----------------------------------------------------------------------------------


@cache
def _earlier(path: str) -> dict[tuple[str, ...], Mapping[str, SignatureDef]]:
    """The signatures of a file by the tags of their graph."""
    kind, message = read_message(detect(path), path)
    metas: list[Any] = list(message.meta_graphs) if kind is ModelKind.SAVED_MODEL else [message]
    if kind is ModelKind.GRAPH_DEF:
        raise GraphmillError("a GraphDef has no signatures to be compatible with", file=path)
    return {tuple(sorted(meta.meta_info_def.tags)): meta.signature_def for meta in metas}


def _against(subject: Subject) -> Iterator[Problem]:
    path = subject.options.compatible_with
    try:
        earlier = _earlier(path)
    except GraphmillError as error:
        yield Problem("signatures/earlier-version", f"{path}: {error.message}")
        return
    theirs = earlier.get(tuple(sorted(subject.proto.meta_info_def.tags)))
    if theirs is None and len(earlier) == 1:
        theirs = next(iter(earlier.values()))
    yield from incompatibilities(theirs or {}, subject.proto.signature_def)


def incompatibilities(earlier: Mapping[str, SignatureDef], now: Mapping[str, SignatureDef]) -> Iterator[Problem]:
    """What breaks for callers of earlier signatures.

    A signature may gain outputs, and take more shapes than before; all else that changes breaks a caller.
    """
    for key in sorted(earlier):
        if key.startswith("__"):
            continue
        old = earlier[key]
        if key not in now:
            yield Problem("signatures/removed", f"signature '{key}' is gone{did_you_mean(key, now)}")
            continue
        new = now[key]
        for name in sorted({*old.inputs, *new.inputs}):
            where = f"input '{name}' of signature '{key}'"
            if name not in new.inputs:
                yield Problem("signatures/input", f"{where} is gone")
            elif name not in old.inputs:
                yield Problem("signatures/input", f"{where} is new: earlier callers do not pass it")
            else:
                change = _change(old.inputs[name], new.inputs[name], is_input=True)
                if change:
                    yield Problem("signatures/input", f"{where} {change}")
        for name in sorted(old.outputs):
            where = f"output '{name}' of signature '{key}'"
            if name not in new.outputs:
                yield Problem("signatures/output", f"{where} is gone")
                continue
            change = _change(old.outputs[name], new.outputs[name], is_input=False)
            if change:
                yield Problem("signatures/output", f"{where} {change}")


def _change(old: TensorInfo, new: TensorInfo, *, is_input: bool) -> str:
    if old.dtype != new.dtype:
        return f"was {_type(old.dtype)} and is {_type(new.dtype)}"
    before, after = known_shape(old.tensor_shape), known_shape(new.tensor_shape)
    wide, narrow = (after, before) if is_input else (before, after)
    if old.HasField("tensor_shape") and new.HasField("tensor_shape") and wide.most_specific_common(narrow) != wide:
        return f"had shape {before} and has {after}"
    return ""
