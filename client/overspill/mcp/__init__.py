"""The Model Context Protocol: a server with the reading tools, and a proxy that guards other servers."""
