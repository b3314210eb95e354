"""Requests to a live viewer by its address, and patience."""

from __future__ import annotations

import time
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from browser_support import PATIENCE


def parts(url: str) -> tuple[int, str]:
    """Port, and what stands behind the question mark."""
    where = urlsplit(url)
    assert where.port is not None
    return where.port, where.query


def status(url: str, path: str, **headers: str) -> int:
    """Of a plain request for another path of a viewer's server."""
    port, _ = parts(url)
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.putrequest("GET", path, skip_host=True)
    for name, value in {"Host": f"127.0.0.1:{port}", **headers}.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def connected(url: str, **changes: str | None) -> Any:
    """The viewer's socket; `changes`: another query, or another origin."""
    from websockets.sync.client import connect  # noqa: PLC0415 an extra of the tests

    port, query = parts(url)
    origin = changes.get("origin", f"http://127.0.0.1:{port}")
    address = f"ws://127.0.0.1:{port}/socket?{changes.get('query', query)}"
    return connect(address, origin=origin, open_timeout=PATIENCE, max_size=None)


def until(condition: Callable[[], bool]) -> None:
    """Waits for something to happen."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
