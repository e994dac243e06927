"""Text and its properties: size, lines, tokens, safe forms, and the bytes that are stored."""
