"""Shapes of image ops."""

from __future__ import annotations

from toolkit.errors import GraphmillError
from toolkit.graph.shape import SCALAR, UNKNOWN, Dim, Shape
from toolkit.graph.shapes.registry import ShapeContext, merge_dims, shape_function


def _resized(c: ShapeContext, size_index: int, source: Shape) -> Shape:
    merge_dims(c.rank(size_index, 1)[0], 2, "length of size and 2")
    height, width = c.vector(size_index, 2) or (None, None)
    return Shape([source[0], height, width, source[3]])


@shape_function("ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor", "ResizeArea", "ScaleAndTranslate")
def resize(c: ShapeContext) -> list[Shape]:
    return [_resized(c, 1, c.rank(0, 4))]


@shape_function("QuantizedResizeBilinear")
def quantized_resize(c: ShapeContext) -> list[Shape]:
    return [_resized(c, 1, c.rank(0, 4)), SCALAR, SCALAR]


@shape_function("ResizeBilinearGrad", "ResizeBicubicGrad", "ScaleAndTranslateGrad")
def resize_grad(c: ShapeContext) -> list[Shape]:
    return [c.inputs[1]]


@shape_function("ResizeNearestNeighborGrad")
def nearest_grad(c: ShapeContext) -> list[Shape]:
    return [_resized(c, 1, c.rank(0, 4))]


@shape_function("CropAndResize")
def crop_and_resize(c: ShapeContext) -> list[Shape]:
    source, boxes, index = c.rank(0, 4), c.rank(1, 2), c.rank(2, 1)
    count = merge_dims(boxes[0], index[0], "numbers of boxes")
    merge_dims(boxes[1], 4, "columns of boxes and 4")
    height, width = c.vector(3, 2) or (None, None)
    return [Shape([count, height, width, source[3]])]


@shape_function("CropAndResizeGradImage")
def crop_grad_image(c: ShapeContext) -> list[Shape]:
    return [c.constant_shape(3).with_rank(4)]


@shape_function("CropAndResizeGradBoxes")
def crop_grad_boxes(c: ShapeContext) -> list[Shape]:
    return [c.inputs[2]]


@shape_function("RandomCrop")
def random_crop(c: ShapeContext) -> list[Shape]:
    source = c.rank(0, 3)
    height, width = c.vector(1, 2) or (None, None)
    return [Shape([height, width, source[2]])]


@shape_function("ExtractGlimpse", "ExtractGlimpseV2")
def extract_glimpse(c: ShapeContext) -> list[Shape]:
    if c.attr("uniform_noise") and c.attr("noise") not in (b"", b"uniform"):
        raise GraphmillError(f"uniform_noise is for the noise 'uniform'; the noise is '{c.text('noise')}'")
    source, offsets = c.rank(0, 4), c.rank(2, 2)
    batch = merge_dims(source[0], offsets[0], "batch sizes")
    height, width = c.vector(1, 2) or (None, None)
    return [Shape([batch, height, width, source[3]])]


@shape_function("AdjustContrastv2", "AdjustHue", "AdjustSaturation", "AdjustContrast")
def adjust(c: ShapeContext) -> list[Shape]:
    return [c.rank_at_least(0, 3)]


@shape_function("RGBToHSV", "HSVToRGB")
def color(c: ShapeContext) -> list[Shape]:
    source = c.rank_at_least(0, 1)
    if source.dims is None:
        return [UNKNOWN]
    merge_dims(source.dims[-1], 3, "channels and 3")
    return [Shape([*source.dims[:-1], 3])]


@shape_function("DrawBoundingBoxes", "DrawBoundingBoxesV2")
def draw_boxes(c: ShapeContext) -> list[Shape]:
    return [c.rank_at_least(0, 3)]


def _decoded(c: ShapeContext) -> Shape:
    c.rank(0, 0)
    return Shape([None, None, _channels(c)])


def _channels(c: ShapeContext) -> Dim:
    """The attribute `channels`; 0 is for what the file has.

    Raises:
        GraphmillError: it is negative.
    """
    channels: int = c.attr("channels")
    if channels < 0:
        raise GraphmillError(f"attribute 'channels' must not be negative; it is {channels}")
    return channels or None


@shape_function("DecodeJpeg", "DecodePng", "DecodeBmp", "DecodeAndCropJpeg", "DecodeWebP")
def decode(c: ShapeContext) -> list[Shape]:
    if c.node.op == "DecodeWebP":
        c.rank(0, 0)
        return [Shape([None, None, None, _channels(c)])]
    return [_decoded(c)]


@shape_function("DecodeImage")
def decode_image(c: ShapeContext) -> list[Shape]:
    c.rank(0, 0)
    channels = _channels(c)
    return [UNKNOWN if c.attr("expand_animations") else Shape([None, None, channels])]


@shape_function("DecodeGif")
def decode_gif(c: ShapeContext) -> list[Shape]:
    c.rank(0, 0)
    return [Shape([None, None, None, 3])]


@shape_function("ExtractJpegShape")
def jpeg_shape(c: ShapeContext) -> list[Shape]:
    c.rank(0, 0)
    return [Shape([3])]


@shape_function("EncodeJpeg")
def encode_jpeg(c: ShapeContext) -> list[Shape]:
    c.rank(0, 3)
    return [SCALAR]


@shape_function("EncodePng")
def encode_png(c: ShapeContext) -> list[Shape]:
    return [c.rank_at_least(0, 3).slice(0, -3)]


@shape_function("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionWithOverlaps")
def non_max_suppression(c: ShapeContext) -> list[Shape]:
    c.rank(0, 2)
    return [Shape([None])]


@shape_function("NonMaxSuppressionV4", "NonMaxSuppressionV5")
def non_max_suppression_padded(c: ShapeContext) -> list[Shape]:
    size = c.integer(2) if c.attr("pad_to_max_output_size") else None
    chosen = Shape([size])
    return [chosen, chosen, SCALAR] if c.node.op.endswith("V5") else [chosen, SCALAR]


@shape_function("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", "StatelessSampleDistortedBoundingBox")
def sample_box(c: ShapeContext) -> list[Shape]:
    return [Shape([3]), Shape([3]), Shape([1, 1, 4])]


@shape_function("AudioSpectrogram")
def audio_spectrogram(c: ShapeContext) -> list[Shape]:
    """[samples, channels] to [channels, windows, frequencies]."""
    source, window, stride = c.rank(0, 2), c.attr("window_size"), c.attr("stride")
    if window <= 1 or stride <= 0:
        raise GraphmillError(f"window_size must be over 1 and stride over 0; they are {window} and {stride}")
    samples = source[0]
    count = None if samples is None else max(0, (samples - window) // stride + 1)
    return [Shape([source[1], count, 1 + (1 << (window - 1).bit_length()) // 2])]


@shape_function("DecodeWav")
def decode_wav(c: ShapeContext) -> list[Shape]:
    c.rank(0, 0)
    samples, channels = c.attr("desired_samples"), c.attr("desired_channels")
    if samples < -1 or channels < -1:
        raise GraphmillError(f"desired samples and channels must be at least -1; they are {samples} and {channels}")
    return [Shape([None if samples < 0 else samples, None if channels < 0 else channels]), SCALAR]


@shape_function("EncodeWav")
def encode_wav(c: ShapeContext) -> list[Shape]:
    c.rank(0, 2)
    c.rank(1, 0)
    return [SCALAR]


@shape_function("QuantizeV2")
def quantize(c: ShapeContext) -> list[Shape]:
    ends = SCALAR if _channel_axis(c) == -1 else UNKNOWN
    return [c.inputs[0], ends, ends]


@shape_function("Dequantize")
def dequantize(c: ShapeContext) -> list[Shape]:
    _channel_axis(c)
    return [c.inputs[0]]


@shape_function("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
def quantize_and_dequantize(c: ShapeContext) -> list[Shape]:
    _channel_axis(c)
    return [c.inputs[0]]


@shape_function("QuantizeAndDequantizeV4Grad")
def quantize_and_dequantize_gradient(c: ShapeContext) -> list[Shape]:
    _channel_axis(c, first=2)
    ends = c.inputs[2].merge(c.inputs[3])
    return [c.inputs[0].merge(c.inputs[1]), ends, ends]


def _channel_axis(c: ShapeContext, first: int = 1) -> int:
    """The axis along which ranges differ, -1 for none, as the ends of the ranges must fit it.

    Args:
        first: the input that holds the lower ends; the upper ones follow.

    Raises:
        GraphmillError: it is below -1 or outside of the input, or the ranges have another rank or size.
    """
    axis: int = c.attr("axis")
    ends = UNKNOWN
    if axis < -1:
        raise GraphmillError(f"axis must be at least -1; it is {axis}")
    rank = c.inputs[0].rank
    if rank is not None and axis >= rank:
        raise GraphmillError(f"axis must be below {rank}, the rank of the input; it is {axis}")
    for index in (first, first + 1):
        ends = c.rank(index, 0 if axis == -1 else 1)
    if axis != -1:  # TensorFlow compares the upper ends; the kernel compares both
        merge_dims(c.inputs[0][axis], ends[0], "channels and the length of their ranges")
    return axis


@shape_function("QuantizedRelu", "QuantizedRelu6", "QuantizedReluX", "Requantize")
def quantized_same(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0], SCALAR, SCALAR]


@shape_function("FakeQuantWithMinMaxVarsGradient")
def fake_quant_vars_gradient(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0].merge(c.inputs[1]), SCALAR, SCALAR]


@shape_function("FakeQuantWithMinMaxVarsPerChannelGradient")
def fake_quant_channel_gradient(c: ShapeContext) -> list[Shape]:
    both = c.rank_at_least(0, 1).merge(c.inputs[1])
    last: Dim = both.dims[-1] if both.dims else None
    for index in (2, 3):
        last = merge_dims(last, c.rank(index, 1)[0], "channels and the length of min and max")
    return [both, Shape([last]), Shape([last])]


@shape_function("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def projective_transform(c: ShapeContext) -> list[Shape]:
    return [_resized(c, 2, c.rank(0, 4))]


@shape_function("CombinedNonMaxSuppression")
def combined_suppression(c: ShapeContext) -> list[Shape]:
    """Boxes, scores, classes of so many per image, and how many of them are meant."""
    boxes, scores = c.rank(0, 4), c.rank(1, 3)
    for index in range(2, 6):
        c.rank(index, 0)
    merge_dims(boxes[3], 4, "numbers of a box and 4")
    merge_dims(boxes[1], scores[1], "boxes and scores")
    classes = boxes[2]
    if classes is not None and classes != 1 and scores[2] is not None and classes != scores[2]:
        raise GraphmillError(f"boxes are for 1 class or all {scores[2]}, not {classes}")
    batch, total, each = boxes[0], c.integer(3), c.integer(2)
    if c.attr("pad_per_class"):
        count = scores[2]
        of_all = None if each is None or count is None else each * count
        total = None if total is None or of_all is None else min(total, of_all)
    kept = Shape([batch, total])
    return [Shape([batch, total, 4]), kept, kept, Shape([batch])]


@shape_function("GenerateBoundingBoxProposals")
def proposals(c: ShapeContext) -> list[Shape]:
    batch, count = c.rank(0, 4)[0], c.attr("post_nms_topn")
    for index, rank in ((1, 4), (2, 2), (3, 3), (4, 0), (5, 0), (6, 0)):
        c.rank(index, rank)
    return [Shape([batch, count, 4]), Shape([batch, count])]
