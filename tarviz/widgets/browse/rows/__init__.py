"""The records that a scan has found, as rows: of each shard, of all together, their payloads, and the file for what memory cannot hold."""

from tarviz.widgets.browse.rows.all_rows import Rows
from tarviz.widgets.browse.rows.payloads import Want, payloads
from tarviz.widgets.browse.rows.shard_rows import RECORD_BITS, Row, Segment, ShardRows, places, row_id, split_id
from tarviz.widgets.browse.rows.spill import Spill

__all__ = ["RECORD_BITS", "Row", "Rows", "Segment", "ShardRows", "Spill", "Want", "payloads", "places", "row_id", "split_id"]
