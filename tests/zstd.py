"""zstd as the standard library has it: from Python 3.14 on there is no package `backports.zstd`."""

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import compress, decompress
else:
    from backports.zstd import compress, decompress

__all__ = ["compress", "decompress"]
