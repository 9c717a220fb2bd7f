# TensorFlow, which this script asks for the scripts, has no types.
# pyright: basic
"""Export the script of every character, as an installed TensorFlow tells it, to schemas/unicode_scripts.txt.xz.

    python -m schemas.export_scripts

One line for each run of characters of one script: the first character, and the script's number in ICU (-1: none).
"""

import lzma
from pathlib import Path

TARGET = Path(__file__).with_name("unicode_scripts.txt.xz")
LAST = 0x10FFFF


def lines() -> list[str]:
    """The runs, from one before the first character to one after the last."""
    import numpy as np
    import tensorflow as tf

    characters = np.arange(-1, LAST + 2, dtype=np.int32)
    scripts = tf.raw_ops.UnicodeScript(input=characters).numpy()
    starts = np.flatnonzero(np.diff(scripts, prepend=scripts[0] - 1))
    return [f"{characters[i]} {scripts[i]}" for i in starts]


if __name__ == "__main__":
    TARGET.write_bytes(lzma.compress("".join(line + "\n" for line in lines()).encode(), preset=9))
