"""A web server that answers each POST with what a function makes of its body. Not here: the function, and the model behind it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[bytes], dict[str, Any]]
Address = tuple[str, int]


class BadRequest(ValueError):
    """What the client sent cannot be answered."""


class Handler(BaseHTTPRequestHandler):
    """One connection, which has a thread of its own."""

    protocol_version = "HTTP/1.1"  # a connection may be used again
    disable_nagle_algorithm = True  # send the body at once, not when the client has acknowledged the headers
    timeout = 10  # seconds for which a silent client keeps its thread
    server: Server

    def do_POST(self) -> None:
        """Answer, or say what is wrong."""
        try:
            self.reply(200, self.server.answer(self.body()))
        except BadRequest as error:
            self.close_connection = True  # who knows where the next request begins
            self.reply(400, {"error": str(error)})

    def body(self) -> bytes:
        """Return what was sent, at most 10,000 bytes."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 7):
            raise BadRequest("send a body of at most 10,000 bytes, and its length")
        body = self.rfile.read(int(length))  # before any refusal: who closes a connection with bytes unread resets it
        if len(body) > 10_000:
            raise BadRequest(f"send at most 10,000 bytes, not {len(body):,}")
        return body

    def reply(self, status: int, content: dict[str, Any]) -> None:
        """Send JSON."""
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *details: Any) -> None:
        """Nothing: the page would fill with it."""


class Server(ThreadingHTTPServer):
    """One thread for each connection."""

    daemon_threads = False  # closing waits for the answers that are under way
    request_queue_size = 64  # connections that may wait to be taken; the default is 5
    answer: Answer


@contextmanager
def serving(answer: Answer) -> Iterator[Address]:
    """Serve to this machine alone, and yield the address."""
    server = Server(("127.0.0.1", 0), Handler)  # port 0: any that is free
    server.answer = answer
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield "127.0.0.1", server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def text_of(body: bytes) -> str:
    """Return the text of `{"text": "…"}`.

    Raises:
        BadRequest: the body is something else.
    """
    try:
        request = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest("the body is not JSON") from error
    if not isinstance(request, dict) or not isinstance(request.get("text"), str):
        raise BadRequest('send {"text": "…"}')
    return request["text"]


def asked(connection: HTTPConnection, body: str | bytes) -> tuple[int, dict[str, Any]]:
    """Send a body, and return the status and the answer."""
    connection.request("POST", "/", body)
    reply = connection.getresponse()
    return reply.status, json.loads(reply.read())


def once(address: Address, body: str | bytes) -> tuple[int, dict[str, Any]]:
    """Ask by a connection for this body alone."""
    connection = HTTPConnection(*address)
    try:
        return asked(connection, body)
    finally:
        connection.close()
