"""What a notebook shows for a record or an index: `model.types` looks this module up by its name when a cell ends in one."""

from tarviz.viewers.html import bundle as bundle
