from pathlib import Path


def run(data: Path | None, *, keep: bool) -> None: ...
