"""Outputs: named, rotated, packed, written behind, renamed when complete, with a manifest beside them."""

from tarviz.formats.tar_header import TAR_END, Spans, tar_header, tar_member
from tarviz.write.inputs import Inputs
from tarviz.write.manifest import Part, Written, manifest_url, proven, read_manifest, source_entry
from tarviz.write.names import Exists, Names, counted, refuse_existing
from tarviz.write.output import Output
from tarviz.write.outputs import Outputs, Run
from tarviz.write.packing import Packer, Packing, packer, packing

__all__ = [
    "TAR_END",
    "Exists",
    "Inputs",
    "Names",
    "Output",
    "Outputs",
    "Packer",
    "Packing",
    "Part",
    "Run",
    "Spans",
    "Written",
    "counted",
    "manifest_url",
    "packer",
    "packing",
    "proven",
    "read_manifest",
    "refuse_existing",
    "source_entry",
    "tar_header",
    "tar_member",
]
