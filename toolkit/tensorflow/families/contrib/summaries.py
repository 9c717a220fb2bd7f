# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.summary: the names around `client.summaries.writers`."""

from __future__ import annotations

import os
from typing import Any

from toolkit.client.summaries import writers


def create_summary_file_writer(*args: Any, **kwargs: Any) -> Any:
    """`create_file_writer` by its older name."""
    return writers.create_file_writer(*args, **kwargs)


def eval_dir(model_dir: str, name: str | None = None) -> str:
    """The folder beside a model's own summaries for those of its evaluation."""
    return os.path.join(model_dir, f"eval_{name}" if name else "eval")
