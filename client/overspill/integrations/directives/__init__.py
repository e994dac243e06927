"""Session directives in a user's message, and their use in frameworks."""
