"""tf.lookup and tf.contrib.lookup: tables from keys to values."""

HOMES: dict[str, str] = {
    "toolkit.client.lookup.tables": """
        lookup.KeyValueTensorInitializer lookup.StaticHashTable lookup.TextFileIndex lookup.TextFileInitializer
        lookup.experimental.DenseHashTable contrib.lookup.LookupInterface contrib.lookup.TableInitializerBase
        contrib.lookup.InitializableLookupTableBase contrib.lookup.MutableHashTable
        contrib.lookup.TextFileIdTableInitializer contrib.lookup.TextFileStringTableInitializer
    """,
    "toolkit.client.lookup.vocabularies": """
        lookup.StaticVocabularyTable contrib.lookup.HashTable contrib.lookup.HasherSpec contrib.lookup.FastHashSpec
        contrib.lookup.StrongHashSpec contrib.lookup.IdTableWithHashBuckets contrib.lookup.index_table_from_file
        contrib.lookup.index_table_from_tensor contrib.lookup.index_to_string
        contrib.lookup.index_to_string_table_from_file contrib.lookup.index_to_string_table_from_tensor
        contrib.lookup.string_to_index contrib.lookup.string_to_index_table_from_file
        contrib.lookup.string_to_index_table_from_tensor
    """,
}
