"""Conditions on records: their text is parsed into functions of a record, never evaluated as Python."""
