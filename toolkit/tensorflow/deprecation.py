"""One line on standard error, once, about each name that TensorFlow 1 has declared deprecated."""

from __future__ import annotations

import logging

#: what TensorFlow 1's logger is called; `tf.logging.set_verbosity` sets its level
LOGGER = "tensorflow"
_told: set[str] = set()


def warn_once(name: str, instead: str) -> None:
    """Say that a name is deprecated, and what to write instead where there is something."""
    if name in _told:
        return
    _told.add(name)
    advice = f"; write tf.{instead}" if instead and instead != name else ""
    log().warning("The name tf.%s is deprecated in TensorFlow 1%s", name, advice)


def log() -> logging.Logger:
    """TensorFlow's logger, which writes to standard error as TensorFlow's own does."""
    logger = logging.getLogger(LOGGER)
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(levelname)s:%(name)s:%(message)s"))
        logger.addHandler(handler)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.WARNING)
    return logger


def forget() -> None:
    """Say everything anew."""
    _told.clear()
