"""Kernels of neural networks as PTX: NVIDIA's assembler takes them for each kind of GPU, and all fit into registers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kernels.cuda.assembler import assembled
from toolkit.kernels.cuda import conversions
from toolkit.kernels.cuda.nn import (
    batch_norm,
    channel_sums,
    channels,
    convolutions,
    depthwise,
    lrn,
    norm_sums,
    pools,
    products,
    strided,
    strided_epilogue,
    transposes,
)
from toolkit.kernels.cuda.simt import ptx
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.elementwise.nests import NestStep
from toolkit.kernels.gpu.nn import norm_nests

pytest.importorskip("llvmlite")
_FLOATS = ("half", "bfloat", "float", "double")
_NARROW = _FLOATS[:2]

_SUMS = (channel_sums.SUM, norm_sums.MOMENTS, norm_sums.NORM_GRADIENTS)

KERNELS: dict[str, Callable[[], SimtKernel]] = {
    **{f"product {t}": lambda t=t: products.product_kernel(t, 1, (False, False), "i32") for t in _FLOATS},
    **{
        f"product {t} to float": lambda t=t: products.product_kernel(t, 1, (False, False), "i32", "float")
        for t in _FLOATS[:2]
    },
    **{
        f"convert {of[1]} to {of[2]}": lambda of=of: conversions.conversion_kernel(*of, "i32")
        for of in ((64, "float", "bfloat"), (3, "float", "half"), (1, "bfloat", "float"))
    },
    **{
        f"convolution {kind} of bfloat": lambda kind=kind: convolutions.convolution_kernel(
            kind, "bfloat", "i32", 2, "float"
        )
        for kind in ("forward", "input", "filter")
    },
    "relu_norm_gradients of bfloat": lambda: channel_sums.share_kernel(
        norm_sums.RELU_NORM_GRADIENTS, "bfloat", True, "i32"
    ),
    "product complex": lambda: products.product_kernel("double", 2, (True, False), "i64"),
    **{
        f"convolution {kind}": lambda kind=kind: convolutions.convolution_kernel(kind, "float", "i32", 2)
        for kind in ("forward", "input", "filter")
    },
    "convolution i32": lambda: convolutions.convolution_kernel("forward", "i32", "i64", 3),
    "depthwise forward": lambda: depthwise.forward_kernel("half", "i32", 2),
    "depthwise input": lambda: depthwise.input_kernel("float", "i32", 2),
    "depthwise forward of bfloat": lambda: depthwise.forward_kernel("bfloat", "i32", 2, "float"),
    "depthwise input of half": lambda: depthwise.input_kernel("half", "i64", 2, "float"),
    "depthwise filter": lambda: depthwise.filter_kernel("bfloat", "i64", 2),
    "transpose": lambda: transposes.transpose_kernel("i16", "i32"),
    **{
        f"epilogue {name}": lambda name=name: channels.epilogue_kernel(
            "float", "i32", False, True, "bias", "float", True, name, 0.0
        )
        for name in channels.ACTIVATIONS
    },
    **{
        f"strided epilogue {t}": lambda t=t: strided_epilogue.strided_epilogue_kernel(t, t, "i32", "GeluApproximate")
        for t in _FLOATS[1:3]
    },
    "strided epilogue without a bias": lambda: strided_epilogue.strided_epilogue_kernel("float", "", "i64", "Relu"),
    "epilogue affine": lambda: channels.epilogue_kernel(
        "half", "i32", True, False, "affine", "float", False, "Relu", 0.0
    ),
    **{
        f"{what.name} {'last' if last else 'first'}": lambda what=what, last=last: channel_sums.share_kernel(
            what, "half", last, "i32"
        )
        for what in _SUMS
        for last in (True, False)
    },
    **{f"{what.name} of shares": lambda what=what: channel_sums.merge_kernel(what, "half", "float") for what in _SUMS},
    "sums of a nest": lambda: channel_sums.share_kernel(
        norm_nests.summed_nest(
            (NestStep("AddN", (0, 1), "float32"), NestStep("ReluGrad", (3, 2), "float32")), "float32", 3, 4, (4, 3)
        ),
        "float",
        True,
        "i32",
    ),
    "sums of a nest of bfloat16": lambda: channel_sums.share_kernel(
        norm_nests.summed_nest(
            (NestStep("Cast", (0,), "float32"), NestStep("Neg", (1,), "float32"), NestStep("Cast", (2,), "bfloat16")),
            "bfloat16",
            1,
            3,
            (3,),
        ),
        "bfloat",
        False,
        "i64",
    ),
    "batch norm factors": lambda: batch_norm.affine_kernel("float"),
    "batch norm average": batch_norm.average_kernel,
    "batch norm": lambda: batch_norm.normalize_kernel("bfloat", "i32", True),
    "batch norm gradient": lambda: batch_norm.gradient_kernel("float", "i32", True, True),
    "batch norm gradient fixed": lambda: batch_norm.gradient_kernel("half", "i32", False, False),
    "max pool": lambda: pools.max_kernel("half", "i32", 2),
    "max pool taps": lambda: pools.tap_kernel("float", "i32", 2, ""),
    "max pool places": lambda: pools.tap_kernel("bfloat", "i32", 2, "example"),
    "max pool gradient": lambda: pools.max_gradient_kernel("float", "i32", 2),
    "max pool near": lambda: pools.near_gradient_kernel("half", "i32", 2),
    "max pool pick": lambda: pools.pick_kernel("double", "i32", 2),
    "average pool": lambda: pools.average_kernel("float", "i64", 2),
    "average pool gradient": lambda: pools.average_gradient_kernel("half", "i32", 2),
    "lrn": lambda: lrn.forward_kernel("i32"),
    "lrn gradient": lambda: lrn.gradient_kernel("i32"),
    "gather": lambda: strided.gather_kernel("float", 2, 3, 2, "i64"),
    "scatter": lambda: strided.scatter_kernel("half", 1, 4, "i32"),
}


@pytest.mark.parametrize("name", KERNELS)
def test_assembled_for_hopper(name: str) -> None:
    kernel = KERNELS[name]()
    found = assembled(ptx.write(kernel, (9, 0)), (9, 0))
    assert found.spills == 0 and found.local == 0, found
    assert found.shared <= kernel.shared_bytes + 64  # the assembler may align it


@pytest.mark.long
@pytest.mark.parametrize("capability", [(8, 0), (10, 0)], ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_assembled_for_others(name: str, capability: tuple[int, int]) -> None:
    assert assembled(ptx.write(KERNELS[name](), capability), capability).spills == 0
