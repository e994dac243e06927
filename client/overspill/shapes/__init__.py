"""What tools return, in all its forms: what in it is text, and the same with a notice in its place."""
