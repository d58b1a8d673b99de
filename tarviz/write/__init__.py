"""Outputs: named, rotated, packed, written behind, renamed when complete, with a manifest beside them."""

from tarviz.formats.tar_header import TAR_END, Spans, tar_header, tar_member
from tarviz.write.inputs import Inputs
from tarviz.write.manifest import Part, Written, manifest_url, proven, read_manifest, source_entry
from tarviz.write.names import Exists, Names, counted, refuse_existing
from tarviz.write.output import Output
from tarviz.write.outputs import Outputs, Run

__all__ = [
    "TAR_END",
    "Exists",
    "Inputs",
    "Names",
    "Output",
    "Outputs",
    "Part",
    "Run",
    "Spans",
    "Written",
    "counted",
    "manifest_url",
    "proven",
    "read_manifest",
    "refuse_existing",
    "source_entry",
    "tar_header",
    "tar_member",
]
