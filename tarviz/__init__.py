"""tarviz: see, stream, reshape and convert tar shards of machine-learning data."""

__version__ = "0.1.0"
