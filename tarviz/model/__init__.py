"""What everything else speaks of: types, errors, options, plugins. Imports nothing of tarviz above it."""
