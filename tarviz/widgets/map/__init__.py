"""The map: a point a record, by two columns or by what records look like; points that are circled choose records."""
