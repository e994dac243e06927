"""What an operator runs beside `serve`."""
