"""Dialects: the APIs of earlier systems, spoken over this engine. One file or folder per system, named like it.

A dialect here gives the names of its system (classes, functions, arguments) and translates them to pipelines, ops, the writer
and the runners; it reads, decodes and encodes nothing by itself. Where its text contradicts itself or its code, a table in
`docs/dialects` says what holds; every code sample of its text is a test in `tests/dialects/samples.toml`.
"""
