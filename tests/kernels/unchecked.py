"""What kernels for GPUs do not refuse, as TensorFlow's do not: the numbers that tell are in the device's memory."""

from __future__ import annotations

_SCATTERS = ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max")
_ROWS = "updates out of range are left out"

#: op to what they do instead
UNCHECKED: dict[str, str] = {
    "Bincount": "numbers below 0 are left out",
    "BatchSelfAdjointEigV2": "values of a matrix that is not finite are NaN",
    "CropAndResize": "boxes of images that there are not have the value outside",
    "CropAndResizeGradBoxes": "boxes of images that there are not have no gradient",
    "CropAndResizeGradImage": "boxes of images that there are not give no gradient",
    "DataFormatDimMap": "dimensions that there are not are any",
    "DenseBincount": "numbers below 0 are left out",
    "Div": "what is divided by 0 is any number",
    "FloorDiv": "what is divided by 0 is any number",
    "FloorMod": "what is divided by 0 is any number",
    "Gather": "rows out of range are zeros",
    "GatherNd": "rows out of range are zeros",
    "GatherV2": "rows out of range are zeros",
    "HistogramFixedWidth": "NaN is in no bin",
    "MaxPoolGradGradWithArgmax": "at places outside the tensor it is 0",
    "MaxPoolGradWithArgmax": "places outside the tensor have no gradient",
    "Mod": "what is divided by 0 is any number",
    "ResourceGather": "rows out of range are zeros",
    "ResourceGatherNd": "rows out of range are zeros",
    "ReverseSequence": "a length of more than there is turns all of it",
    "ScatterNd": _ROWS,
    "ScatterNdNonAliasingAdd": _ROWS,
    "SelfAdjointEigV2": "values of a matrix that is not finite are NaN",
    "SparseReorder": "indices out of range are put where their positions are",
    "SparseSliceGrad": "rows that the input has not are left out",
    "SparseTensorDenseMatMul": "numbers out of range are left out",
    "SparseToDense": "numbers out of range are left out, of several for one place the last one stays",
    "SparseSoftmaxCrossEntropyWithLogits": "the loss of a label out of range is NaN, as are its gradients",
    "TruncateDiv": "what is divided by 0 is any number",
    "TruncateMod": "what is divided by 0 is any number",
    **{
        f"{kind}Scatter{place}{how}": _ROWS
        for kind in ("", "Resource", "Tensor")
        for place in ("", "Nd")
        for how in _SCATTERS
    },
    **{
        f"{kind}SparseApply{rule}": "rows out of range are left out"
        for kind in ("", "Resource")
        for rule in ("Adadelta", "Adagrad", "AdagradV2", "Ftrl", "FtrlV2", "KerasMomentum", "ProximalAdagrad")
    },
    **{
        f"Segment{how}{version}": "rows of segments that do not rise are added where they say"
        for how in ("Sum", "Prod", "Mean", "Min", "Max")
        for version in ("", "V2")
    },
    **{f"UnsortedSegment{how}": "rows of segments out of range are left out" for how in ("Sum", "Prod", "Max", "Min")},
    **{
        f"SparseSegment{how}{rest}": "rows whose segment or index is out of range are left out"
        for how in ("Sum", "Mean", "SqrtN")
        for rest in ("", "WithNumSegments", "Grad", "GradV2")
    },
}  # fmt: skip
