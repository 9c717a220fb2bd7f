"""Clients of masters: sessions whose steps run in a cluster."""
