"""Conditionals, loops, groups, gradients."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.families.ops.flow": """
        UnconnectedGradients AggregationMethod cond case while_loop group tuple gradients hessians
        RegisterGradient no_gradient python.ops.control_flow_ops.merge
    """,
    "toolkit.client.flow.flow_ops": "python.ops.control_flow_ops.switch",
    "toolkit.client.flow.control_flow": "python.ops.control_flow_ops.with_dependencies",
    "toolkit.tensorflow.families.framework.functions": """
        python.framework.function.Defun python.framework.function.Declare python.framework.function.from_library
    """,
}
