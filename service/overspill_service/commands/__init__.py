"""The commands of an operator, besides `serve`."""
