"""Google's Agent Development Kit: its artifacts as captures.

runner = Runner(app=app, artifact_service=OverspillArtifactService(), session_service=sessions)
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from google.adk.artifacts import artifact_util
from google.adk.artifacts.base_artifact_service import ArtifactVersion, BaseArtifactService, ensure_part
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

from overspill import wire
from overspill.text.media_types import BINARY_TYPE
from overspill.transfer.sync import SyncClient

if TYPE_CHECKING:
    from overspill.wire import Entry

TOOL: Final = "adk-artifact"
"""The tool of every capture that is an artifact."""
_VERSION: Final = "adk-version"
_IS_TEXT: Final = "adk-text"
_METADATA: Final = "adk-metadata"
_TEXT: Final = "text/plain"
_USERS: Final = "user:"
_PAGE: Final = 1_000
_MAX_METADATA: Final = 1_000


class OverspillArtifactService(BaseArtifactService):
    """Keeps each version of an artifact as a capture, which every machine can read in parts.

    Its session is `APP/USER/session/SESSION`, or `APP/USER/user` for names that begin with `user:`; its call
    id is the file's name. A capture lives `ttl` seconds, or as long as the service's default, a day: give it
    as long as the sessions live. Two versions that are saved at once may get one number. Without `client`
    it is one for the service that `OVERSPILL_URL` and `OVERSPILL_KEY` name. Methods raise what `SyncClient`
    does, and `InputValidationError` for a part without text or bytes, or metadata of over 1,000 characters of
    JSON.
    """

    def __init__(self, client: SyncClient | None = None, *, ttl: int | None = None) -> None:
        self.client: SyncClient = SyncClient() if client is None else client
        self.ttl = ttl

    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        """Store a version, and return its number, counted from 0."""
        where = _session(app_name, user_id, filename, session_id)
        return await asyncio.to_thread(self._save, where, filename, ensure_part(artifact), custom_metadata)

    async def load_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> types.Part | None:
        """Return a version, or the last one; None if there is none."""
        where = _session(app_name, user_id, filename, session_id)
        return await asyncio.to_thread(self._load, where, filename, version)

    async def list_artifact_keys(
        self, *, app_name: str, user_id: str, session_id: str | None = None
    ) -> list[str]:
        """Return the names of the files of a session and of its user."""
        wheres = [_session(app_name, user_id, _USERS, None)]
        if session_id is not None:
            wheres.append(_session(app_name, user_id, "", session_id))
        found = [await asyncio.to_thread(self._entries, where, None) for where in wheres]
        return sorted({entry.call_id for entries in found for entry in entries})

    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        """Remove all versions."""
        where = _session(app_name, user_id, filename, session_id)
        for entry in await asyncio.to_thread(self._entries, where, filename):
            await asyncio.to_thread(self.client.delete, entry.id)

    async def list_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[int]:
        """Return the numbers of all versions."""
        where = _session(app_name, user_id, filename, session_id)
        return [_number(entry) for entry in await asyncio.to_thread(self._entries, where, filename)]

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        """Return what is known of all versions. The URI of each names its capture."""
        where = _session(app_name, user_id, filename, session_id)
        return [_described(entry) for entry in await asyncio.to_thread(self._entries, where, filename)]

    async def get_artifact_version(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> ArtifactVersion | None:
        """Return what is known of a version, or of the last one."""
        where = _session(app_name, user_id, filename, session_id)
        entry = _chosen(await asyncio.to_thread(self._entries, where, filename), version)
        return None if entry is None else _described(entry)

    def _save(
        self, where: str, filename: str, part: types.Part, custom_metadata: dict[str, Any] | None
    ) -> int:
        data, content_type = _bytes_of(part)
        entries = self._entries(where, filename)
        version = _number(entries[-1]) + 1 if entries else 0
        digest = hashlib.sha256(data).digest()
        self.client.put(
            data,
            call_id=filename,
            session=where,
            tool=TOOL,
            content_type=content_type,
            ttl=self.ttl,
            labels=_labels(part, version, custom_metadata),
            id=wire.capture_id(where, f"{filename}\n{version}", digest),
            sha256=digest,
        )
        return version

    def _load(self, where: str, filename: str, version: int | None) -> types.Part | None:
        entry = _chosen(self._entries(where, filename), version)
        if entry is None:
            return None
        data = self.client.content(entry.id)
        if entry.labels.get(_IS_TEXT):
            return types.Part(text=data.decode("utf-8", "surrogatepass"))
        part = types.Part.from_bytes(data=data, mime_type=entry.content_type)
        return None if artifact_util._is_rewind_tombstone(part) else part  # noqa: SLF001  (as ADK's own services)

    def _entries(self, where: str, filename: str | None) -> list[Entry]:
        """Return the captures of a file, or of all files of a session, the first version first."""
        entries = self.client.iterate(session=where, call_id=filename, tool=TOOL, page=_PAGE)
        return sorted(entries, key=_number)


def _session(app_name: str, user_id: str, filename: str, session_id: str | None) -> str:
    artifact_util.validate_path_segment(app_name, "app_name")
    artifact_util.validate_path_segment(user_id, "user_id")
    if filename.startswith(_USERS):
        return f"{app_name}/{user_id}/user"
    if session_id is None:
        raise InputValidationError("Session ID must be provided for session-scoped artifacts.")
    artifact_util.validate_path_segment(session_id, "session_id")
    return f"{app_name}/{user_id}/session/{session_id}"


def _bytes_of(part: types.Part) -> tuple[bytes, str]:
    """Return the bytes of a part, and their type."""
    if part.inline_data is not None and part.inline_data.data is not None:
        return part.inline_data.data, part.inline_data.mime_type or BINARY_TYPE
    if part.text is not None:
        return part.text.encode("utf-8", "surrogatepass"), _TEXT
    raise InputValidationError("An artifact needs text or inline_data: captures hold bytes, not references.")


def _labels(part: types.Part, version: int, custom_metadata: dict[str, Any] | None) -> dict[str, str]:
    labels = {_VERSION: str(version)}
    if part.inline_data is None:
        labels[_IS_TEXT] = "1"
    if custom_metadata:
        labels[_METADATA] = json.dumps(custom_metadata)
        if len(labels[_METADATA]) > _MAX_METADATA:
            raise InputValidationError(f"custom_metadata has more than {_MAX_METADATA} characters of JSON.")
    return labels


def _number(entry: Entry) -> int:
    return int(entry.labels.get(_VERSION, "0"))


def _chosen(entries: list[Entry], version: int | None) -> Entry | None:
    if version is None:
        return entries[-1] if entries else None
    return next((entry for entry in entries if _number(entry) == version), None)


def _described(entry: Entry) -> ArtifactVersion:
    return ArtifactVersion(
        version=_number(entry),
        canonical_uri=f"overspill://{entry.id}",
        custom_metadata=json.loads(entry.labels.get(_METADATA, "{}")),
        create_time=entry.created.timestamp(),
        mime_type=entry.content_type,
    )
