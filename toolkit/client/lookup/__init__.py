"""Words and numbers as numbers: tables, vocabularies, readers of documents."""
