"""What the names of WebDataset are made of: where a process stands, shards read through the engine, stages, state."""
