"""Keeps pytest out of the cases, which run in the environments of the frameworks alone: see `runs`."""

import os

collect_ignore = [] if "KIT_FRAMEWORK" in os.environ else ["kit"]
