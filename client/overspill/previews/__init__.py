"""The part of a long text that is shown."""
