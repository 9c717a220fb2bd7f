"""What a model function is called for, as TensorFlow's contrib.learn names it."""

from __future__ import annotations


class ModeKeys:
    """The names of the three modes."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"

    @classmethod
    def validate(cls, key: str) -> None:
        """Raise a ValueError for what is no mode."""
        if key not in (cls.TRAIN, cls.EVAL, cls.INFER):
            raise ValueError(f"mode: there is no {key!r}")
