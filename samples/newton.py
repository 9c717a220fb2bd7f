"""Square roots by Newton's method: a spec in Python, with a while loop and its gradient.

graphmill build samples/newton.py -o newton.meta
graphmill run newton.meta --feed x=[2.0,9.0]
"""

from __future__ import annotations

from toolkit import client as gm


def build() -> object:
    x = gm.placeholder(gm.float32, [None], name="x")

    def improve(steps: gm.Tensor, guess: gm.Tensor) -> tuple[gm.Tensor, gm.Tensor]:
        return steps + 1, 0.5 * (guess + x / guess)

    def is_coarse(steps: gm.Tensor, guess: gm.Tensor) -> gm.Tensor:
        return gm.reduce_max(gm.abs(guess * guess - x) / x) > 1e-6

    steps, root = gm.while_loop(is_coarse, improve, [gm.constant(0), x], name="newton", maximum_iterations=50)
    root = gm.identity(root, name="root")
    slope = gm.identity(gm.grad(root, x)[0], name="slope")
    steps = gm.identity(steps, name="steps")
    signature = gm.predict_signature({"x": x}, {"root": root, "slope": slope, "steps": steps})
    return gm.to_meta_graph(signatures={"serving_default": signature})
