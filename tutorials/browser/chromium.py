"""Control a page in headless Chromium by the DevTools protocol: draw, click and take screenshots."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

COMMAND = (
    "chromium", "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--hide-scrollbars", "--no-first-run", "--no-proxy-server", "--window-size=520,460",
)  # fmt: skip
PATIENCE = 120  # seconds to wait for an answer

Point = tuple[float, float]


class PageError(RuntimeError):
    """The browser rejected a command, or a script on the page raised an error."""


class Page:
    """An open page."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._received = b""
        self._sent = 0
        self._session: str | None = None

    def open(self, address: str) -> None:
        """Open an address in a new tab, which the other methods then use."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Runtime.enable")
        self.call("Page.navigate", url=address)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the protocol and return its answer.

        Raises:
            PageError: the command was rejected, or a script raised an error. TimeoutError: no answer arrived.
        """
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        return self._answer_to(self._sent)

    def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression, or of its promise."""
        return self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)["result"].get("value")

    def wait_for(self, script: str) -> Any:
        """Wait until an expression is true, and return its value.

        Raises:
            TimeoutError: it did not become true in time.
        """
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if value := self.evaluate(script):
                return value
            time.sleep(0.02)
        raise TimeoutError(f"never true on the page: {script}")

    def stroke(self, points: Sequence[Point]) -> None:
        """Drag the mouse through `points`, in pixels of the window."""
        self._mouse("mousePressed", points[0])
        for point in points[1:]:
            self._mouse("mouseMoved", point)
        self._mouse("mouseReleased", points[-1])

    def screenshot(self) -> bytes:
        """Return a screenshot of the window as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def _mouse(self, kind: str, point: Point) -> None:
        pressed = 0 if kind == "mouseReleased" else 1
        self.call("Input.dispatchMouseEvent", type=kind, x=point[0], y=point[1], button="left", buttons=pressed, clickCount=1)

    def _answer_to(self, number: int) -> dict[str, Any]:
        while True:
            message = self._next_message()
            if message.get("method") == "Runtime.exceptionThrown":
                raise PageError(json.dumps(message["params"]["exceptionDetails"]))
            if message.get("id") == number:
                if "error" in message:
                    raise PageError(message["error"]["message"])
                return message["result"]

    def _next_message(self) -> dict[str, Any]:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._answers], [], [], PATIENCE)
            if not ready:
                raise TimeoutError(f"the browser did not answer within {PATIENCE} seconds")
            if not (part := os.read(self._answers, 1 << 16)):
                raise PageError("the browser ended")
            self._received += part
        message, _, self._received = self._received.partition(b"\0")
        return json.loads(message)


@contextmanager
def opened(address: str) -> Iterator[Page]:
    """Start headless Chromium, yield the page at `address`, and end Chromium."""
    from_us, commands = os.pipe()
    answers, to_us = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{from_us} 4>&{to_us}', "bash", *COMMAND, f"--user-data-dir={profile}"],
            pass_fds=(from_us, to_us),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(from_us)
        os.close(to_us)
        try:
            page = Page(commands, answers)
            page.open(address)
            yield page
        finally:
            browser.terminate()
            browser.wait()
            os.close(commands)
            os.close(answers)
