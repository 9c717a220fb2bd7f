"""tf.contrib.cudnn_rnn: layers that cuDNN computes, their weights in other forms and in checkpoints."""

from __future__ import annotations

from tests.tf1.calls import separated

_LAYERS = """
c = tf.contrib.cudnn_rnn.NAME(1, 4)
c(f(5, 2, 3))
---
c = tf.contrib.cudnn_rnn.NAME(2, 4, direction='bidirectional', dropout=0.25, seed=3, name='mine')
c(f(5, 2, 3), training=False)
c(f(5, 2, 3), STATE, training=False)
---
with tf.variable_scope('outer'):
    c = tf.contrib.cudnn_rnn.NAME(1, 3, 'auto_select', kernel_initializer=tf.zeros_initializer(), bias_initializer=tf.ones_initializer())
    c(f(2, 5, 3), time_major=False)
---
c = tf.contrib.cudnn_rnn.NAME(1, 4, dtype=tf.float64)
c.build([None, 2, 3])
c(tf.zeros([5, 2, 3], tf.float64), sequence_lengths=tf.constant([5, 2]))
---
c = tf.contrib.cudnn_rnn.NAME(2, 4)
c.build([None, 2, 3])
tf.train.Saver()
---
with tf.variable_scope('outer'):
    c = tf.contrib.cudnn_rnn.NAME(2, 4)
    c(f(5, 2, 3))
tf.train.Saver()
---
c = tf.contrib.cudnn_rnn.NAME(2, 4, direction='bidirectional')
with tf.variable_scope('outer'):
    c.build([None, 2, 3])
tf.train.Saver()
"""
_CONVERTERS = """
c = tf.contrib.cudnn_rnn.CudnnParamsFormatConverterNAME(2, 4, 3)
made = c.opaque_to_tf_canonical(f(999))
c.tf_canonical_to_opaque(made[0] + made[1])
---
c = tf.contrib.cudnn_rnn.CudnnParamsFormatConverterNAME(2, 4, 3, direction='bidirectional')
made = c.opaque_to_tf_canonical(f(999))
c.tf_canonical_to_opaque(made[0] + made[1])
"""
_SAVEABLES = """
v = tf.get_variable('v', [999])
c = tf.contrib.cudnn_rnn.NAMESaveable(v, 2, 4, 3, scope='s')
---
v = tf.get_variable('v', [999])
c = tf.contrib.cudnn_rnn.NAMESaveable(v, 1, 4, 3, direction='bidirectional', name='mine')
c.restore([spec.tensor for spec in c.specs], None)
"""
_STATES = {"CudnnLSTM": "(f(4, 2, 4), f(4, 2, 4))"}
_NAMES = ("CudnnLSTM", "CudnnGRU", "CudnnRNNTanh", "CudnnRNNRelu")

CALLS: dict[str, list[str]] = {
    **{
        f"contrib.cudnn_rnn.{name}": separated(
            _LAYERS.replace("NAME", name).replace("STATE", _STATES.get(name, "(f(4, 2, 4),)"))
        )
        for name in _NAMES
    },
    **{
        f"contrib.cudnn_rnn.CudnnParamsFormatConverter{name}": separated(_CONVERTERS.replace("NAME", name))
        for name in ("LSTM", "GRU", "Tanh", "Relu")
    },
    **{f"contrib.cudnn_rnn.{name}Saveable": separated(_SAVEABLES.replace("NAME", name)) for name in _NAMES},
}
CALLS["contrib.cudnn_rnn.CudnnParamsFormatConverterLSTM"] += separated("""
c = tf.contrib.cudnn_rnn.CudnnParamsFormatConverterLSTM(2, 4, 3, 2)
made = c.opaque_to_tf_canonical(f(999))
c.tf_canonical_to_opaque(made[0] + made[1], made[2])
""")

#: what splits into equal parts
_SPLITTING = [
    code
    for name, codes in CALLS.items()
    for code in codes
    if ("LSTM" in name or "GRU" in name) and ("tf_canonical_to_opaque" in code or "restore" in code)
]
DIFFERING: dict[str, str] = {
    **dict.fromkeys(
        _SPLITTING,
        "1.15 makes a constant, which nothing reads, of how many equal parts there are; later releases do not",
    ),
    **dict.fromkeys(
        (code for name in _NAMES for code in CALLS[f"contrib.cudnn_rnn.{name}"]),
        "1.15 slices the variable to see where it is, and makes zeros by other nodes; tests/tf1/test_cudnn_layers.py "
        "compares what else there is",
    ),
}
