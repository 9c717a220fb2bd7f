"""Where a convolution sees nothing but zeros: there its output is exactly 0, which Winograd's algorithm only is nearly.

A tile has a word of bits, one for each pixel of its inputs, row by row: whether a channel of it is not 0. NaN is not 0.
"""

from __future__ import annotations

from toolkit.kernels.cpu.native.code import LANES, Code, Lanes
from toolkit.kernels.cpu.native.interpolation import Axis

_BITS = f"<{LANES} x i32>"


def marked(pixels: int) -> list[str]:
    """Put the word of tile %at into %marks; its pixels, with %depth channels, are those of the table."""
    assert pixels <= 64
    return ["  br label %z_from", "z_from:", "  br label %z_pixel",
            "z_pixel:", "  %z = phi i64 [0, %z_from], [%z_n, %z_next]",
            "  %z_word = phi i64 [0, %z_from], [%z_longer, %z_next]",
            "  %z_e = getelementptr ptr, ptr %table, i64 %z", "  %z_p = load ptr, ptr %z_e", "  br label %z_lanes",
            "z_lanes:", "  %z_c = phi i64 [0, %z_pixel], [%z_d, %z_lanes]",
            f"  %z_before = phi {_BITS} [zeroinitializer, %z_pixel], [%z_after, %z_lanes]",
            "  %z_q = getelementptr float, ptr %z_p, i64 %z_c", f"  %z_v = load {_BITS}, ptr %z_q, align 4",
            f"  %z_after = or {_BITS} %z_before, %z_v", f"  %z_d = add i64 %z_c, {LANES}",
            "  %z_wide = icmp ult i64 %z_d, %depth", "  br i1 %z_wide, label %z_lanes, label %z_next",
            # without their signs, for -0 is 0
            "z_next:", f"  %z_shifted = shl {_BITS} %z_after, splat (i32 1)",
            f"  %z_some = icmp ne {_BITS} %z_shifted, zeroinitializer",
            f"  %z_mask = bitcast <{LANES} x i1> %z_some to i{LANES}", f"  %z_any = icmp ne i{LANES} %z_mask, 0",
            "  %z_one = zext i1 %z_any to i64", "  %z_bit = shl i64 %z_one, %z",
            "  %z_longer = or i64 %z_word, %z_bit", "  %z_n = add i64 %z, 1",
            f"  %z_more = icmp ult i64 %z_n, {pixels}", "  br i1 %z_more, label %z_pixel, label %z_done",
            "z_done:", "  %z_at = getelementptr i64, ptr %marks, i64 %at",
            "  store i64 %z_longer, ptr %z_at"]  # fmt: skip


def sights(down: Axis, across: Axis) -> list[str]:
    """Put into %sights, for each output of tile %at, all bits set where its window sees something, else none.

    A tile of nothing but zeros is left as it is: the algorithm makes exact zeros of it, or NaN where filters are NaN.
    """
    window = sum(1 << (r * across.size + c) for r in range(down.window) for c in range(across.window))
    lines = ["  %z_at = getelementptr i64, ptr %marks, i64 %at", "  %z_word = load i64, ptr %z_at",
             "  %z_blank = icmp eq i64 %z_word, 0"]  # fmt: skip
    for index in range(down.tile * across.tile):
        row, column = divmod(index, across.tile)
        seen = window << (row * across.size + column)
        signed = seen - (1 << 64) if seen >> 63 else seen
        lines += [f"  %z_w{index} = and i64 %z_word, {signed}", f"  %z_n{index} = icmp ne i64 %z_w{index}, 0",
                  f"  %z_o{index} = or i1 %z_n{index}, %z_blank", f"  %z_s{index} = sext i1 %z_o{index} to i32",
                  f"  %z_p{index} = getelementptr i32, ptr %sights, i64 {index}",
                  f"  store i32 %z_s{index}, ptr %z_p{index}"]  # fmt: skip
    return lines


def seen(code: Code, value: Lanes, index: str) -> Lanes:
    """The value, or exactly 0 at an output that sees nothing; NaN from elsewhere in the tile does not get there."""
    place = code.emit("ptr", f"getelementptr i32, ptr %sights, i64 {index}").name
    bits = code.emit("i32", f"load i32, ptr {place}").name
    first = code.emit("i32", f"insertelement {_BITS} poison, i32 {bits}, i64 0").name
    every = code.emit("i32", f"shufflevector {_BITS} {first}, {_BITS} poison, {_BITS} zeroinitializer")
    return code.cast("bitcast", code.binary("and", code.cast("bitcast", value, "i32"), every), "float")
