"""Text and what is known of it: size, lines, tokens, safe forms, and the bytes that are kept of it."""
