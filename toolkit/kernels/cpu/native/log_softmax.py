"""The logarithm of softmax along rows: x - max(x) - log(sum(exp(x - max(x)))).

oneDNN has an algorithm for it whose logarithm is ten times as far off as that of the C library.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from toolkit.kernels.cpu.native.code import LANES, Code, Lanes, literal
from toolkit.kernels.cpu.native.functions import exp, log
from toolkit.kernels.cpu.native.loops import ATTRIBUTES, MASK, load_masked, loop, store_masked
from toolkit.kernels.cpu.native.numbers import Numbers
from toolkit.kernels.cpu.native.openmp import numbered, openmp_declarations, started

OPERANDS = 2  # the tensor and the result; numbers follow

WEIGHT = 30  # roughly how many instructions on lanes an element takes: exp, and three passes

#: what happens to lanes of a row, given what was found before and a number that the function is called with
_Step = Callable[[Code, Lanes, Lanes, Lanes], Lanes]


def log_softmax(rows: int, columns: int, type: str, threads: int) -> tuple[str, list[int]]:
    """A module with `void run(ptr operands)`: operands are the tensor and the result, both [rows, columns].

    A row with NaN or +inf is NaN; -inf stays what it is beside finite numbers.

    Args:
        type: "float" or "double".
        threads: that rows are spread over.

    Returns:
        the text, and the numbers that stand behind the operands.
    """
    numbers = Numbers(OPERANDS)
    count, row = numbers.size(rows), numbers.size(columns)
    spread, vector = threads > 1, f"<{LANES} x {type}>"
    nothing = f"{vector} zeroinitializer"
    declared: set[str] = set()
    least = f"splat ({type} {literal(-math.inf, type)})"
    passes = [
        *_pass("largest", type, least, _larger, declared),
        *_pass("total", type, "zeroinitializer", _added, declared),
        *_pass("write", type, "zeroinitializer", _written, declared),
    ]
    suffix = "f32" if type == "float" else "f64"
    maximum, added = (f"@llvm.vector.reduce.{name}.v{LANES}{suffix}" for name in ("fmax", "fadd"))
    code = Code()
    total = Lanes("%sums", type)
    shifted_by = log(code, total)
    declared |= code.declared
    body = [
        f"%start = mul i64 %row, {row}", f"%q = getelementptr {type}, ptr %x, i64 %start",
        f"%to = getelementptr {type}, ptr %y, i64 %start",
        f"%above = call {vector} @largest(ptr %q, ptr %to, i64 {row}, {nothing}, {nothing})",
        f"%most = call {type} {maximum}({vector} %above)", *_everywhere("max", "%most", vector, type),
        f"%parts = call {vector} @total(ptr %q, ptr %to, i64 {row}, {vector} %max, {nothing})",
        f"%sum = call reassoc {type} {added}({type} -0.0, {vector} %parts)",
        *_everywhere("sums", "%sum", vector, type), *code.lines,
        f"%done = call {vector} @write(ptr %q, ptr %to, i64 {row}, {vector} %max, {vector} {shifted_by.name})",
    ]  # fmt: skip
    head = ["%x = load ptr, ptr %operands", "%second = getelementptr ptr, ptr %operands, i64 1",
            "%y = load ptr, ptr %second", *numbers.lines()]  # fmt: skip
    lines = [
        *openmp_declarations(threads=spread), f"declare {type} {maximum}({vector})",
        f"declare {type} {added}({type}, {vector})", *sorted(declared), *passes,
        "define void @run(ptr %operands) #0 {", started(threads, threads=spread), "  ret void", "}",
        "define internal void @part(ptr %operands) #0 {", "entry:", *head, *numbered(threads=spread),
        f"%mine = mul i64 %me, {count}", "%from = udiv i64 %mine, %all", "%next = add i64 %me, 1",
        f"%theirs = mul i64 %next, {count}", "%until = udiv i64 %theirs, %all",
        "%some = icmp ult i64 %from, %until", "br i1 %some, label %begin, label %end", "begin:",
        *loop("row", "%from", "%until", 1, body), "br label %end", "end:", "ret void", "}",
        f"attributes #0 = {ATTRIBUTES}", "",
    ]  # fmt: skip
    return "\n".join(lines), numbers.given


def _larger(code: Code, x: Lanes, found: Lanes, _: Lanes) -> Lanes:
    """NaN is no larger than another; the sum will see it."""
    there = code.select(Lanes("%mask", "i1"), x, code.number(-math.inf, x.type))
    return code.select(code.compare("ogt", there, found), there, found)


def _added(code: Code, x: Lanes, found: Lanes, _: Lanes) -> Lanes:
    power = exp(code, code.sub(x, Lanes("%max", x.type)))
    return code.add(found, code.select(Lanes("%mask", "i1"), power, code.number(0.0, x.type)))


def _written(code: Code, x: Lanes, found: Lanes, shift: Lanes) -> Lanes:
    store_masked(code, "%to", "%i", code.sub(code.sub(x, Lanes("%max", x.type)), shift))
    return found


def _pass(name: str, type: str, first: str, step: _Step, declared: set[str]) -> list[str]:
    """A function that goes over a row, `LANES` elements at a time, and returns what it found.

    Args:
        first: what is found before the row.
        step: writes what happens to lanes of the row, given what was found so far and the last argument.
        declared: takes what the function calls.
    """
    vector, code = f"<{LANES} x {type}>", Code()
    found = step(code, load_masked(code, "%q", "%i", type), Lanes("%found", type), Lanes("%shift", type))
    declared |= code.declared
    return [
        f"define internal {vector} @{name}(ptr %q, ptr %to, i64 %columns, {vector} %max, {vector} %shift) #0 {{",
        "entry:", "br label %lanes", "lanes:", "%i = phi i64 [0, %entry], [%i1, %lanes]",
        f"%found = phi {vector} [{first}, %entry], [{found.name}, %lanes]", "%left = sub i64 %columns, %i", *MASK,
        *code.lines, f"%i1 = add i64 %i, {LANES}", "%more = icmp ult i64 %i1, %columns",
        "br i1 %more, label %lanes, label %done", "done:", f"ret {vector} {found.name}", "}",
    ]  # fmt: skip


def _everywhere(name: str, one: str, vector: str, type: str) -> list[str]:
    """A number in every lane of %name."""
    return [
        f"%{name}_first = insertelement {vector} poison, {type} {one}, i64 0",
        f"%{name} = shufflevector {vector} %{name}_first, {vector} poison, <{LANES} x i32> zeroinitializer",
    ]
