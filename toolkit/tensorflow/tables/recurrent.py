"""tf.nn: recurrent networks and their cells; loops over the rows of tensors."""

HOMES: dict[str, str] = {
    "toolkit.client.rnn": """
        nn.dynamic_rnn nn.bidirectional_dynamic_rnn nn.static_rnn nn.static_state_saving_rnn
        nn.static_bidirectional_rnn nn.raw_rnn
    """,
    "toolkit.client.rnn_cell": """
        nn.rnn_cell.RNNCell nn.rnn_cell.BasicRNNCell nn.rnn_cell.GRUCell nn.rnn_cell.BasicLSTMCell
        nn.rnn_cell.LSTMCell nn.rnn_cell.MultiRNNCell nn.rnn_cell.LSTMStateTuple
    """,
    "toolkit.client.rnn_wrappers": """
        nn.rnn_cell.DropoutWrapper nn.rnn_cell.ResidualWrapper nn.rnn_cell.DeviceWrapper
    """,
    "toolkit.client.functional_ops": "map_fn scan foldl foldr",
    "toolkit.client.tensor_array": "TensorArray",
}
