"""The widget that shows the records of shards: controller, scan, rows, tiles, panes."""
