"""Redis for the tests."""
