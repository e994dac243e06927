"""All default rules: the forms of issuers, what stands around a secret, and private keys."""

from __future__ import annotations

from typing import Final

from overspill.redaction.clouds import CLOUDS
from overspill.redaction.contexts import CONTEXTS
from overspill.redaction.issuers import ISSUERS
from overspill.redaction.private_keys import PRIVATE_KEYS
from overspill.redaction.requests import REQUESTS

RULES: Final = (*CLOUDS, *ISSUERS, *REQUESTS, *CONTEXTS, *PRIVATE_KEYS)
