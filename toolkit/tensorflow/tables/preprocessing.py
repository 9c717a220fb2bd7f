"""tf.contrib.learn.preprocessing: words and categories as numbers."""

HOMES: dict[str, str] = {
    "toolkit.client.lookup.documents": """
        contrib.learn.preprocessing.ByteProcessor contrib.learn.preprocessing.CategoricalProcessor
        contrib.learn.preprocessing.CategoricalVocabulary contrib.learn.preprocessing.TOKENIZER_RE
        contrib.learn.preprocessing.VocabularyProcessor contrib.learn.preprocessing.setup_processor_data_feeder
        contrib.learn.preprocessing.tokenizer
    """,
}
