"""Long and failing outputs of real tools, each with the line that says why, as a person would name it."""
