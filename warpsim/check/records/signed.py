"""JSON files that tell whether they are as they were written, by a checksum over their content but not their layout."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpsim.core.errors import InputError

_KEY = "sha256"
_ADVICE = "use a copy that is whole, or make it again (a search: without --resume)"


def signed_text(data: Mapping[str, Any]) -> str:
    """Plain data and its checksum as a JSON object, one line per field.

    Indentation throughout would give each number of a motion a line. Digits are most of the work, so each field is
    encoded once, for the checksum and the file.
    """
    fields = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in data.items()]
    checksum = hashlib.sha256(f"{{{', '.join(fields)}}}".encode()).hexdigest()  # of what json.dumps(data) would give
    return "{\n " + ",\n ".join([*fields, f"{json.dumps(_KEY)}: {json.dumps(checksum)}"]) + "\n}\n"


def read_json(path: Path) -> dict[str, Any]:
    """The object that a JSON file holds.

    Raises:
        InputError: It cannot be read, or holds something else.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:  # bytes that are no text are a ValueError too
        raise InputError(f"{path} is damaged, or no JSON file: {error}; {_ADVICE}") from error
    if not isinstance(data, dict):
        raise InputError(f"{path} is damaged: its JSON holds a {type(data).__name__}, not an object; {_ADVICE}")
    return data


def verified(data: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Data as it was before it was signed.

    Raises:
        InputError: It is not what was written.
    """
    content = {name: value for name, value in data.items() if name != _KEY}
    if data.get(_KEY) != hashlib.sha256(json.dumps(content).encode()).hexdigest():
        raise InputError(
            f"{path} is damaged or was edited: its content does not have the checksum it was written with; {_ADVICE}"
        )
    return content
