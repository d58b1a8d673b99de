"""From the bytes of a shard to its records: blocks, spans, index, grouped records. The only place that joins stores and formats."""
