"""One module per family of rules; `registry.FAMILIES` lists them."""
