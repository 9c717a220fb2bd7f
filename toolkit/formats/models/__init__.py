"""GraphDefs, MetaGraphDefs and SavedModels: binary, text and JSON, whole or split, and their variables."""
