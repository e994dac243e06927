"""Recordings of terminals as asciicast: https://docs.asciinema.org/manual/asciicast/v3/ (and v2)."""
