"""A spec in Python with a custom op: learns the threshold that takes the most noise out of a sparse signal.

graphmill build samples/denoise.py --plugin samples/shrink_plugin.py -o denoise.meta
graphmill run denoise.meta --plugin samples/shrink_plugin.py --init --target train --fetch threshold --steps 40
"""

from __future__ import annotations

import numpy as np

from toolkit import client as gm
from toolkit.client import ops


def build() -> object:
    rng = np.random.default_rng(1)
    signal = np.where(rng.random(400) < 0.1, rng.normal(0, 4, 400), 0).astype(np.float32)
    noisy = (signal + rng.normal(0, 0.3, 400)).astype(np.float32)

    x = gm.placeholder_with_default(noisy, [None], name="x")
    threshold = gm.get_variable("threshold", initializer=0.05)
    clean = gm.identity(ops.shrink(x, threshold), name="clean")
    loss = gm.reduce_mean(gm.square(clean - signal), name="loss")
    gm.train.GradientDescent(0.2).minimize(loss, gm.train.get_or_create_global_step(), name="train")
    gm.global_variables_initializer()
    signature = gm.predict_signature({"x": x}, {"clean": clean, "loss": loss})
    return gm.to_meta_graph(signatures={"serving_default": signature})
