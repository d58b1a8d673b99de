"""How values look, whatever shows them: numbers as colours, boxes and masks over pictures, point clouds, what a record's fields mean.

Nothing here reads shards or knows a widget; pictures are uint8 arrays and PNG bytes.
"""
