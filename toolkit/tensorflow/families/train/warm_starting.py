# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Variables that start from an earlier checkpoint."""

from __future__ import annotations

from typing import Any, NamedTuple

from toolkit.client.train import warm_start as starting


class VocabInfo(NamedTuple):
    """How the rows of an embedding follow the words of a vocabulary that has changed."""

    new_vocab: Any
    new_vocab_size: Any
    num_oov_buckets: Any
    old_vocab: Any
    old_vocab_size: Any = -1
    backup_initializer: Any = None
    axis: Any = 0


def init_from_checkpoint(ckpt_dir_or_file: Any, assignment_map: Any) -> None:
    starting.initialize_from_checkpoint(ckpt_dir_or_file, dict(assignment_map))


def warm_start(
    ckpt_to_initialize_from: Any, vars_to_warm_start: Any = ".*", var_name_to_vocab_info: Any = None,
    var_name_to_prev_var_name: Any = None,
) -> None:  # fmt: skip
    starting.warm_start(ckpt_to_initialize_from, vars_to_warm_start, var_name_to_vocab_info, var_name_to_prev_var_name)
