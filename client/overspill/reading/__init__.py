"""The bounded readers of text: chunks of content in, answers with caps out. No I/O, no asyncio.

The service feeds them decoded frames, a spooled capture the blocks of its file.
"""
