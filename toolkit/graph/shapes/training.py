"""Shapes of optimizer steps: what they update has one shape."""

from __future__ import annotations

from toolkit.graph.shape import Shape
from toolkit.graph.shapes.registry import ShapeContext, shape_function

#: inputs by name that are scalars (learning rates and the like); the rest has the variable's shape
_SLOTS = frozenset({
    "var", "accum", "accum_update", "m", "v", "vhat", "ms", "mg", "mom", "linear", "gradient_accumulator",
    "gradient_squared_accumulator",
})  # fmt: skip


def _apply(c: ShapeContext) -> list[Shape]:
    resource = c.node.op.startswith("Resource")
    if resource:
        return []  # TensorFlow leaves these checks to the run
    sparse = "Sparse" in c.node.op
    common = c.inputs[0]
    grad: Shape | None = None
    for position, arg in enumerate(c.node.op_def.inputs):
        if arg.name == "indices":
            continue
        if arg.name in ("grad", "delta"):
            grad = c.inputs[position]
        elif arg.name in _SLOTS:
            common = common.merge(c.inputs[position])
        elif arg.name != "lr_power":
            c.rank(position, 0)
    if grad is not None:
        if sparse:
            _check_rows(c, common, grad)
        else:
            common = common.merge(grad)
    return [common]


def _check_rows(c: ShapeContext, variable: Shape, grad: Shape) -> None:
    position = [arg.name for arg in c.node.op_def.inputs].index("indices")
    indices = c.rank(position, 1)
    Shape([indices[0]]).concatenate(variable.slice(1)).merge(grad)


for _name in (
    "Adadelta", "Adagrad", "AdagradDA", "AdagradV2", "Adam", "AdaMax", "AddSign", "CenteredRMSProp", "Ftrl",
    "FtrlV2", "GradientDescent", "Momentum", "PowerSign", "ProximalAdagrad", "ProximalGradientDescent", "RMSProp",
):  # fmt: skip
    shape_function(f"Apply{_name}", f"ResourceApply{_name}")(_apply)
for _name in (
    "Adadelta", "Adagrad", "AdagradDA", "AdagradV2", "CenteredRMSProp", "Ftrl", "FtrlV2", "Momentum",
    "ProximalAdagrad", "ProximalGradientDescent", "RMSProp",
):  # fmt: skip
    shape_function(f"SparseApply{_name}", f"ResourceSparseApply{_name}")(_apply)
shape_function("ResourceApplyKerasMomentum", "ResourceApplyAdamWithAmsgrad", "ResourceSparseApplyKerasMomentum")(_apply)
