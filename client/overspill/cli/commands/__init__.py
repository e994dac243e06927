"""The commands, one a module, each under the name of its module."""
