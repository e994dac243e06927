"""The operations outside of the hot path, by boto3 in a few threads."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, SSLError

from overspill_service.errors import StoreUnavailable
from overspill_service.objects import StoredObject
from overspill_service.objects.keys import owner_of
from overspill_service.objects.s3.credentials import ChainCredentials, may_refuse_credentials
from overspill_service.objects.s3.failures import NO_CREDENTIALS, NOT_S3, failure, untrusted
from overspill_service.objects.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from botocore.model import OperationModel
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import (
        CreateBucketRequestTypeDef,
        ListObjectsV2RequestTypeDef,
        ObjectIdentifierTypeDef,
    )

    from overspill_service.objects.s3.location import Location

T = TypeVar("T")

THREADS: Final = 4
CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 20
ATTEMPTS: Final = 4
CUT_LISTING: Final = "the object store's answer is not a whole page of a listing"
_NO_MULTI_DELETE: Final = frozenset(
    {"BadDigest", "InvalidRequest", "MethodNotAllowed", "MissingContentMD5", "NotImplemented", NOT_S3}
)
"""Answers of stores without a multi-delete, or without the checksum that boto3 sends for it."""
_ELEMENTS: Final = {"DeleteObjects": b"DeleteResult", "GetBucketVersioning": b"Versioning"}
"""The elements of the answers to operations. botocore treats any other document as an empty answer."""
_HOME_REGION: Final = "us-east-1"
"""The region of a bucket that names none. A request to create a bucket there must not name it."""


class Bucket:
    """One bucket. Its methods raise `StoreUnavailable` and `StoreFull` only."""

    def __init__(self, location: Location, *, deadline: float, page_size: int) -> None:
        """`deadline`: seconds for one call with its retries. `page_size`: keys in a page, up to 1000.

        Raises `ValueError` if the AWS configuration cannot be used.
        """
        self._location = location
        self._page_size = page_size
        try:
            self._configure()
        except BotoCoreError as error:
            raise ValueError(f"the AWS configuration cannot be used: {error}") from error
        self._threads = Threads("s3", THREADS, deadline)

    def _configure(self) -> None:
        core = botocore.session.Session(profile=self._location.profile)
        self.credentials = ChainCredentials(self._location.profile, self._location.region)
        core.register_component("credential_provider", self.credentials)
        session = boto3.Session(region_name=self._location.region, botocore_session=core)
        self.region = session.region_name or _HOME_REGION
        self.ca_bundle: str | None = core.get_config_variable("ca_bundle")
        self._client = _connect(session, self._location, self.region)

    @property
    def endpoint(self) -> str:
        """The URL of the store: the configured one, or that of the region at AWS."""
        return self._client.meta.endpoint_url

    async def page(self, prefix: str, token: str | None) -> tuple[Sequence[StoredObject], str | None]:
        """Return one page of a listing and the token of the next. It may have names that are not keys."""
        request: ListObjectsV2RequestTypeDef = {
            "Bucket": self._location.bucket,
            "Prefix": self._location.prefix + prefix,
            "MaxKeys": self._page_size,
        }
        if token:
            request["ContinuationToken"] = token
        answer = await self._run(lambda: self._client.list_objects_v2(**request), owner_of(prefix))
        found = [
            StoredObject(
                each["Key"].removeprefix(self._location.prefix),
                each["Size"],
                each["LastModified"].timestamp(),
            )
            for each in answer.get("Contents", ())
        ]
        following = answer.get("NextContinuationToken")
        # A removal that misses objects would be undone: an answer that was cut is not the end of a listing.
        if answer.get("IsTruncated") != (following is not None):
            raise StoreUnavailable(CUT_LISTING)
        return found, following

    async def delete(self, keys: Sequence[str]) -> Sequence[str]:
        """Delete up to 1000 keys with one request. Return those that were not deleted."""
        objects: Sequence[ObjectIdentifierTypeDef] = [{"Key": self._location.prefix + key} for key in keys]
        try:
            answer = await self._run(
                lambda: self._client.delete_objects(
                    Bucket=self._location.bucket, Delete={"Objects": objects, "Quiet": True}
                ),
                owner_of(keys[0]),
            )
        except StoreUnavailable as error:
            if _code(error.__cause__) in _NO_MULTI_DELETE:
                return keys
            raise
        return [error["Key"].removeprefix(self._location.prefix) for error in answer.get("Errors", ())]

    async def is_versioned(self) -> bool | None:
        """Return whether the bucket keeps versions, or did so. None if the store does not say."""
        try:
            answer = await self._run(lambda: self._client.get_bucket_versioning(Bucket=self._location.bucket))
        except StoreUnavailable:
            return None
        return "Status" in answer

    async def create(self) -> None:
        """Create the bucket. Do nothing if this account has it already."""
        request: CreateBucketRequestTypeDef = {"Bucket": self._location.bucket}
        if self.region != _HOME_REGION:
            request["CreateBucketConfiguration"] = {"LocationConstraint": cast("Any", self.region)}
        try:
            await self._run(lambda: self._client.create_bucket(**request))
        except StoreUnavailable as error:
            if _code(error.__cause__) != "BucketAlreadyOwnedByYou":
                raise

    def close(self) -> None:
        self._threads.close()
        self.credentials.close()
        self._client.close()

    async def _run(self, call: Callable[[], T], owner: str = "") -> T:
        try:
            return await self._authorised(call, owner)
        except TimeoutError as error:
            raise StoreUnavailable(
                f"no answer from the object store within {self._threads.deadline:g} s"
            ) from error
        except ClientError as error:
            raise self._refusal(error) from error
        except NoCredentialsError as error:
            raise StoreUnavailable(NO_CREDENTIALS) from error
        except SSLError as error:
            raise untrusted(error) from error
        except BotoCoreError as error:
            raise StoreUnavailable(
                f"the connection to the object store failed ({type(error).__name__})"
            ) from error

    async def _authorised(self, call: Callable[[], T], owner: str) -> T:
        """Return the result of a call. Call again if its credentials were refused and there are others."""
        used = await self.credentials.current()
        try:
            result = await self._threads.run(owner, call)
        except ClientError as error:
            if not may_refuse_credentials(error.response["ResponseMetadata"]["HTTPStatusCode"]):
                raise
            if not await self.credentials.have_changed(used):
                raise
            result = await self._threads.run(owner, call)
        self.credentials.were_accepted()
        return result

    def _refusal(self, error: ClientError) -> Exception:
        meta = error.response["ResponseMetadata"]
        region = meta["HTTPHeaders"].get("x-amz-bucket-region", "")
        return failure(meta["HTTPStatusCode"], _code(error), bucket=self._location.bucket, region=region)


def _connect(session: boto3.Session, location: Location, region: str) -> S3Client:
    client = session.client(
        "s3",
        region_name=region,
        endpoint_url=location.endpoint,
        config=Config(
            s3={"addressing_style": location.addressing},
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            max_pool_connections=THREADS,
            proxies={},  # as on the hot path: the environment's proxies are not for the store
            request_checksum_calculation="when_required",  # not every store knows the newer checksums
            response_checksum_validation="when_required",
        ),
    )
    for operation in _ELEMENTS:
        client.meta.events.register(f"before-parse.s3.{operation}", _refuse_others)
    return client


def _refuse_others(operation_model: OperationModel, response_dict: dict[str, Any], **_: Any) -> None:
    """Raise an error for a success that is not S3's answer to this operation: perhaps nothing was done."""
    element = _ELEMENTS[operation_model.name]
    if response_dict["status_code"] == HTTPStatus.OK and element not in response_dict["body"]:
        response_dict["status_code"] = HTTPStatus.BAD_REQUEST
        response_dict["body"] = b"<Error><Code>%s</Code></Error>" % NOT_S3.encode()


def _code(error: BaseException | None) -> str:
    return error.response["Error"].get("Code", "") if isinstance(error, ClientError) else ""
