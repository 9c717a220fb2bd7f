"""Shapes of calls, functional If/While, and what input pipelines are made of."""

from __future__ import annotations

from toolkit.errors import GraphmillError
from toolkit.graph import opdefs
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import FunctionBody, instantiate
from toolkit.graph.dtypes import resource, variant
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.infer import infer
from toolkit.graph.node import Output
from toolkit.graph.shape import SCALAR, UNKNOWN, Shape
from toolkit.graph.shapes.calls import MAX_DEPTH, Calls, Cut, Found, HandleData
from toolkit.graph.shapes.registry import ShapeContext, shape_function


def infer_call(c: ShapeContext, ref: FuncRef, inputs: list[Shape], handles: list[HandleData | None]) -> Found:
    """The shapes and handles a function returns for these arguments; None when it cannot be followed."""
    library, calls = c.node.graph.library, c.calls
    if ref.name not in library:
        return None
    key = calls.key(library, ref, inputs, handles)
    if calls.depth >= MAX_DEPTH:
        if calls.is_known(key):
            return calls.recall(key)[1]
        calls.is_cut = True
        calls.cuts.setdefault(key, Cut(key, library, ref, inputs, handles))
        return None
    is_known, found = calls.recall(key)
    if is_known:
        return found
    before, calls.is_cut = calls.is_cut, False
    found = follow(calls, library, ref, inputs, handles)
    calls.keep(key, found)
    calls.is_cut |= before
    return found


def follow(
    calls: Calls, library: FunctionLibrary, ref: FuncRef, inputs: list[Shape], handles: list[HandleData | None]
) -> Found:
    """What `infer_call` finds of a call that nothing is known of yet."""
    if not calls.may_follow(library, ref.name):
        calls.is_cut = True
        return None
    calls.depth += 1
    try:
        body: FunctionBody = instantiate(library, ref)
        if len(body.args) != len(inputs):
            return None
        seeds = {Output(arg, 0): (shape, handle) for arg, shape, handle in zip(body.args, inputs, handles, strict=True)}
        shapes = infer(body.graph, strict=False, arguments=seeds, calls=calls)
        results = [node.inputs[0] for node in body.results]
        return [shapes[r] for r in results], [shapes.handle(r) for r in results]
    except GraphmillError:
        return None
    finally:
        calls.depth -= 1


@shape_function("PartitionedCall", "StatefulPartitionedCall")
def call(c: ShapeContext) -> list[Shape]:
    found = infer_call(c, c.attr("f"), c.inputs, [c.handle(i) for i in range(len(c.inputs))])
    if found is None or len(found[0]) != c.node.num_outputs:  # the run reports it
        return c.unknown()
    for index, handle in enumerate(found[1]):
        if handle is not None:
            c.output_handles[index] = handle
    return found[0]


@shape_function("RemoteCall", "SymbolicGradient", "BatchFunction", "For")
def opaque_call(c: ShapeContext) -> list[Shape]:
    if c.node.op == "SymbolicGradient":  # one gradient for each of the first inputs
        if len(c.inputs) < c.node.num_outputs:
            raise GraphmillError(f"{c.node.num_outputs} gradients are asked for, of {len(c.inputs)} input(s)")
        return list(c.inputs[: c.node.num_outputs])
    return c.unknown()


def _noted(c: ShapeContext) -> list[Shape]:
    """The shapes that a caller notes for its results.

    Raises:
        GraphmillError: there are some, but not one for each.
    """
    noted: list[Shape] = c.attr("output_shapes")
    if noted and len(noted) != c.node.num_outputs:
        raise GraphmillError(f"attribute 'output_shapes' has {len(noted)} shapes for {c.node.num_outputs} output(s)")
    return noted


@shape_function("If", "StatelessIf", "Case", "StatelessCase")
def branches(c: ShapeContext) -> list[Shape]:
    noted: list[Shape] = _noted(c)
    count = c.node.num_outputs
    refs: list[FuncRef] = c.attr("branches") if "Case" in c.node.op else [c.attr("then_branch"), c.attr("else_branch")]
    handles = [c.handle(i) for i in range(1, len(c.inputs))]
    out: list[Shape] | None = None
    for ref in refs:
        found = infer_call(c, ref, c.inputs[1:], handles)
        if found is None or len(found[0]) != count:
            out = None
            break
        out = found[0] if out is None else [a.most_specific_common(b) for a, b in zip(out, found[0], strict=True)]
    if out is None:
        return noted if len(noted) == count else c.unknown()
    if len(noted) != count:
        return out
    return [a.merge(b) if a.is_compatible_with(b) else b for a, b in zip(out, noted, strict=True)]


@shape_function("While", "StatelessWhile")
def while_loop(c: ShapeContext) -> list[Shape]:
    """Inputs keep their shapes through the body, or are widened until they do."""
    noted: list[Shape] = _noted(c)
    count = len(c.inputs)
    for index, dtype in enumerate(c.node.input_types):
        handle = c.handle(index)
        if handle is not None and dtype in (resource, variant):
            c.output_handles[index] = handle
    if len(noted) == count and noted:
        return noted
    shapes = list(c.inputs)
    handles = [c.handle(i) for i in range(count)]
    for _ in range(8):
        found = infer_call(c, c.attr("body"), shapes, handles)
        if found is None or len(found[0]) != count:
            return shapes  # TensorFlow takes the invariant for granted
        widened = [a.most_specific_common(b) for a, b in zip(shapes, found[0], strict=True)]
        if widened == shapes:
            return shapes
        shapes = widened
    return [UNKNOWN] * count


@shape_function("FakeParam")
def fake_param(c: ShapeContext) -> list[Shape]:
    return [c.attr("shape")]


@shape_function("ToBool")
def to_bool(c: ShapeContext) -> list[Shape]:
    return [SCALAR]


def _scalars(c: ShapeContext) -> list[Shape]:
    return [SCALAR] * c.node.num_outputs


#: op names that make or describe datasets and iterators: every output is a scalar handle or number
_NOT_SCALAR = frozenset({"DatasetToSingleElement", "ReduceDataset"})
for _name in opdefs.names():
    _makes_dataset = _name.endswith(("Dataset", "DatasetV2", "DatasetV3", "DatasetV4")) or _name in (
        "AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3", "AnonymousMultiDeviceIterator",
        "AnonymousMultiDeviceIteratorV3", "DatasetCardinality", "DatasetFingerprint", "DatasetFromGraph",
        "DatasetToGraph", "DatasetToGraphV2", "GetOptions", "Iterator", "IteratorFromStringHandle",
        "IteratorFromStringHandleV2", "IteratorGetDevice", "IteratorGetNextAsOptional", "IteratorToStringHandle",
        "IteratorV2", "MultiDeviceIterator", "MultiDeviceIteratorFromStringHandle", "MultiDeviceIteratorInit",
        "MultiDeviceIteratorToStringHandle", "OneShotIterator", "DummyIterationCounter", "WrapDatasetVariant",
        "UnwrapDatasetVariant", "AnonymousMemoryCache", "MakeIterator", "DeleteIterator", "DeleteMemoryCache",
        "DeleteMultiDeviceIterator", "DeleteSeedGenerator", "DeleteRandomSeedGenerator",
    )  # fmt: skip
    if _makes_dataset and _name not in _NOT_SCALAR:
        shape_function(_name)(_scalars)
