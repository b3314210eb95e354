"""A real browser for tests of pages: headless Chromium, driven over its debugging protocol."""

from __future__ import annotations

import base64
import io
import json
import shutil
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
    "--remote-debugging-port=0",
)
PATIENCE = 120.0
"""s after which a browser that does not answer counts as broken."""


def require_browser() -> str:
    """The browser's program; skips the test where it or its driver is missing."""
    pytest.importorskip("websockets", reason="websockets drives the browser")
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        pytest.skip("no Chromium on this machine")
    return found


class Browser:
    """One tab; `errors` and `requests` collect what the page logs and asks for."""

    def __init__(self, program: str, folder: Path, width: int = 800, height: int = 600) -> None:
        from websockets.sync.client import connect  # noqa: PLC0415 an extra of the tests

        self.errors: list[str] = []
        self.requests: list[str] = []
        self._count = 0
        self._session: str | None = None
        self._open = ExitStack()
        arguments = [program, *FLAGS, f"--user-data-dir={folder}", f"--window-size={width},{height}", "about:blank"]
        self._process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            port = self._port(folder)
            address = f"ws://127.0.0.1:{port[0]}{port[1]}"
            self._socket = self._open.enter_context(connect(address, max_size=None, open_timeout=PATIENCE))
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
            self.call(
                "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
            )
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _port(folder: Path) -> list[str]:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            note = folder / "DevToolsActivePort"
            lines = note.read_text().split() if note.is_file() else []
            if len(lines) == 2:
                return lines
            time.sleep(0.05)
        raise TimeoutError("the browser did not open its debugging port")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a command and waits for its answer."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(self._socket.recv(timeout=PATIENCE))
            if answer.get("id") == self._count:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.errors.append(json.dumps(parameters["exceptionDetails"])[:2000])
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning", "assert"):
                self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in parameters["args"]))
            case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                self.errors.append(parameters["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; promises are awaited. `page` is the page's own handle."""
        return self.evaluate(f"(async () => {{ const page = await window.warpsim; return ({script}); }})()")

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression on any page; promises are awaited."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, json.dumps(result["exceptionDetails"])[:2000]
        return result["result"].get("value")

    def open(self, path: Path, wishes: str = "play=0&theme=light") -> None:
        """Opens a page from disk and waits until it has been drawn."""
        self.visit(f"{path.resolve().as_uri()}#{wishes}")

    def visit(self, url: str) -> None:
        """Opens a page by its address and waits until it has been drawn."""
        self.call("Page.navigate", url=url)
        until = time.monotonic() + PATIENCE
        while not self.evaluate("'warpsim' in window"):
            assert time.monotonic() < until, f"{url} did not load: {self.errors}"
            time.sleep(0.05)
        self.run("page.draw()")

    def picture(self) -> np.ndarray:
        """(height, width, 3) uint8."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))

    def click(self, x: float, y: float) -> None:
        """A click of the left button, in pixels from the upper left."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def key(self, key: str) -> None:
        """A key's press and release."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key)

    def close(self) -> None:
        """Ends the browser."""
        self._open.close()
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
