"""The bounded readers of text: chunks of content in, answers of limited size out. No I/O, no asyncio.

The service feeds them decoded frames. A spooled capture feeds them blocks of its file.
"""
