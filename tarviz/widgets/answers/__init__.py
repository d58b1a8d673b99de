"""What a browser answers through the table over its shards: facets, completion, checks, and what is kept."""
