"""Implementations that are preferred to oneDNN's own choice: the same numbers, and its choice where there is none."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import tolerance
from toolkit.kernels.cpu.onednn import windows
from toolkit.kernels.cpu.onednn.choices import preferred
from toolkit.kernels.cpu.onednn.library import library
from toolkit.kernels.cpu.onednn.memory import Memory, channels_last, dense, over
from toolkit.kernels.cpu.onednn.primitive import (
    FORWARD_INFERENCE,
    Arg,
    Binary,
    BinaryPost,
    DescriptorQuery,
    Eltwise,
    EltwisePost,
    Post,
    Primitive,
    execute,
    reorder,
)
from toolkit.kernels.tensors import F32
from toolkit.target.thresholds import PrimitiveThresholds

pytestmark = pytest.mark.skipif(library() is None, reason="there is no oneDNN here")


def _depthwise(batch: int, size: int, channels: int, kernel: int, stride: int) -> windows.ConvolutionGeometry:
    half, out = kernel // 2, (size + kernel // 2 * 2 - kernel) // stride + 1
    return windows.ConvolutionGeometry(
        (batch, size, size, channels), (kernel, kernel, channels, 1), (batch, out, out, channels), (stride, stride),
        (1, 1), ((half, half), (half, half)), channels, depthwise=True,
    )  # fmt: skip


def _run(
    geometry: windows.ConvolutionGeometry, posts: list[Post], given: dict[int, Any], prefer: str
) -> tuple[str, Any]:
    primitive = geometry.forward(bias=dense((geometry.y[-1],), F32), posts=posts, prefer=prefer)
    wanted = primitive.desc(DescriptorQuery.WEIGHTS)
    packed, made = np.zeros(wanted.size, np.uint8), np.zeros(geometry.y, np.float32)
    weights = Memory(wanted, packed)
    plain = Memory(geometry.filter_desc(), given[Arg.WEIGHTS])
    execute(reorder(plain.desc, wanted), [(Arg.SRC, plain), (Arg.DST, weights)])
    memories: list[tuple[int, Memory]] = [
        (Arg.SRC, Memory(channels_last(geometry.x, F32), given[Arg.SRC])),
        (Arg.WEIGHTS, weights),
        (Arg.BIAS, over(given[Arg.BIAS])),
        (Arg.DST, Memory(channels_last(geometry.y, F32), made)),
    ]
    if Arg.POST_OP in given:
        other = given[Arg.POST_OP]
        memories.append((Arg.POST_OP | Arg.SRC_1, Memory(channels_last(other.shape, F32), other)))
    execute(primitive, memories)
    return primitive.implementation, made


@pytest.mark.parametrize("post", ["none", "clip", "swish", "add"])
@pytest.mark.parametrize(
    "sizes", [(1, 28, 240, 5, 1), (8, 14, 48, 3, 2), (2, 11, 7, 3, 1), (3, 31, 64, 5, 2), (1, 60, 144, 3, 1)]
)
def test_the_same_numbers(sizes: tuple[int, ...], post: str) -> None:
    geometry, random = _depthwise(*sizes), np.random.default_rng(0)
    given: dict[int, Any] = {
        Arg.SRC: random.normal(size=geometry.x).astype(np.float32),
        Arg.WEIGHTS: random.normal(size=geometry.w).astype(np.float32),
        Arg.BIAS: random.normal(size=geometry.y[-1:]).astype(np.float32),
    }
    chains: dict[str, list[Post]] = {
        "none": [], "clip": [EltwisePost(Eltwise.CLIP_V2, 0.0, 6.0)], "swish": [EltwisePost(Eltwise.SWISH, 1.0)],
        "add": [BinaryPost(Binary.ADD, channels_last(geometry.y, F32))],
    }  # fmt: skip
    posts = chains[post]
    if post == "add":
        given[Arg.POST_OP] = random.normal(size=geometry.y).astype(np.float32)
    name, made = _run(geometry, posts, given, geometry.preferred(F32, F32, PrimitiveThresholds()))
    first, wanted = _run(geometry, posts, given, "")
    plain = {each: np.abs(value) for each, value in given.items() if each != Arg.POST_OP}
    _, products = _run(geometry, [], plain, "")
    added = np.abs(given[Arg.POST_OP]) if post == "add" else 0.0
    # the window's products and a bias, and swish, whose slope is at most 1.1 and whose exponential is good to 8 units
    tolerance.assert_within(made, wanted, 2 * tolerance.likely(sizes[3] ** 2 + 2 + 8) * 1.1 * (products + added))
    if first.startswith("brdgmm_dw:avx512_core"):
        assert name.startswith("jit_dw:avx512_core")


def test_what_is_preferred() -> None:
    assert not preferred((1, 14, 14, 384), PrimitiveThresholds(), depthwise=False, single=True)
    assert not preferred((1, 14, 14, 384), PrimitiveThresholds(), depthwise=True, single=False)
    assert preferred((1, 14, 14, 384), PrimitiveThresholds(), depthwise=True, single=True)
    assert not preferred((8, 112, 112, 96), PrimitiveThresholds(), depthwise=True, single=True)
    assert not preferred((1, 7, 7, 960), PrimitiveThresholds(), depthwise=True, single=True)


def test_a_preference_is_no_condition() -> None:
    desc = dense((64, 64), F32)
    for prefer in ("", "nothing starts so"):
        primitive = Primitive("softmax_forward", FORWARD_INFERENCE, 0x30000, desc, desc, 1, prefer=prefer)
        assert not primitive.implementation.startswith(("ref", "nothing"))
