"""Has a process read botocore's descriptions of S3 once, and not again for each session: they are long JSON.

Who imports this has read them. A process that forks from it has them too.
"""

from __future__ import annotations

from functools import cache

import boto3
import botocore.session
from botocore.loaders import create_loader

botocore.session.create_loader = cache(create_loader)
boto3.session.Session().client(
    "s3", region_name="us-east-1", aws_access_key_id="unused", aws_secret_access_key="unused"
).close()
