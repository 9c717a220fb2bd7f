"""Where single ops end otherwise than in TensorFlow on purpose, and why."""

from __future__ import annotations

import re

#: what TensorFlow takes and we refuse: it reads or writes what is no part of a tensor, or gives what nobody wrote
REFUSED: dict[str, str] = {
    "AvgPool3DGrad": "the sizes of windows' places in a gradient of another shape are read beside it",
    "DataFormatDimMap": "the least int32 is looked up beside the table of dimensions",
    "Conv3DBackpropFilterV2": "as AvgPool3DGrad",
    "FractionalAvgPoolGrad": "pooling sequences are looked up beyond the image",
    "ImageProjectiveTransformV2": "a mode that there is not leaves the image as memory was",
    "ImageProjectiveTransformV3": "as ImageProjectiveTransformV2",
    "QuantizedConv2D": "a range without an end has no number for 0",
    "QuantizedRelu": "as QuantizedConv2D",
    "QuantizedRelu6": "as QuantizedConv2D",
    "QuantizedReluX": "as QuantizedConv2D",
    "RandomIndexShuffle": "keys of an odd number of rounds, or of fewer than 4, are not what the cipher is defined for",
    "RaggedCross": "a value that no index belongs to is placed by what lies beside the indices",
    "RaggedCountSparseOutput": "splits of any shape are taken for a vector",
    "RaggedTensorToVariantGradient": "a variant that holds no ragged tensor counts as an empty one",
    "SparseReorder": "indices beyond the dense shape are put in an order that nothing defines",
    "TemporaryVariable": "a variable of no shape has the shape of a number that nobody wrote",
    "TensorListPopBack": "what is no shape is not looked at where it is not needed",
    "FixedLengthRecordReaderV2": "as TFRecordReaderV2",
    "TFRecordReaderV2": "a compression that there is not is refused when a file is read",
    "StatelessRandomUniformInt": "a counter of fewer words is read beyond its end",
    "StatelessRandomUniformIntV2": "a counter of fewer words is read beyond its end",
}
REFUSED |= dict.fromkeys(
    ("SparseReduceMax", "SparseReduceMaxSparse", "SparseReduceSum", "SparseReduceSumSparse"),
    "an index beyond the dense shape belongs to no row that is reduced",
)
REFUSED |= dict.fromkeys(
    ("InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad"),
    "a gradient of another shape is read number by number, as far as there are any",
)
#: what is said of any op that is refused on purpose: names of resources are text here
REFUSED_SAYING = re.compile(r"attribute '\w+' of \w+ is not UTF-8 text")
#: what TensorFlow refuses and we take: the op is defined, and something beside it is missing there
TAKEN: dict[str, str] = {
    "ChooseFastestDataset": "the elements of all inputs are said to be the same: we look at the first",
    "EnsureShape": "TensorFlow takes a shape that is not known for one of rank -1",
    "ExperimentalChooseFastestDataset": "as ChooseFastestDataset",
    "Softmax": "oneDNN's takes at most 5 dimensions, and TensorFlow says ABORTED",
    "MutableDenseHashTable": "TensorFlow looks for an input that only the second version of the op has",
}
#: whose values are not compared: TensorFlow's are of memory that nobody wrote, or of chance
VALUES: dict[str, str] = {
    "BlockLSTM": "the gates of steps beyond the last are as memory was",
    "BlockLSTMV2": "as BlockLSTM",
    "ApproxTopK": "where NaN stands among numbers is nobody's order",
    "Ndtri": "a number too small to be a normal one counts as 0 there, which lies at -infinity",
    "QuantizedResizeBilinear": "for no image, TensorFlow gives no range",
    "SparseSegmentMeanGrad": "without an index, rows are as memory was",
    "SparseSegmentSqrtNGrad": "as SparseSegmentMeanGrad",
    "SparseSegmentSumGrad": "as SparseSegmentMeanGrad",
    "StringNGrams": "without a row, TensorFlow gives as many empty strings as there are texts",
}
