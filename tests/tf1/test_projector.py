"""What TensorBoard's projector is told beside the summaries."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit import tensorflow as tf


def test_settings_of_the_projector(tmp_path: Path) -> None:
    projector = tf.contrib.tensorboard.plugins.projector
    config = projector.ProjectorConfig()
    embedding = config.embeddings.add(tensor_name="words", metadata_path="words.tsv")
    embedding.sprite.single_image_dim.extend([28, 28])
    with tf.summary.FileWriter(str(tmp_path)) as writer:
        projector.visualize_embeddings(writer, config)
    written = (tmp_path / "projector_config.pbtxt").read_text()
    assert written == (
        'embeddings {\n  tensor_name: "words"\n  metadata_path: "words.tsv"\n'
        "  sprite {\n    single_image_dim: 28\n    single_image_dim: 28\n  }\n}\n"
    )


def test_a_writer_without_a_folder() -> None:
    class Writer:
        def get_logdir(self) -> str:
            return ""

    projector = tf.contrib.tensorboard.plugins.projector
    with pytest.raises(ValueError, match="the summary writer has no folder"):
        projector.visualize_embeddings(Writer(), projector.ProjectorConfig())
