"""Loop nests over tensors: every operand is read once, a chain of operations runs in registers, outputs are written.

A nest is a module with one function, `void run(ptr operands)`, whose argument is an array of addresses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolkit.kernels.cpu.native.code import LANES, MEMORY, SIZES, Code, Lanes
from toolkit.kernels.cpu.native.numbers import InText, Numbers
from toolkit.kernels.cpu.native.openmp import numbered, openmp_declarations, started

ATTRIBUTES = '{ nounwind "min-legal-vector-width"="512" "prefer-vector-width"="512" }'


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that a nest goes over.

    Attributes:
        type: of LLVM.
        strides: elements from one index to the next, for each dimension of the nest; 0 where it is broadcast.
    """

    type: str
    strides: tuple[int, ...]

    def reach(self, shape: Sequence[int]) -> int:
        """Bytes from the first element that a nest of a shape touches to the end of the last."""
        last = sum((size - 1) * stride for size, stride in zip(shape, self.strides, strict=True))
        return (last + 1) * SIZES[self.type]


Body = Callable[[Code, Sequence[Lanes]], Sequence[Lanes]]


def nest(shape: Sequence[int], inputs: Sequence[Operand], outputs: Sequence[Operand], body: Body,
         *, calls: bool, spread: bool, numbers: Numbers | None = None) -> str:  # fmt: skip
    """The text of a module.

    Args:
        shape: of the iteration; no dimension is 0.
        body: writes what happens to lanes of the inputs; returns lanes of the outputs.
        calls: long functions are called, else they are written out in every place: LLVM needs a second for 150,000
            instructions.
        spread: over threads, by the runtime of OpenMP.
        numbers: takes sizes and steps, which are given behind the operands then; None: they are in the text.
    """
    numbers = numbers or InText()
    operands = [*inputs, *outputs]
    sizes, strides = _collapse(shape, [operand.strides for operand in operands])
    code = Code(calls=calls)
    count = len(inputs)
    kinds = [step[-1] for step in strides]
    assert all(kind in (0, 1) for kind in kinds)
    names = [operand.type for operand in operands]
    loaded: list[Lanes] = []
    hoisted = Code(prefix="h")
    for index in range(count):
        if kinds[index] == 0:
            loaded.append(_broadcast(hoisted, index, names[index]))
        else:
            loaded.append(load_masked(code, f"%q{index}", "%i", names[index]))
    results = body(code, loaded)
    for index, lanes in enumerate(results, count):
        assert kinds[index] == 1
        store_masked(code, f"%q{index}", "%i", lanes, names[index])
    return _module(sizes, strides, names, hoisted, code, numbers, spread=spread)


def positions(code: Code) -> Lanes:
    """Where each lane is along the innermost dimension: int64. Of a nest of one dimension, the index of its element."""
    first = code.emit("i64", f"insertelement <{LANES} x i64> poison, i64 %i, i64 0")
    spread = code.emit("i64", f"shufflevector {first.vector} {first.name}, {first.vector} poison, "
                              f"<{LANES} x i32> zeroinitializer")  # fmt: skip
    steps = ", ".join(f"i64 {lane}" for lane in range(LANES))
    return code.add(spread, Lanes(f"<{steps}>", "i64"))


def is_long(shape: Sequence[int], weight: int, least: int) -> bool:
    """Whether a nest is worth spreading over threads.

    Args:
        weight: roughly how many instructions the body is.
        least: instructions on lanes.
    """
    return math.prod(shape) * weight >= least * LANES


def _collapse(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Fewer dimensions: those of size 1 go, neighbours become one where every operand lies so.

    In the last dimension every operand's step is 0 or 1.
    """
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        own = [operand[axis] for operand in strides]
        if sizes and all(step[-1] == stride * size for step, stride in zip(steps, own, strict=True)):
            sizes[-1] *= size
            for step, stride in zip(steps, own, strict=True):
                step[-1] = stride
        else:
            sizes.append(size)
            for step, stride in zip(steps, own, strict=True):
                step.append(stride)
    if not sizes or any(step[-1] > 1 for step in steps):
        # A column that is written between others: its elements do not lie side by side, so each is a row of its own.
        sizes.append(1)
        for step in steps:
            step.append(1)
    return sizes, steps


def _broadcast(code: Code, index: int, type: str) -> Lanes:
    """One element, in every lane; it does not change along the innermost dimension."""
    memory = MEMORY[type]
    scalar = code.emit(type, f"load {memory}, ptr %q{index}, align {SIZES[type]}")
    if memory != type:
        scalar = code.emit(type, f"trunc {memory} {scalar.name} to {type}")
    first = code.emit(type, f"insertelement <{LANES} x {type}> poison, {type} {scalar.name}, i64 0")
    return code.emit(
        type, f"shufflevector {first.vector} {first.name}, {first.vector} poison, <{LANES} x i32> zeroinitializer"
    )


def load_masked(code: Code, base: str, index: str, type: str) -> Lanes:
    """The lanes of %mask from element `index` of `base` on; 0 in the others. Of bfloat16 numbers floats are made."""
    if type == "bfloat":
        return code.widen(load_masked(code, base, index, "i16"))
    memory = MEMORY[type]
    vector = f"<{LANES} x {memory}>"
    suffix = f"v{LANES}{_SUFFIX[memory]}"
    code.declared.add(f"declare {vector} @llvm.masked.load.{suffix}.p0(ptr, i32, <{LANES} x i1>, {vector})")
    place = code.emit("ptr", f"getelementptr {memory}, ptr {base}, i64 {index}")
    value = code.emit(
        memory,
        f"call {vector} @llvm.masked.load.{suffix}.p0(ptr {place.name}, i32 {SIZES[type]}, "
        f"<{LANES} x i1> %mask, {vector} zeroinitializer)",
    )
    return value if memory == type else code.cast("trunc", value, type)


def store_masked(code: Code, base: str, index: str, lanes: Lanes, type: str = "") -> None:
    """Write the lanes of %mask to `base` from element `index` on, as numbers of a type: their own, or bfloat16."""
    if type == "bfloat":
        lanes = code.cast("fptrunc", lanes, type)
    memory = MEMORY[lanes.type]
    if memory != lanes.type:
        lanes = code.cast("zext", lanes, memory)
    suffix = f"v{LANES}{_SUFFIX[memory]}"
    code.declared.add(f"declare void @llvm.masked.store.{suffix}.p0({lanes.vector}, ptr, i32, <{LANES} x i1>)")
    place = code.emit("ptr", f"getelementptr {memory}, ptr {base}, i64 {index}")
    code.lines.append(
        f"call void @llvm.masked.store.{suffix}.p0({lanes.vector} {lanes.name}, ptr {place.name}, "
        f"i32 {SIZES[lanes.type]}, <{LANES} x i1> %mask)"
    )


_SUFFIX = {"float": "f32", "double": "f64", "i32": "i32", "i64": "i64", "i8": "i8", "i16": "i16", "bfloat": "bf16"}


def _module(counts: list[int], strides: list[list[int]], types: list[str], hoisted: Code, code: Code,
            numbers: Numbers, *, spread: bool) -> str:  # fmt: skip
    """The function around the body: loops from the outermost dimension to the innermost, whose tail is masked."""
    outer = len(counts) - 1
    sizes = [numbers.size(count) for count in counts]
    steps = [[numbers.size(step) if step else "" for step in operand[:outer]] for operand in strides]
    # a thread takes a share of the outermost dimension; of the only one, in whole lanes
    unit = LANES if outer == 0 else 1
    units = numbers.size(-(-counts[0] // unit)) if spread else ""
    lines: list[str] = []
    if spread:
        lines += [*openmp_declarations(threads=True), "define void @run(ptr %operands) {",
                  started(0, threads=True), "  ret void", "}",
                  "define internal void @part(ptr %operands) #0 {", "entry:"]  # fmt: skip
    else:
        lines += ["define void @run(ptr %operands) #0 {", "entry:"]
    lines += numbers.lines()
    if spread:
        lines += [*numbered(threads=True),
                  "  %next = add i64 %me, 1",
                  f"  %fa = mul i64 %me, {units}", "  %from0 = udiv i64 %fa, %all",
                  f"  %ta = mul i64 %next, {units}", "  %to0 = udiv i64 %ta, %all",
                  f"  %from = mul i64 %from0, {unit}", f"  %to1 = mul i64 %to0, {unit}",
                  f"  %over = icmp ugt i64 %to1, {sizes[0]}",
                  f"  %to = select i1 %over, i64 {sizes[0]}, i64 %to1",
                  "  %some = icmp ult i64 %from, %to", "  br i1 %some, label %begin, label %done",
                  "begin:"]  # fmt: skip
        first, last = "%from", "%to"
    else:
        first, last = "0", sizes[0]
    for index in range(len(types)):
        lines.append(f"  %a{index} = getelementptr ptr, ptr %operands, i64 {index}")
        lines.append(f"  %p{index} = load ptr, ptr %a{index}, align 8")
    previous = "begin" if spread else "entry"
    bases = [f"%p{index}" for index in range(len(types))]
    for depth in range(outer):
        start = first if depth == 0 else "0"
        lines += [f"  br label %head{depth}", f"head{depth}:",
                  f"  %i{depth} = phi i64 [{start}, %{previous}], [%n{depth}, %latch{depth}]"]  # fmt: skip
        for index, step in enumerate(steps):
            if not step[depth]:
                continue
            lines.append(f"  %o{depth}_{index} = mul i64 %i{depth}, {step[depth]}")
            name = f"%b{depth}_{index}"
            memory = MEMORY[types[index]]
            lines.append(f"  {name} = getelementptr {memory}, ptr {bases[index]}, i64 %o{depth}_{index}")
            bases[index] = name
        previous = f"head{depth}"
    start, stop = (first, last) if outer == 0 else ("0", sizes[-1])
    # %q names must not depend on how deep the nest is
    for index in range(len(types)):
        memory = MEMORY[types[index]]
        lines.append(f"  %q{index} = getelementptr {memory}, ptr {bases[index]}, i64 0")
    lines += [f"  {line}" for line in hoisted.lines]
    lines += ["  br label %inner", "inner:", f"  %i = phi i64 [{start}, %{previous}], [%n, %inner]",
              f"  %left = sub i64 {stop}, %i", *MASK,
              *(f"  {line}" for line in code.lines),
              f"  %n = add i64 %i, {LANES}", f"  %more = icmp ult i64 %n, {stop}",
              f"  br i1 %more, label %inner, label %{f'latch{outer - 1}' if outer else 'done'}"]  # fmt: skip
    for depth in range(outer - 1, -1, -1):
        stop = last if depth == 0 else sizes[depth]
        after = f"latch{depth - 1}" if depth else "done"
        lines += [f"latch{depth}:", f"  %n{depth} = add i64 %i{depth}, 1",
                  f"  %more{depth} = icmp ult i64 %n{depth}, {stop}",
                  f"  br i1 %more{depth}, label %head{depth}, label %{after}"]  # fmt: skip
    lines += ["done:", "  ret void", "}", f"attributes #0 = {ATTRIBUTES}"]
    declared = sorted(hoisted.declared | code.declared)
    return "\n".join([*declared, *code.defined.values(), *lines]) + "\n"


def loop(name: str, start: str, stop: str, step: int | str, body: Sequence[str]) -> list[str]:
    """Lines around a body that has %name; it is run at least once."""
    return [f"  br label %{name}_from", f"{name}_from:", f"  br label %{name}_body", f"{name}_body:",
            f"  %{name} = phi i64 [{start}, %{name}_from], [%{name}_n, %{name}_next]", *body,
            f"  br label %{name}_next", f"{name}_next:", f"  %{name}_n = add i64 %{name}, {step}",
            f"  %{name}_more = icmp ult i64 %{name}_n, {stop}",
            f"  br i1 %{name}_more, label %{name}_body, label %{name}_done", f"{name}_done:"]  # fmt: skip


#: from how many elements are %left, which lanes are there: all, but at the end
MASK = (
    f"  %few = icmp ult i64 %left, {LANES}",  # before it is cut off: of 2**32 nothing would be left
    f"  %enough = select i1 %few, i64 %left, i64 {LANES}",
    "  %short = trunc i64 %enough to i32",
    f"  %first = insertelement <{LANES} x i32> poison, i32 %short, i64 0",
    f"  %limit = shufflevector <{LANES} x i32> %first, <{LANES} x i32> poison, <{LANES} x i32> zeroinitializer",
    f"  %mask = icmp ult <{LANES} x i32> <{', '.join(f'i32 {lane}' for lane in range(LANES))}>, %limit",
)
