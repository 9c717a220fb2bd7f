"""tf.estimator."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.estimator.run_config": "estimator.RunConfig estimator.ModeKeys",
    "toolkit.tensorflow.estimator.spec": "estimator.EstimatorSpec",
    "toolkit.tensorflow.estimator.estimator": "estimator.Estimator estimator.WarmStartSettings",
    "toolkit.tensorflow.estimator.inputs": "estimator.inputs.numpy_input_fn estimator.inputs.pandas_input_fn",
    "toolkit.tensorflow.estimator.export_outputs": """
        estimator.export.ClassificationOutput estimator.export.ExportOutput estimator.export.PredictOutput
        estimator.export.RegressionOutput
    """,
    "toolkit.tensorflow.estimator.receivers": """
        estimator.export.ServingInputReceiver estimator.export.TensorServingInputReceiver
        estimator.export.build_parsing_serving_input_receiver_fn
        estimator.export.build_raw_serving_input_receiver_fn
        estimator.experimental.build_raw_supervised_input_receiver_fn
    """,
}
