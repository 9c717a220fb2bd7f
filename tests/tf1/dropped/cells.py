"""tf.contrib.rnn and tf.contrib.cudnn_rnn: cells, wrappers, all steps at once."""

_MADE = """
r = np.random.RandomState(8)
x, y = tf.constant(r.randn(3, 4).astype('f')), tf.constant(r.randn(3, 4).astype('f'))
steps = tf.constant(r.randn(6, 3, 4).astype('f'))
lengths = tf.constant([6, 1, 4])
rnn, plain = tf.contrib.rnn, tf.nn.rnn_cell
"""
#: two steps, the gradients of all variables, the sizes
_RUN = """
state = cell.zero_state(3, tf.float32)
one, state = cell(x, state)
other, state = cell(y, state)
slopes = [tf.norm(tf.convert_to_tensor(g)) for g in tf.gradients(tf.reduce_sum(other * other), tf.trainable_variables()) if g is not None]
size = cell.output_size
result = [one, other, state, slopes, size.as_list() if hasattr(size, 'as_list') else size]
"""


def _cells(*made: str, prepare: str = "", last: str = "") -> list[str]:
    return [f"{_MADE}{prepare}cell = {each}{_RUN}{last}" for each in made]


_IMAGES = "x, y = (tf.constant(r.randn(%s).astype('f')) for _ in range(2))\n"
_TIMES = "x, y = (tf.constant([[1.0], [2.5], [30.0]]), x), (tf.constant([[2.0], [3.5], [31.0]]), y)\n"
_GRID = "num_frequency_blocks=[2], feature_size=2, frequency_skip=2"

VALUES: dict[str, list[str]] = {
    f"contrib.rnn.{name}": _cells(*made)
    for name, made in {
        "UGRNNCell": ["rnn.UGRNNCell(5)", "rnn.UGRNNCell(4, tf.ones_initializer(), 0.5, tf.sigmoid)"],
        "IntersectionRNNCell": ["rnn.IntersectionRNNCell(4)", "rnn.IntersectionRNNCell(5, 5, forget_bias=0.3, y_activation=tf.tanh)"],
        "NASCell": ["rnn.NASCell(5)", "rnn.NASCell(5, 3, True, name='mine')"],
        "SRUCell": ["rnn.SRUCell(5)", "rnn.SRUCell(4, tf.sigmoid, name='mine')"],
        "IndRNNCell": ["rnn.IndRNNCell(5)", "rnn.IndRNNCell(4, tf.sigmoid, name='mine')"],
        "IndyGRUCell": ["rnn.IndyGRUCell(5)", "rnn.IndyGRUCell(4, tf.sigmoid, None, tf.ones_initializer(), tf.zeros_initializer())"],
        "IndyLSTMCell": ["rnn.IndyLSTMCell(5)", "rnn.IndyLSTMCell(4, 0.3, tf.sigmoid)"],
        "CoupledInputForgetGateLSTMCell": [
            "rnn.CoupledInputForgetGateLSTMCell(5)",
            "rnn.CoupledInputForgetGateLSTMCell(5, True, num_proj=3, proj_clip=0.2, num_unit_shards=2, num_proj_shards=2)",
            "rnn.CoupledInputForgetGateLSTMCell(5, state_is_tuple=False, layer_norm=True, norm_gain=0.5, norm_shift=0.1)",
        ],
        "LayerNormBasicLSTMCell": [
            "rnn.LayerNormBasicLSTMCell(5)", "rnn.LayerNormBasicLSTMCell(5, 0.5, layer_norm=False, activation=tf.nn.relu)",
            "rnn.LayerNormBasicLSTMCell(5, norm_gain=0.5, norm_shift=0.1, dropout_keep_prob=0.6, dropout_prob_seed=3)",
        ],
        "GLSTMCell": ["rnn.GLSTMCell(6, number_of_groups=2)", "rnn.GLSTMCell(6, None, 4, 2, 0.5, tf.sigmoid)"],
        "TimeFreqLSTMCell": ["rnn.TimeFreqLSTMCell(5, feature_size=4, frequency_skip=2)", "rnn.TimeFreqLSTMCell(5, True, 0.1, feature_size=4)"],
        "GridLSTMCell": [
            f"rnn.GridLSTMCell(3, {_GRID})", f"rnn.GridLSTMCell(3, True, {_GRID})",
            f"rnn.GridLSTMCell(3, True, True, 0.1, {_GRID}, state_is_tuple=False)",
            f"rnn.GridLSTMCell(3, True, couple_input_forget_gates=True, num_unit_shards=2, {_GRID})",
            "rnn.GridLSTMCell(3, feature_size=1, frequency_skip=1, num_frequency_blocks=[1, 2], start_freqindex_list=[0, 2], end_freqindex_list=[1, 4])",
        ],
        "BidirectionalGridLSTMCell": [
            f"rnn.BidirectionalGridLSTMCell(3, {_GRID})", f"rnn.BidirectionalGridLSTMCell(3, True, {_GRID}, backward_slice_offset=1)",
            f"rnn.BidirectionalGridLSTMCell(3, {_GRID}, backward_slice_offset=-1)",
        ],
        "LSTMBlockCell": ["rnn.LSTMBlockCell(5)", "rnn.LSTMBlockCell(5, 0.5, 0.1, True, name='mine')"],
        "GRUBlockCell": ["rnn.GRUBlockCell(5)", "rnn.GRUBlockCell(cell_size=4, name='mine')"],
        "GRUBlockCellV2": ["rnn.GRUBlockCellV2(5)", "rnn.GRUBlockCellV2(num_units=4)"],
        "InputProjectionWrapper": [
            "rnn.InputProjectionWrapper(plain.GRUCell(5), 3)", "rnn.InputProjectionWrapper(plain.BasicLSTMCell(5), 3, tf.tanh)",
        ],
        "OutputProjectionWrapper": [
            "rnn.OutputProjectionWrapper(plain.GRUCell(5), 3)", "rnn.OutputProjectionWrapper(plain.BasicLSTMCell(5), 3, tf.tanh)",
        ],
        "AttentionCellWrapper": [
            "rnn.AttentionCellWrapper(plain.GRUCell(5), 3)", "rnn.AttentionCellWrapper(plain.LSTMCell(5), 2, 3, 4, 6)",
            "rnn.AttentionCellWrapper(plain.GRUCell(5), 3, state_is_tuple=False)",
        ],
    }.items()

}  # fmt: skip
VALUES |= {
    "contrib.rnn.HighwayWrapper": [
        _MADE + f"cell = rnn.HighwayWrapper(plain.GRUCell(4){more})\n"
        "outputs, state = tf.nn.dynamic_rnn(cell, steps, lengths[:, None][:, 0], time_major=True, dtype=tf.float32)\n"
        "result = [outputs, state]"
        for more in ("", ", False, 0.3")
    ],
    "contrib.rnn.PhasedLSTMCell": _cells(
        "rnn.PhasedLSTMCell(5)", "rnn.PhasedLSTMCell(5, True, 0.01, 0.3, False)", prepare=_TIMES
    ),
    "contrib.rnn.ConvLSTMCell": _cells(
        "rnn.ConvLSTMCell(2, [5, 4, 2], 3, [3, 3])", "rnn.ConvLSTMCell(2, [5, 4, 2], 3, [2, 2], False, False, 0.5, name='mine')",
        prepare=_IMAGES % "3, 5, 4, 2",
    ),
    "contrib.rnn.Conv1DLSTMCell": [
        _MADE + (_IMAGES % "3, 5, 2") + "cell = rnn.Conv1DLSTMCell(input_shape=[5, 2], output_channels=3, kernel_shape=[2], "
        "skip_connection=True)\nresult = cell(x, cell.zero_state(3, tf.float32))",
        *_cells(
            "rnn.Conv1DLSTMCell(input_shape=[5, 2], output_channels=3, kernel_shape=[3])",
            "rnn.Conv1DLSTMCell(name='mine', input_shape=[5, 2], output_channels=3, kernel_shape=[2], forget_bias=0.5)",
            prepare=_IMAGES % "3, 5, 2",
        ),
    ],
    "contrib.rnn.Conv2DLSTMCell": _cells(
        "rnn.Conv2DLSTMCell(input_shape=[5, 4, 2], output_channels=3, kernel_shape=[3, 3])",
        "rnn.Conv2DLSTMCell(input_shape=[5, 4, 2], output_channels=2, kernel_shape=[2, 1], use_bias=False)",
        prepare=_IMAGES % "3, 5, 4, 2",
    ),
    "contrib.rnn.Conv3DLSTMCell": _cells(
        "rnn.Conv3DLSTMCell(input_shape=[3, 4, 3, 2], output_channels=2, kernel_shape=[3, 3, 3])",
        "rnn.Conv3DLSTMCell(input_shape=[3, 4, 3, 2], output_channels=2, kernel_shape=[2, 1, 1], forget_bias=0.1)",
        prepare=_IMAGES % "3, 3, 4, 3, 2",
    ),
    "contrib.rnn.EmbeddingWrapper": _cells(
        "rnn.EmbeddingWrapper(plain.GRUCell(5), 7, 4)", "rnn.EmbeddingWrapper(plain.BasicLSTMCell(5), 7, 4, tf.ones_initializer())",
        prepare="x, y = tf.constant([1, 6, 0]), tf.constant([2, 2, 3])\n",
    ),
    "contrib.cudnn_rnn.CudnnCompatibleLSTMCell": _cells(
        "tf.contrib.cudnn_rnn.CudnnCompatibleLSTMCell(5)", "tf.contrib.cudnn_rnn.CudnnCompatibleLSTMCell(num_units=3)"
    ),
    "contrib.cudnn_rnn.CudnnCompatibleGRUCell": _cells(
        "tf.contrib.cudnn_rnn.CudnnCompatibleGRUCell(5)",
        "tf.contrib.cudnn_rnn.CudnnCompatibleGRUCell(4, kernel_initializer=tf.ones_initializer())",
    ),
    "contrib.rnn.FusedRNNCellAdaptor": [
        _MADE + f"result = rnn.FusedRNNCellAdaptor(plain.GRUCell(5), {loop})({given}, dtype=tf.float32{more})"
        for loop, given, more in (
            ("False", "steps", ""), ("True", "steps", ", sequence_length=lengths"), ("False", "tf.unstack(steps)", ", scope='mine'"),
            ("True", "tf.unstack(steps)", ", initial_state=tf.ones([3, 5])"),
        )
    ],
    "contrib.rnn.TimeReversedFusedRNN": [
        _MADE + f"cell = rnn.TimeReversedFusedRNN(rnn.FusedRNNCellAdaptor(plain.GRUCell(5), True))\nresult = cell({given}, dtype=tf.float32{more})"
        for given, more in (("steps", ""), ("steps", ", sequence_length=lengths"), ("tf.unstack(steps)", ""))
    ],
    "contrib.rnn.LSTMBlockFusedCell": [
        _MADE + f"cell = rnn.LSTMBlockFusedCell({made})\noutputs, state = cell({given})\n"
        "result = [outputs, state, [tf.norm(g) for g in tf.gradients(tf.reduce_sum(tf.square(outputs)), tf.trainable_variables())]]"
        for made, given in (
            ("5", "steps, dtype=tf.float32"), ("5, 0.5, 0.1, True, name='mine'", "steps, dtype=tf.float32, sequence_length=lengths"),
            ("5", "steps, (tf.ones([3, 5]), tf.zeros([3, 5]))"),
        )
    ],
    "contrib.rnn.stack_bidirectional_rnn": [
        _MADE + "cells = lambda: [plain.GRUCell(5), plain.BasicLSTMCell(3)]\n"
        f"result = rnn.stack_bidirectional_rnn(cells(), cells(), tf.unstack(steps), dtype=tf.float32{more})"
        for more in ("", ", sequence_length=lengths, scope='mine'")
    ],
    "contrib.rnn.stack_bidirectional_dynamic_rnn": [
        _MADE + "cells = lambda: [plain.GRUCell(5), plain.BasicLSTMCell(3)]\n"
        f"result = rnn.stack_bidirectional_dynamic_rnn(cells(), cells(), steps, dtype=tf.float32{more})"
        for more in ("", ", sequence_length=lengths, scope='mine', time_major=True",
                     ", initial_states_fw=[tf.ones([6, 5]), plain.LSTMStateTuple(tf.ones([6, 3]), tf.zeros([6, 3]))]")
    ],
    "contrib.rnn.transpose_batch_time": [
        _MADE + "result = rnn.transpose_batch_time(steps)", _MADE + "result = rnn.transpose_batch_time(x)",
    ],
    "contrib.rnn.best_effort_input_batch_size": [
        _MADE + "result = rnn.best_effort_input_batch_size([tf.placeholder(tf.float32, [None, None]), steps])",
        _MADE + "result = rnn.best_effort_input_batch_size([tf.placeholder_with_default(steps, [None, None, 4])])",
    ],
}  # fmt: skip
