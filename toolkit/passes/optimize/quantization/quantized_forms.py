"""The table of operations that TensorFlow has in 8 bits: which they are, what they take, and when they can be had."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolkit.graph import dtypes
from toolkit.graph.device import DeviceSpec
from toolkit.graph.dtypes import DType
from toolkit.graph.node import Node
from toolkit.passes.optimize.rewriting import Rewriting

_QUINT8, _QINT32 = dtypes.from_name("quint8"), dtypes.from_name("qint32")


@dataclass(frozen=True, slots=True)
class Form:
    """A float operation in 8 bits. Its inputs are the tensors, then their ranges, then it gives a tensor with a range.

    Attributes:
        op: the 8-bit operation (its OpDef says the order of its inputs).
        types: its attributes for types.
        copied: attributes that it takes over.
        plain: the inputs that are no numbers of the computation; they come where they came, or first (`axis_first`).
        wide: whether it gives sums in 32 bits, which are brought to 8 again.
        separate: whether all minima come before all maxima; else they come in pairs.
        axis_first: whether the last input becomes the first.
        needs_range: whether it refuses a range from 0 to 0.
        fits: what else the kernels of TensorFlow ask for.
    """

    op: str
    types: dict[str, DType]
    copied: tuple[str, ...] = ()
    plain: tuple[int, ...] = ()
    wide: bool = False
    separate: bool = False
    axis_first: bool = False
    needs_range: bool = False
    fits: Callable[[Rewriting, Node], bool] = lambda work, node: True


def _is_last(node: Node) -> bool:
    return node.text("data_format", "NHWC") == "NHWC"


def _windows(work: Rewriting, node: Node) -> bool:
    """Channels last, windows over height and width alone, no pads that are written out."""
    sizes = [node.attr_or(key, [1, 1, 1, 1]) for key in ("ksize", "strides")]
    return (
        _is_last(node)
        and node.text("padding") in ("SAME", "VALID")
        and all(len(each) == 4 and each[0] == each[3] == 1 for each in sizes)
    )


def _convolution(work: Rewriting, node: Node) -> bool:
    """One group, no dilations, one stride for both directions."""
    strides: list[int] = node.attr("strides")
    dilations: list[int] = node.attr_or("dilations", [1, 1, 1, 1])
    image, filter_ = (work.shape(source) for source in node.inputs)
    if not _windows(work, node) or strides[1] != strides[2] or any(each != 1 for each in dilations):
        return False
    if image.dims is None or filter_.dims is None or len(image.dims) != 4 or len(filter_.dims) != 4:
        return True  # wrong ranks are told by the kernel, of 8 bits or not
    return image.dims[3] is None or filter_.dims[2] is None or image.dims[3] == filter_.dims[2]


def _broadcasts(work: Rewriting, node: Node) -> bool:
    """Equal shapes, a single number, or a vector along the last dimension; TensorFlow has no other sums in 8 bits."""
    a, b = (work.shape(source) for source in node.inputs)
    if a.is_fully_defined and a == b and a.num_elements:
        return True
    for one, other in ((a, b), (b, a)):
        if one.num_elements == 1 and other.dims is not None and len(one.dims or ()) <= len(other.dims):
            return True
        if one.rank == 1 and one.is_fully_defined and (other.rank or 0) > 1 and one.dims == (other.dims or ())[-1:]:
            return True
    return False


def _matrices(work: Rewriting, node: Node) -> bool:
    return not (node.attr_or("grad_a", False) or node.attr_or("grad_b", False))


def _is_read(work: Rewriting, node: Node) -> bool:
    """Whether a reshape is for more than finding a range, as `quantize_nodes` does itself."""
    return work.is_kept(node) or any(user.op not in ("Min", "Max") for user in work.users(node))


_BOTH = {"T1": _QUINT8, "T2": _QUINT8}

#: float op -> its 8-bit form
FORMS: dict[str, Form] = {
    "Add": Form("QuantizedAdd", {**_BOTH, "Toutput": _QINT32}, wide=True, needs_range=True, fits=_broadcasts),
    "AddV2": Form("QuantizedAdd", {**_BOTH, "Toutput": _QINT32}, wide=True, needs_range=True, fits=_broadcasts),
    "AvgPool": Form("QuantizedAvgPool", {"T": _QUINT8}, ("ksize", "strides", "padding"), fits=_windows),
    "BiasAdd": Form(
        "QuantizedBiasAdd", {**_BOTH, "out_type": _QINT32}, wide=True, fits=lambda work, node: _is_last(node)
    ),
    "Concat": Form("QuantizedConcat", {"T": _QUINT8}, ("N",), plain=(0,), separate=True),
    "ConcatV2": Form(
        "QuantizedConcat", {"T": _QUINT8}, ("N",), plain=(-1,), separate=True, axis_first=True,
        fits=lambda work, node: node.inputs[-1].dtype.base is dtypes.int32,
    ),
    "Conv2D": Form(
        "QuantizedConv2D", {"Tinput": _QUINT8, "Tfilter": _QUINT8, "out_type": _QINT32}, ("strides", "padding"),
        wide=True, fits=_convolution,
    ),
    "MatMul": Form(
        "QuantizedMatMul", {**_BOTH, "Toutput": _QINT32}, ("transpose_a", "transpose_b"), wide=True, fits=_matrices
    ),
    "MaxPool": Form("QuantizedMaxPool", {"T": _QUINT8}, ("ksize", "strides", "padding"), fits=_windows),
    "Mul": Form("QuantizedMul", {**_BOTH, "Toutput": _QINT32}, wide=True, needs_range=True, fits=_broadcasts),
    "Relu": Form("QuantizedRelu", {"Tinput": _QUINT8}),
    "Relu6": Form("QuantizedRelu6", {"Tinput": _QUINT8}),
    "Reshape": Form("QuantizedReshape", {"T": _QUINT8}, ("Tshape",), plain=(1,), fits=_is_read),
    "ResizeBilinear": Form(
        "QuantizedResizeBilinear", {"T": _QUINT8}, ("align_corners", "half_pixel_centers"), plain=(1,)
    ),
}  # fmt: skip


def form_of(work: Rewriting, node: Node) -> Form | None:
    """The 8-bit form of a node: None where it has none, computes no float32, or is not for the CPU."""
    form = FORMS.get(node.op)
    if form is None or not node.inputs or any(dtype is not dtypes.float32 for dtype in node.output_types):
        return None
    plain = {index % len(node.inputs) for index in form.plain}
    for index, source in enumerate(node.inputs):
        if index not in plain and source.dtype is not dtypes.float32:
            return None
    if node.device and (DeviceSpec.parse(node.device).device_type or "CPU") != "CPU":
        return None  # only the CPU has kernels
    return form if form.fits(work, node) else None
