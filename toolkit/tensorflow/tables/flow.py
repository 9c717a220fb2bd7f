"""Conditionals, loops, groups, gradients."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.families.flow": """
        UnconnectedGradients AggregationMethod cond case while_loop group tuple gradients hessians
        RegisterGradient no_gradient
    """,
    "toolkit.tensorflow.families.functions": """
        python.framework.function.Defun python.framework.function.Declare python.framework.function.from_library
    """,
}
