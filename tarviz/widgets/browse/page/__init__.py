"""What the browser draws: the view and its parts, each a module with the style sheet it needs (filters have a room beside)."""
