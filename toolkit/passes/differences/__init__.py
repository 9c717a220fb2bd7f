"""How two models differ."""
