"""Outputs: named, rotated, written behind, renamed when complete, with a manifest beside them."""
