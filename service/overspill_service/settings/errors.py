"""Errors for settings that cannot be used."""


class SettingError(Exception):
    """A setting that cannot be used. The message names it and where it came from."""
