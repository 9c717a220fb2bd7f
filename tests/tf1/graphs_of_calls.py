"""Run by an interpreter with TensorFlow 1.15: expressions as JSON on stdin, their graphs (base64) as JSON on stdout.

With the argument "values", what they leave in `result` instead (`call_scope.values`).

An expression that fails gives [the last line of its error] in place of a text.
"""

import base64
import json
import os
import sys
import warnings
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
warnings.simplefilter("ignore")
sys.path.insert(0, str(Path(__file__).resolve().parent))


def main():
    import call_scope  # pyright: ignore[reportMissingImports]  # beside this file
    import tensorflow as tf

    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    found = {}
    for code in json.load(sys.stdin):
        try:
            if sys.argv[1:] == ["values"]:
                found[code] = call_scope.values(tf, code)
            else:
                found[code] = base64.b64encode(call_scope.serialized_graph(tf, code)).decode()
        except Exception as error:
            found[code] = [f"{type(error).__name__}: {error}"]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
