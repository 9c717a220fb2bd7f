"""Programs that define and call functions by name (Defun), for TensorFlow and for this library.

Each gets `tf` and the module of Defun, makes nodes in the default graph and returns what to run: numbers.
"""

from __future__ import annotations

from typing import Any

PROGRAMS: dict[str, Any] = {}


def program(function: Any) -> Any:
    PROGRAMS[function.__name__] = function
    return function


@program
def two_results(tf: Any, function: Any) -> Any:
    @function.Defun(tf.float32, tf.float32)
    def foo(x: Any, Y_B: Any) -> Any:
        """What it computes."""
        return x + Y_B, tf.nn.relu(x - Y_B, name="x")

    a, b = foo(tf.constant([3.0]), 2.0, name="mycall")
    back = tf.gradients(a * b, [a])
    c = tf.constant([1.5], name="c")
    p, _ = foo(c, c)
    assert p.get_shape().ndims is None  # shapes are not followed into such calls
    return [a, b, *back, *tf.gradients(p, c)]


@program
def captures_and_variables(tf: Any, function: Any) -> Any:
    w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
    outside = tf.constant(3.0, name="scope/Out")
    read = tf.get_variable("rv", [2], use_resource=True, initializer=tf.ones_initializer())

    @function.Defun(tf.float32, func_name="Cap", noinline=True, out_names=["res"])
    def cap(x: Any) -> Any:
        v = tf.get_variable("inner", [2], initializer=tf.ones_initializer())
        u = tf.get_variable("held", [2], use_resource=True, initializer=tf.ones_initializer())
        return x * outside + w + v + u + read

    with tf.variable_scope("calls"):
        first = cap(tf.constant(1.0))
    second = cap(tf.constant(1.0), noinline=False)
    assert [v.name for v in tf.trainable_variables()] == ["w:0", "rv:0", "calls/inner:0", "calls/held:0"]
    assert len(cap.captured_inputs) == 5
    assert cap.stateful_ops == [("add_3/ReadVariableOp", "ReadVariableOp")]
    return [first, second]


@program
def types_of_the_call(tf: Any, function: Any) -> Any:
    @function.Defun()
    def twice(x: Any, *more: Any) -> Any:
        return x + x

    @function.Defun()
    def nothing_in() -> Any:
        return tf.constant(1.0)

    @function.Defun(tf.int32)
    def nothing_out(x: Any) -> None:
        tf.check_numerics(tf.cast(x, tf.float32), "fine")

    return [twice(1.0), twice(2), twice(3.0), nothing_in(), nothing_out(1)]


@program
def gradients_of_its_own(tf: Any, function: Any) -> Any:
    @function.Defun(tf.float32, tf.float32)
    def backwards(x: Any, dy: Any) -> Any:
        return dy * 2.0

    @function.Defun(tf.float32, grad_func=backwards, func_name="F")
    def forwards(x: Any) -> Any:
        return x * x

    @function.Defun(tf.float32, python_grad_func=lambda op, grad: grad * 3.0)
    def in_python(x: Any) -> Any:
        return x * x

    @function.Defun(tf.float32)
    def through(x: Any) -> Any:
        return forwards(x), tf.cast(x, tf.int32)

    x = tf.constant(5.0)
    ys = [forwards(x), in_python(x), through(x)[0]]
    return [grad for y in ys for grad in tf.gradients(y, x)]


@program
def names_and_controls(tf: Any, function: Any) -> Any:
    @function.Defun(tf.float32, tf.float32)
    def foo(A: Any, a: Any) -> Any:
        b = tf.identity(A, name="A_0")
        c = tf.identity(A, name="p/q_R")
        with tf.control_dependencies([c, b]):
            d = tf.identity(A, name="a")
        return A, A, a, b, c, d, c

    @function.Defun(tf.float32, out_names=["add", "q"])
    def bar(x: Any) -> Any:
        return x + 1.0, tf.identity(x, name="q")

    return [*foo(1.0, 2.0), *bar(1.0)]


def _shape_of_input(op: Any) -> list[Any]:
    return [op.inputs[0].get_shape()]


@program
def devices_and_functions_in_functions(tf: Any, function: Any) -> Any:
    outside = tf.constant([3.0])

    @function.Defun(tf.float32)
    def inner(x: Any) -> Any:
        with tf.device("/cpu:0"):
            y = tf.identity(x)
        return y * outside

    with tf.device("/cpu:0"):

        @function.Defun(tf.float32, shape_func=_shape_of_input)
        def outer(x: Any) -> Any:
            return inner(x) + tf.ones([2])

    with tf.name_scope("s"), tf.control_dependencies([outside]):
        made = outer(tf.constant([1.0, 2.0]))
        assert made.get_shape().as_list() == [2]
        return [made, inner(1.0, name="z"), *tf.gradients(made, outside)]


@program
def by_value(tf: Any, function: Any) -> Any:
    outside = tf.constant([3.0], name="sc/o") * 2.0

    @function.Defun(tf.float32, capture_by_value=True)
    def inner(x: Any) -> Any:
        with tf.name_scope("in"):
            return x * outside + outside

    assert not inner.captured_inputs
    return [inner(1.0)]


@program
def control_flow_inside(tf: Any, function: Any) -> Any:
    @function.Defun(tf.float32)
    def f(x: Any) -> Any:
        with tf.variable_scope("vs"):
            v = tf.get_variable("v", [], initializer=tf.ones_initializer())
        either = tf.cond(x > 0.0, lambda: x * v, lambda: x)
        return either, tf.while_loop(lambda i: i < 3.0, lambda i: i + x, [x])

    with tf.variable_scope("out"):
        first = f(1.0)
    return [*first, *f(2.0)]


@program
def gradient_inside(tf: Any, function: Any) -> Any:
    @function.Defun(tf.float32, tf.float32)
    def slope(x: Any, y: Any) -> Any:
        return tf.gradients(tf.sin(x) * y, [x, y])

    x = tf.constant([0.5, 1.0])
    made = slope(x, 2.0 * x)
    return [*made, *tf.gradients(made[0], x)]
