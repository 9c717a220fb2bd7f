"""tf.nn: recurrent networks and their cells; loops over the rows of tensors."""

HOMES: dict[str, str] = {
    "toolkit.client.recurrent.rnn": """
        nn.dynamic_rnn nn.bidirectional_dynamic_rnn nn.static_rnn nn.static_state_saving_rnn
        nn.static_bidirectional_rnn nn.raw_rnn
    """,
    "toolkit.client.recurrent.rnn_cell": """
        nn.rnn_cell.RNNCell nn.rnn_cell.BasicRNNCell nn.rnn_cell.GRUCell nn.rnn_cell.BasicLSTMCell
        nn.rnn_cell.LSTMCell nn.rnn_cell.MultiRNNCell nn.rnn_cell.LSTMStateTuple contrib.rnn.LayerRNNCell
    """,
    "toolkit.client.recurrent.wrappers": """
        nn.rnn_cell.DropoutWrapper nn.rnn_cell.ResidualWrapper nn.rnn_cell.DeviceWrapper
    """,
    "toolkit.client.recurrent.cells.gated": """
        contrib.rnn.UGRNNCell contrib.rnn.IntersectionRNNCell contrib.rnn.NASCell contrib.rnn.SRUCell
        contrib.rnn.IndRNNCell contrib.rnn.IndyGRUCell contrib.rnn.IndyLSTMCell
    """,
    "toolkit.client.recurrent.cells.lstm": """
        contrib.rnn.CoupledInputForgetGateLSTMCell contrib.rnn.LayerNormBasicLSTMCell contrib.rnn.PhasedLSTMCell
        contrib.rnn.GLSTMCell
    """,
    "toolkit.client.recurrent.cells.convolutional": """
        contrib.rnn.ConvLSTMCell contrib.rnn.Conv1DLSTMCell contrib.rnn.Conv2DLSTMCell contrib.rnn.Conv3DLSTMCell
    """,
    "toolkit.client.recurrent.cells.frequency": """
        contrib.rnn.TimeFreqLSTMCell contrib.rnn.GridLSTMCell contrib.rnn.BidirectionalGridLSTMCell
    """,
    "toolkit.client.recurrent.cells.wrappers": """
        contrib.rnn.EmbeddingWrapper contrib.rnn.InputProjectionWrapper contrib.rnn.OutputProjectionWrapper
        contrib.rnn.HighwayWrapper contrib.rnn.AttentionCellWrapper
    """,
    "toolkit.client.recurrent.cells.fused": """
        contrib.rnn.LSTMBlockCell contrib.rnn.GRUBlockCell contrib.rnn.GRUBlockCellV2 contrib.rnn.FusedRNNCell
        contrib.rnn.FusedRNNCellAdaptor contrib.rnn.TimeReversedFusedRNN contrib.rnn.LSTMBlockWrapper
        contrib.rnn.LSTMBlockFusedCell contrib.cudnn_rnn.CudnnCompatibleLSTMCell
        contrib.cudnn_rnn.CudnnCompatibleGRUCell
    """,
    "toolkit.client.cudnn.layers": """
        contrib.cudnn_rnn.CudnnLSTM contrib.cudnn_rnn.CudnnGRU contrib.cudnn_rnn.CudnnRNNTanh
        contrib.cudnn_rnn.CudnnRNNRelu
    """,
    "toolkit.client.cudnn.saveables": """
        contrib.cudnn_rnn.CudnnLSTMSaveable contrib.cudnn_rnn.CudnnGRUSaveable contrib.cudnn_rnn.CudnnRNNTanhSaveable
        contrib.cudnn_rnn.CudnnRNNReluSaveable
    """,
    "toolkit.client.cudnn.conversions": """
        contrib.cudnn_rnn.CudnnParamsFormatConverterLSTM contrib.cudnn_rnn.CudnnParamsFormatConverterGRU
        contrib.cudnn_rnn.CudnnParamsFormatConverterTanh contrib.cudnn_rnn.CudnnParamsFormatConverterRelu
    """,
    "toolkit.client.recurrent.cells.stacked": """
        contrib.rnn.stack_bidirectional_rnn contrib.rnn.stack_bidirectional_dynamic_rnn
        contrib.rnn.transpose_batch_time contrib.rnn.best_effort_input_batch_size
    """,
    "toolkit.client.flow.functional_ops": "map_fn scan foldl foldr",
    "toolkit.client.flow.tensor_array": "TensorArray",
}
