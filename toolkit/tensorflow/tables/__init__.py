"""The tables of TensorFlow's names, a file for each family.

A family's `HOMES` maps a module to the dotted names (without "tf.") that it implements, each under the last part of its
name, or as `name=attribute`. `names` joins them; a name in two places raises.
"""

#: the families, each a module of this package
FAMILIES = (
    "framework",
    "internal",
    "saved_model",
    "feature_columns",
    "estimator",
    "math",
    "arrays",
    "variables",
    "nn",
    "images",
    "signals",
    "ragged",
    "networks",
    "flow",
    "train",
    "testing",
    "platform",
    "profiler",
    "data",
    "queues",
    "files",
    "windows",
    "recurrent",
    "special",
    "debugging",
    "sparse",
    "linear_algebra",
    "sequences",
    "probability",
    "preprocessing",
    "tensorboard",
    "python",
    "lookup",
    "contrib_framework",
    "contrib_layers",
    "contrib_slim",
    "contrib_metrics",
    "contrib_columns",
    "contrib_learn",
    "contrib_images",
)
