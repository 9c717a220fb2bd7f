"""Sums over a run of axes: [outer, reduced, inner] to [outer, inner]."""

from __future__ import annotations

from toolkit.kernels.cpu.native.code import LANES, SIZES
from toolkit.kernels.cpu.native.loops import ATTRIBUTES, MASK
from toolkit.kernels.cpu.native.numbers import Numbers

OPERANDS = 2  # the tensor and the result; numbers follow

_CHAINS = 8  # partial sums that run side by side: the processor adds faster, and errors grow more slowly


def sums(outer: int, reduced: int, inner: int, type: str, factor: float) -> tuple[str, list[int]]:
    """A module with `void run(ptr operands)`: operands are the tensor and the result, which is factor times the sum.

    Args:
        type: "float" or "double".

    Returns:
        the text, and the numbers that stand behind the operands: the text depends on few of the sizes.
    """
    numbers = Numbers(OPERANDS)
    if inner > 1:
        return _columns(outer, reduced, inner, type, factor, numbers), numbers.given
    return _rows(outer, reduced, type, factor, numbers), numbers.given


def _columns(outer: int, reduced: int, inner: int, type: str, factor: float, numbers: Numbers) -> str:
    """Lanes are neighbours along the inner axis; rows are added.

    In the text are how many chains there are, and how many rows are left over by them.
    """
    vector = f"<{LANES} x {type}>"
    chains = min(_CHAINS, reduced)
    left = reduced % chains
    outer_size, inner_size, plane = numbers.size(outer), numbers.size(inner), numbers.size(reduced * inner)
    whole, scale = numbers.size(reduced - left), numbers.lanes(factor, type)
    rests = [numbers.size((reduced - left + number) * inner) for number in range(left)]
    store = f"call void @llvm.masked.store.v{LANES}{_suffix(type)}.p0"
    lines = [*_head(vector, type), *numbers.lines(), "br label %outer", "outer:",
             "%a = phi i64 [0, %entry], [%a1, %outer1]", f"%from = mul i64 %a, {plane}",
             f"%to = mul i64 %a, {inner_size}", "br label %inner", "inner:",
             "%j = phi i64 [0, %outer], [%j1, %inner1]", f"%left = sub i64 {inner_size}, %j",
             *MASK,
             "%start = add i64 %from, %j", "br label %row", "row:",
             "%i = phi i64 [0, %inner], [%i1, %row]"]  # fmt: skip
    lines += [f"%acc{k} = phi {vector} [zeroinitializer, %inner], [%sum{k}, %row]" for k in range(chains)]
    for k in range(chains):
        lines += [f"%i_{k} = add i64 %i, {k}", f"%o_{k} = mul i64 %i_{k}, {inner_size}",
                  f"%p_{k} = add i64 %start, %o_{k}",
                  f"%q_{k} = getelementptr {type}, ptr %x, i64 %p_{k}",
                  f"%v_{k} = {_load(vector, f'%q_{k}', '%mask', type)}",
                  f"%sum{k} = fadd {vector} %acc{k}, %v_{k}"]  # fmt: skip
    lines += [f"%i1 = add i64 %i, {chains}", f"%again = icmp ult i64 %i1, {whole}",
              "br i1 %again, label %row, label %rest", "rest:"]  # fmt: skip
    names = [f"%sum{k}" for k in range(chains)]
    for number, rest in enumerate(rests):
        lines += [f"%p{number} = add i64 %start, {rest}",
                  f"%q{number} = getelementptr {type}, ptr %x, i64 %p{number}",
                  f"%v{number} = {_load(vector, f'%q{number}', '%mask', type)}"]  # fmt: skip
        names.append(f"%v{number}")
    lines += _tree(names, vector)
    lines += [f"%scaled = fmul {vector} %total, {scale.name}",
              "%at = add i64 %to, %j", f"%place = getelementptr {type}, ptr %y, i64 %at",
              f"{store}({vector} %scaled, ptr %place, i32 {SIZES[type]}, <{LANES} x i1> %mask)",
              "br label %inner1", "inner1:", f"%j1 = add i64 %j, {LANES}", f"%more = icmp ult i64 %j1, {inner_size}",
              "br i1 %more, label %inner, label %outer1", "outer1:", "%a1 = add i64 %a, 1",
              f"%next = icmp ult i64 %a1, {outer_size}", "br i1 %next, label %outer, label %done",
              *_tail()]  # fmt: skip
    return "\n".join(lines)


def _rows(outer: int, reduced: int, type: str, factor: float, numbers: Numbers) -> str:
    """Lanes are neighbours along the reduced axis, and added at the end."""
    outer_size, row, scale = numbers.size(outer), numbers.size(reduced), numbers.scalar(factor, type)
    vector = f"<{LANES} x {type}>"
    added = f"@llvm.vector.reduce.fadd.v{LANES}{_suffix(type)}"
    lines = [*_head(vector, type), *numbers.lines(), "br label %outer", "outer:",
             "%a = phi i64 [0, %entry], [%a1, %sum]",
             f"%start = mul i64 %a, {row}", "br label %inner", "inner:",
             "%j = phi i64 [0, %outer], [%j1, %inner]",
             f"%acc = phi {vector} [zeroinitializer, %outer], [%acc1, %inner]",
             f"%left = sub i64 {row}, %j", *MASK, "%p = add i64 %start, %j",
             f"%q = getelementptr {type}, ptr %x, i64 %p", f"%v = {_load(vector, '%q', '%mask', type)}",
             f"%acc1 = fadd {vector} %acc, %v", f"%j1 = add i64 %j, {LANES}", f"%more = icmp ult i64 %j1, {row}",
             "br i1 %more, label %inner, label %sum", "sum:",
             f"%total = call reassoc {type} {added}({type} -0.0, {vector} %acc1)",
             f"%scaled = fmul {type} %total, {scale}", f"%place = getelementptr {type}, ptr %y, i64 %a",
             f"store {type} %scaled, ptr %place", "%a1 = add i64 %a, 1", f"%next = icmp ult i64 %a1, {outer_size}",
             "br i1 %next, label %outer, label %done", *_tail()]  # fmt: skip
    return "\n".join(lines)


def _head(vector: str, type: str) -> list[str]:
    suffix = _suffix(type)
    return [
        f"declare {vector} @llvm.masked.load.v{LANES}{suffix}.p0(ptr, i32, <{LANES} x i1>, {vector})",
        f"declare void @llvm.masked.store.v{LANES}{suffix}.p0({vector}, ptr, i32, <{LANES} x i1>)",
        f"declare {type} @llvm.vector.reduce.fadd.v{LANES}{suffix}({type}, {vector})",
        "define void @run(ptr %operands) #0 {", "entry:", "%x = load ptr, ptr %operands",
        "%second = getelementptr ptr, ptr %operands, i64 1", "%y = load ptr, ptr %second",
    ]  # fmt: skip


def _tail() -> list[str]:
    return ["done:", "ret void", "}", f"attributes #0 = {ATTRIBUTES}", ""]


def _suffix(type: str) -> str:
    return "f32" if type == "float" else "f64"


def _load(vector: str, place: str, mask: str, type: str) -> str:
    return (
        f"call {vector} @llvm.masked.load.v{LANES}{_suffix(type)}.p0(ptr {place}, i32 {SIZES[type]}, "
        f"<{LANES} x i1> {mask}, {vector} zeroinitializer)"
    )


def _tree(names: list[str], vector: str) -> list[str]:
    """Add values pairwise; the sum is %total."""
    lines: list[str] = []
    level = 0
    while len(names) > 1:
        after: list[str] = []
        for index in range(0, len(names) - 1, 2):
            name = f"%tree{level}_{index}"
            lines.append(f"{name} = fadd {vector} {names[index]}, {names[index + 1]}")
            after.append(name)
        names = after + names[len(names) - len(names) % 2 :]
        level += 1
    lines.append(f"%total = fadd {vector} {names[0]}, splat ({vector[vector.index('x ') + 2 : -1]} -0.0)")
    return lines
