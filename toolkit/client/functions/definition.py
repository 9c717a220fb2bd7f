"""FunctionDefs of operations, with the names that TensorFlow gives to arguments and results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from schemas import function_pb2
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.graph.dtypes import DType
from toolkit.graph.node import Output

_NO_LETTER_FIRST = re.compile(r"^[^a-z]+")
_OTHER = re.compile(r"[^a-z0-9]+")


def argument_name(name: str) -> str:
    """An operation's name as that of an argument: small letters, digits and underscores, a letter first."""
    return _OTHER.sub("_", _NO_LETTER_FIRST.sub("", name.lower())) or "unknown"


def unique(name: str, taken: Iterable[str], first: int = 0) -> str:
    """A name that is not taken: itself, or with the first number from `first` on that makes it so."""
    names = set(taken)
    if name not in names:
        return name
    count = first
    while f"{name}_{count}" in names:
        count += 1
    return f"{name}_{count}"


def name_ends(
    args: Sequence[Tensor], results: Sequence[Tensor], result_names: Sequence[str] | None = None
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Arguments and results by the names that a function gives them; results come first to theirs.

    Args:
        result_names: of the results, as they are; default: those of their operations.
    """
    named: dict[str, Tensor] = {}
    for i, tensor in enumerate(results):
        name = result_names[i] if result_names else unique(argument_name(tensor.op.name), named)
        named[name] = tensor
    given: dict[str, Tensor] = {}
    for tensor in args:
        given[unique(argument_name(tensor.op.name), {*named, *given})] = tensor
    return given, named


def function_def(
    name: str,
    operations: Sequence[Operation],
    args: Mapping[str, Tensor | DType],
    results: Mapping[str, Tensor],
    *,
    stand_ins: Mapping[Tensor, Tensor] | None = None,
    controls: Sequence[Operation] = (),
) -> function_pb2.FunctionDef:
    """The function that computes `results` from `args` by `operations`, whose names give way to those of the two.

    Args:
        args: by name, tensors that come in, or the types of arguments that are not used.
        stand_ins: tensors to use in the place of others.
        controls: operations that must run.
    """
    out = function_pb2.FunctionDef()
    signature = out.signature
    signature.name = name
    refs: dict[Output, str] = {}
    for arg, given in args.items():
        dtype = given.dtype.base if isinstance(given, Tensor) else given.base
        signature.input_arg.add(name=arg, type=dtype.enum)
        if isinstance(given, Tensor):
            refs[given.output] = arg
    taken = {*args, *results}
    names: dict[Operation, str] = {}
    for op in operations:
        node = op.node
        names[op] = unique(op.name, taken)
        taken.add(names[op])
        for output, positions in node.op_def.arg_ranges(node.op_def.outputs, node.attrs).items():
            for offset, position in enumerate(positions):
                refs.setdefault(node.output(position), f"{names[op]}:{output}:{offset}")
    for old, new in (stand_ins or {}).items():
        refs[old.output] = refs[new.output]
    present = {op.node: name for op, name in names.items()}
    for op in operations:
        node = out.node_def.add(name=names[op], op=op.type, device=op.device)
        node.input.extend(refs[source] for source in op.node.inputs)
        node.input.extend(f"^{present[source]}" for source in op.node.control_inputs if source in present)
        for key in op.node.attrs:
            node.attr[key].CopyFrom(op.node.attrs.proto(key))
        signature.is_stateful |= op.op_def.is_stateful
    for result, tensor in results.items():
        signature.output_arg.add(name=result, type=tensor.dtype.base.enum)
        out.ret[result] = refs[tensor.output]
    for op in controls:
        out.control_ret[op.name] = names[op]
        signature.control_output.append(op.name)
    return out
