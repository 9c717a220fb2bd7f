# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""What TensorBoard's projector reads beside the summaries: which tensors are embeddings, and of what."""

from __future__ import annotations

import os
from typing import Any

from schemas.projector_config_pb2 import DESCRIPTOR

__all__ = ["DESCRIPTOR", "visualize_embeddings"]

#: the file's name, which TensorBoard looks for
FILE = "projector_config.pbtxt"


def visualize_embeddings(summary_writer: Any, config: Any) -> None:
    """Write a ProjectorConfig into the folder of a FileWriter.

    Raises:
        ValueError: the writer has no folder.
    """
    from google.protobuf import text_format

    from toolkit.formats.io import write_atomic

    folder = summary_writer.get_logdir()
    if not folder:
        raise ValueError("the summary writer has no folder to put the projector's settings into")
    write_atomic(os.path.join(folder, FILE), text_format.MessageToString(config).encode())
