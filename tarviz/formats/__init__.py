"""Bytes ⇄ columns ⇄ values: no input or output, no framework.

A file here knows one format and works on buffers it is handed: `tar` walks headers, `records` groups members,
`compression` inflates, `index` keeps columns, `example` and `tfrecord` speak TensorFlow's formats. `header_scan` holds
the functions worth replacing by native twins, should a benchmark ever ask for it.
"""
