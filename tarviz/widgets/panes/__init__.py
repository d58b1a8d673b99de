"""How the parts of a record are drawn in any widget: panels of viewers, pictures to zoom and what lies over them, point clouds."""
