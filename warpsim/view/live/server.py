"""`LiveServer`: one page and one socket on the loopback, for whoever has the token.

`websockets` is the server because it is the smallest that is well kept: no dependencies, a quarter of the time to
import that viser takes, and HTTP enough for one page. It binds to 127.0.0.1 alone, needs the token for the page and for
the socket, refuses requests that name another host (DNS rebinding) or come from another origin (other sites' scripts),
and has no way to a file: its answers are two, the page in memory and an error.
"""

from __future__ import annotations

import hmac
import json
import queue
import secrets
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from warpsim.core.errors import InputError, WarpsimError
from warpsim.view.live.wishes import Wish

try:
    from websockets.datastructures import Headers
    from websockets.exceptions import ConnectionClosed
    from websockets.http11 import Request, Response
    from websockets.protocol import State
    from websockets.sync.server import ServerConnection, serve
except ImportError as error:
    raise WarpsimError("the live viewer needs websockets: pip install warpsim[live]") from error

ADDRESS = "127.0.0.1"
MAXIMUM_MESSAGE = 4096
"""Bytes of a message from a viewer."""
READY = "ready"
"""What a viewer says when it has drawn a state."""
_WAITING = 256
"""Wishes that are kept until they are asked for; more are dropped."""
_PATIENCE = 5.0
"""s until a thread that sends looks whether it is still wanted."""


class LiveServer:
    """Serves until it is closed, in threads of its own.

    Attributes:
        token: What the address must carry.
        port: Where.
    """

    def __init__(self, read: Callable[[str | bytes], Wish], *, port: int = 0) -> None:
        """Opens the port.

        Args:
            read: Makes a wish of a message, or raises `InputError`.
            port: 0: one that is free.
        """
        self.token = secrets.token_urlsafe(24)
        self._read = read
        self._page = b""
        self._wishes: queue.Queue[Wish] = queue.Queue(_WAITING)
        self._news = threading.Condition()
        self._state, self._state_number = b"", 0
        self._status, self._status_number = "", 0
        self._watchers = 0
        self._closed = False
        try:
            self._server = serve(
                self._attend,
                ADDRESS,
                port,
                process_request=self._answer,
                compression=None,
                server_header=None,
                max_size=MAXIMUM_MESSAGE,
            )
        except OSError as error:
            raise InputError(
                f"port {port} of {ADDRESS} cannot be opened: {error}; leave it out, or name another"
            ) from error
        self.port: int = self._server.socket.getsockname()[1]
        self._hosts = {f"{name}:{self.port}" for name in (ADDRESS, "localhost")}
        self._thread = threading.Thread(target=self._server.serve_forever, name="warpsim live", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """What to open; the token in it is the key."""
        return f"http://{ADDRESS}:{self.port}/?token={self.token}"

    @property
    def sources(self) -> str:
        """Where the page may connect to, for its content security policy."""
        return " ".join(f"ws://{host}" for host in sorted(self._hosts))

    @property
    def watchers(self) -> int:
        """Viewers that are connected."""
        return self._watchers

    def set_page(self, text: str) -> None:
        """What is served from now on."""
        self._page = text.encode()

    def publish(self, state: bytes | None = None, status: dict[str, Any] | None = None) -> None:
        """Hands out news; viewers that are slow skip states, so that nothing waits for them."""
        with self._news:
            if state is not None:
                self._state, self._state_number = state, self._state_number + 1
            if status is not None:
                self._status, self._status_number = json.dumps(status), self._status_number + 1
            self._news.notify_all()

    def wishes(self, wait: float = 0.0) -> list[Wish]:
        """What viewers have asked for since, in order.

        Args:
            wait: s to wait for the first.
        """
        found: list[Wish] = []
        try:
            found.append(self._wishes.get(timeout=wait) if wait else self._wishes.get_nowait())
            while True:
                found.append(self._wishes.get_nowait())
        except queue.Empty:
            return found

    def close(self) -> None:
        """Ends all connections and frees the port."""
        with self._news:
            self._closed = True
            self._news.notify_all()
        self._server.shutdown()
        self._thread.join(_PATIENCE)

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """The page, a refusal, or None: the socket is opened."""
        where = urlsplit(request.path)
        hosts, origins = (request.headers.get_all(name) for name in ("Host", "Origin"))
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _response(403, "Forbidden", b"wrong host\n")
        given = parse_qs(where.query).get("token", [""])
        if len(given) != 1 or not hmac.compare_digest(given[0].encode(), self.token.encode()):
            return _response(403, "Forbidden", b"wrong token: open the address as it was printed\n")
        if where.path == "/socket":
            if len(origins) != 1 or origins[0].lower() not in {f"http://{host}" for host in self._hosts}:
                return _response(403, "Forbidden", b"wrong origin\n")
            return None
        if where.path == "/":
            return _response(200, "OK", self._page, "text/html; charset=utf-8")
        return _response(404, "Not Found", b"nothing here\n")

    def _attend(self, connection: ServerConnection) -> None:
        """One viewer: its wishes are read here, states are sent by another thread."""
        with self._news:
            self._watchers += 1
        ready = threading.Event()
        threading.Thread(target=self._send, args=(connection, ready), daemon=True).start()
        try:
            for message in connection:
                if message == READY:
                    with self._news:
                        ready.set()
                        self._news.notify_all()
                    continue
                try:
                    self._wishes.put_nowait(self._read(message))
                except InputError:
                    connection.close(1008, "a message that cannot be read")
                except queue.Full:
                    continue
        except ConnectionClosed:
            pass
        finally:
            with self._news:
                self._watchers -= 1
                self._news.notify_all()

    def _send(self, connection: ServerConnection, ready: threading.Event) -> None:
        """States to one viewer, each when it is ready for one: the newest there is."""
        seen_state = seen_status = 0
        try:
            while not self._closed and connection.state is State.OPEN:
                with self._news:
                    state = self._state if self._state_number > seen_state and ready.is_set() else None
                    status = self._status if self._status_number > seen_status else None
                    if state is None and status is None:
                        self._news.wait(_PATIENCE)
                        continue
                    seen_status = self._status_number
                    if state is not None:
                        seen_state = self._state_number
                        ready.clear()
                for message in (status, state):
                    if message is not None:
                        connection.send(message)
        except (ConnectionClosed, OSError):
            return


def _response(status: int, reason: str, body: bytes, kind: str = "text/plain; charset=utf-8") -> Response:
    headers = Headers(
        [
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("Content-Security-Policy", "frame-ancestors 'none'"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Connection", "close"),
        ]
    )
    return Response(status, reason, headers, body)
