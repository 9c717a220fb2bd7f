"""Make digits.npz from the handwritten digits that scikit-learn ships (needs scikit-learn; see README.md)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

TEST_IMAGES = 360
SEED = 0

digits = load_digits()
images = (digits.images / 16.0).astype(np.float32)[..., np.newaxis]  # 0..16 to 0..1; batch, height, width, channel
labels = digits.target.astype(np.int64)
order = np.random.RandomState(SEED).permutation(len(images))
test, train = order[:TEST_IMAGES], order[TEST_IMAGES:]
np.savez_compressed(
    Path(__file__).parent / "digits.npz",
    x_train=images[train],
    y_train=labels[train],
    x_test=images[test],
    y_test=labels[test],
)
