"""The commands, one a module; each adds itself to an app with `add_to`."""
