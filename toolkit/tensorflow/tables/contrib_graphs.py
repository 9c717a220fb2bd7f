"""tf.contrib's names that rewrite graphs: rounding."""

HOMES: dict[str, str] = {
    "toolkit.client.quantizing.rewriting": """
        contrib.quantize.create_training_graph contrib.quantize.create_eval_graph
        contrib.quantize.experimental_create_training_graph contrib.quantize.experimental_create_eval_graph
    """,
}
