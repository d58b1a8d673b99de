"""The columns of shards: made in passes over them, kept as Parquet, seen while they grow."""
