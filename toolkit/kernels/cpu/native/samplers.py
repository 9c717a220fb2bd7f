"""Candidate samplers in one compiled call: random words, classes, repetitions refused, expected counts.

The functions of the C library are called as TensorFlow calls them, so that every bit is the same.
"""

from __future__ import annotations

import functools
import struct

import numpy as np

from toolkit.kernels.cpu.memory.addresses import address, record
from toolkit.kernels.cpu.native.compiler import Function, compiler, is_enabled, library_functions
from toolkit.kernels.random.philox import KEY_STEPS, MULTIPLIERS, Philox
from toolkit.kernels.types import Array

#: of the compiled function, in order: the generator's key and counter; how many classes there are, and the logarithm
#: of one more; how many samples are wanted; a table of the samples found, with a power of 2 of places that are -1, and
#: one less than that power (-1 where samples may be the same); the true classes and how many; where results go
_ARGUMENTS = {
    "key": "i64", "low": "i64", "high": "i64", "classes": "i64", "scale": "double", "wanted": "i64", "seen": "ptr",
    "places": "i64", "known": "ptr", "truths": "i64", "sampled": "ptr", "expected_known": "ptr", "expected": "ptr",
}  # fmt: skip
_LIBRARY = {"exp": "double", "log": "double", "log1pf": "float", "expm1f": "float"}
_U64 = (1 << 64) - 1


def sample(kind: str, source: Philox, classes: int, scale: float, known: Array, wanted: int, released: int,
           *, unique: bool) -> tuple[Array, Array, Array] | None:  # fmt: skip
    """Draw classes.

    Args:
        kind: "uniform" or "log uniform".
        source: where the draws begin.
        classes: how many there are.
        scale: of log uniform samples, log(classes + 1).
        known: int64 [batch, true], the true classes.
        wanted: how many samples; not more than `classes` where they must be different.
        released: samples from which on other threads are let in.

    Returns:
        The samples int64 [wanted], the expected counts of `known` and of the samples in float32; None where this
        cannot be done.
    """
    function = _function(kind) if wanted and is_enabled() else None
    if function is None:
        return None
    known = np.ascontiguousarray(known)
    sampled, expected = np.empty(wanted, np.int64), np.empty(wanted, np.float32)
    expected_known = np.empty(known.shape, np.float32)
    seen = np.full(1 << (2 * wanted).bit_length() if unique else 1, -1, np.int64)
    arguments = record(
        _signed(source.key), _signed(source.counter & _U64), _signed(source.counter >> 64), classes, _bits(scale),
        wanted, address(seen, seen.nbytes), seen.size - 1 if unique else -1, address(known, known.nbytes), known.size,
        address(sampled, 8 * wanted), address(expected_known, 4 * known.size), address(expected, 4 * wanted),
    )  # fmt: skip
    (function.call_held if wanted < released else function.call)(arguments)
    return sampled, expected_known, expected


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _bits(number: float) -> int:
    return struct.unpack("<q", struct.pack("<d", number))[0]


@functools.cache
def _function(kind: str) -> Function | None:
    machine, symbols = compiler(), library_functions(_LIBRARY)
    if machine is None or not symbols:
        return None
    return machine.function(_module(*_KINDS[kind]), symbols)


#: %class from %a and %b, the two random words of a draw in i64; %p, the probability of class %c
_UNIFORM = (
    """
  %upper = shl i64 %b, 32
  %both = or i64 %upper, %a
  %class = urem i64 %both, %classes""",
    """
  %whole = sitofp i64 %classes to double
  %each = fdiv double 1.0, %whole
  %p = fptrunc double %each to float""",
)
_LOG_UNIFORM = (
    """
  %twenty = and i64 %a, 1048575
  %upper = shl i64 %twenty, 32
  %both = or i64 %upper, %b
  %integer = uitofp i64 %both to double
  %uniform = fdiv double %integer, 4503599627370496.0
  %power = fmul double %uniform, %scale
  %raised = call double @exp(double %power)
  %rounded = fptosi double %raised to i64
  %above = sub i64 %rounded, 1
  %class = srem i64 %above, %classes""",
    """
  %number = sitofp i64 %c to double
  %one = fadd double %number, 1.0
  %two = fadd double %number, 2.0
  %ratio = fdiv double %two, %one
  %logarithm = call double @log(double %ratio)
  %share = fdiv double %logarithm, %scale
  %p = fptrunc double %share to float""",
)
_KINDS = {"uniform": _UNIFORM, "log uniform": _LOG_UNIFORM}


def _block() -> str:
    """A function that stores the four words of a generator's block (`Philox.blocks`)."""
    lines = ["  %k0_0 = trunc i64 %key to i32", "  %kh = lshr i64 %key, 32", "  %k1_0 = trunc i64 %kh to i32"]
    for index in range(4):
        lines += [f"  %s{index} = lshr i128 %counter, {32 * index}", f"  %c{index}_0 = trunc i128 %s{index} to i32"]
    for round_ in range(10):
        new = round_ + 1
        for part, other, multiplier in ((0, 2, MULTIPLIERS[0]), (2, 0, MULTIPLIERS[1])):
            lines += [
                f"  %w{part}_{round_} = zext i32 %c{part}_{round_} to i64",
                f"  %p{part}_{round_} = mul i64 %w{part}_{round_}, {multiplier}",
                f"  %h{part}_{round_} = lshr i64 %p{part}_{round_}, 32",
                f"  %u{part}_{round_} = trunc i64 %h{part}_{round_} to i32",
                f"  %c{other + 1}_{new} = trunc i64 %p{part}_{round_} to i32",
                f"  %x{part}_{round_} = xor i32 %u{part}_{round_}, %c{other + 1}_{round_}",
                f"  %c{other}_{new} = xor i32 %x{part}_{round_}, %k{other // 2}_{round_}",
            ]
        lines += [f"  %k{half}_{new} = add i32 %k{half}_{round_}, {step}" for half, step in enumerate(KEY_STEPS)]
    for index in range(4):
        lines += [f"  %o{index} = getelementptr i32, ptr %out, i64 {index}", f"  store i32 %c{index}_10, ptr %o{index}"]
    return "\n".join(["define internal void @block(i64 %key, i128 %counter, ptr %out) {", *lines, "  ret void", "}"])


def _module(draw: str, probability: str) -> str:
    declared = "\n".join(f"declare {kind} @{name}({kind})" for name, kind in _LIBRARY.items())
    loaded = "\n".join(
        f"  %{name}_ = getelementptr i64, ptr %arguments, i64 {index}\n  %{name} = load {kind}, ptr %{name}_"
        for index, (name, kind) in enumerate(_ARGUMENTS.items())
    )
    return f"""
{declared}
{_block()}
define void @run(ptr %arguments) {{
entry:
{loaded}
  %words = alloca [4 x i32]
  %l = zext i64 %low to i128
  %h = zext i64 %high to i128
  %shifted = shl i128 %h, 64
  %counter = or i128 %shifted, %l
  %unique = icmp sge i64 %places, 0
  br label %draw
draw:
  %n = phi i64 [0, %entry], [%n, %repeated], [%nn, %take]
  %t = phi i64 [0, %entry], [%tries, %repeated], [%tries, %take]
  %odd = and i64 %t, 1
  %is_odd = icmp ne i64 %odd, 0
  br i1 %is_odd, label %ready, label %fresh
fresh:
  %blocks = lshr i64 %t, 1
  %ahead = zext i64 %blocks to i128
  %now = add i128 %counter, %ahead
  call void @block(i64 %key, i128 %now, ptr %words)
  br label %ready
ready:
  %first = shl i64 %odd, 1
  %second = or i64 %first, 1
  %a_ = getelementptr i32, ptr %words, i64 %first
  %b_ = getelementptr i32, ptr %words, i64 %second
  %a32 = load i32, ptr %a_
  %b32 = load i32, ptr %b_
  %a = zext i32 %a32 to i64
  %b = zext i32 %b32 to i64{draw}
  %tries = add i64 %t, 1
  %mixed = mul i64 %class, -7046029254386353131
  %folded = lshr i64 %mixed, 20
  br i1 %unique, label %look, label %take
look:
  %hash = phi i64 [%folded, %ready], [%farther, %other]
  %at = and i64 %hash, %places
  %place = getelementptr i64, ptr %seen, i64 %at
  %there = load i64, ptr %place
  %is_free = icmp eq i64 %there, -1
  br i1 %is_free, label %new, label %taken
taken:
  %is_same = icmp eq i64 %there, %class
  br i1 %is_same, label %repeated, label %other
other:
  %farther = add i64 %hash, 1
  br label %look
repeated:
  br label %draw
new:
  store i64 %class, ptr %place
  br label %take
take:
  %target = getelementptr i64, ptr %sampled, i64 %n
  store i64 %class, ptr %target
  %nn = add i64 %n, 1
  %missing = icmp ult i64 %nn, %wanted
  br i1 %missing, label %draw, label %count
count:
  call void @counts(ptr %known, ptr %expected_known, i64 %truths, i64 %classes, double %scale, i64 %wanted, i64 %tries)
  call void @counts(ptr %sampled, ptr %expected, i64 %wanted, i64 %classes, double %scale, i64 %wanted, i64 %tries)
  ret void
}}
define internal void @counts(ptr %of, ptr %out, i64 %count, i64 %classes, double %scale, i64 %wanted, i64 %tries) {{
entry:
  %is_first_try = icmp eq i64 %wanted, %tries
  %times = sitofp i64 %tries to float
  br label %head
head:
  %i = phi i64 [0, %entry], [%in, %store]
  %left = icmp ult i64 %i, %count
  br i1 %left, label %body, label %done
body:
  %c_ = getelementptr i64, ptr %of, i64 %i
  %c = load i64, ptr %c_{probability}
  %plain = fmul float %p, %times
  br i1 %is_first_try, label %store, label %stable
stable:
  %negative = fneg float %p
  %missed = call float @log1pf(float %negative)
  %all = fmul float %times, %missed
  %hit = call float @expm1f(float %all)
  %positive = fneg float %hit
  br label %store
store:
  %e = phi float [%plain, %body], [%positive, %stable]
  %o_ = getelementptr float, ptr %out, i64 %i
  store float %e, ptr %o_
  %in = add i64 %i, 1
  br label %head
done:
  ret void
}}
"""
