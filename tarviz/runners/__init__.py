"""Runners: what turns a pipeline into something that yields. One file per engine, named like it.

A file here provides `run(pipeline, **options)` and returns the engine's own iterable: values and order are those of `eager`,
what goes wrong is a `TarvizError` with shard, key and byte, or by `on_error="skip"` counted in the iterable's `report`.
The engine is imported in its file only.
"""

SUPPORT = (  # what runners are built with, not runners
    "ahead", "arguments", "batch_memory", "elsewhere", "plans", "shares", "shuffle_buffer", "stage_timer", "walk",
)  # fmt: skip
