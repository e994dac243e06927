"""The shapes of tools' results: which parts are text, and the same result with a notice in their place."""
