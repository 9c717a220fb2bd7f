"""Conditionals, loops, groups, gradients."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.families.flow": """
        UnconnectedGradients AggregationMethod cond case while_loop group tuple gradients hessians RegisterGradient
        no_gradient
    """,
}
