"""A web server that answers each POST with the result of a function of its body. The lesson defines the function and the model."""

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
    """The request is invalid."""


class Handler(BaseHTTPRequestHandler):
    """Handles one connection in its own thread."""

    protocol_version = "HTTP/1.1"  # allow several requests per connection
    disable_nagle_algorithm = True  # send the body at once, without waiting for the client's acknowledgement of the headers
    timeout = 10  # seconds until a silent client is disconnected
    server: Server

    def do_POST(self) -> None:
        """Send the answer, or an error message."""
        try:
            self.reply(200, self.server.answer(self.body()))
        except BadRequest as error:
            self.close_connection = True  # the start of the next request is unknown
            self.reply(400, {"error": str(error)})

    def body(self) -> bytes:
        """Return the body of the request, at most 10,000 bytes."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 7):
            raise BadRequest("send a body of at most 10,000 bytes with its Content-Length")
        body = self.rfile.read(int(length))  # read before rejecting: closing a connection with unread bytes resets it
        if len(body) > 10_000:
            raise BadRequest(f"send at most 10,000 bytes, not {len(body):,}")
        return body

    def reply(self, status: int, content: dict[str, Any]) -> None:
        """Send a JSON response."""
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *details: Any) -> None:
        """Log nothing, because the notebook would be full of it."""


class Server(ThreadingHTTPServer):
    """Uses one thread for each connection."""

    daemon_threads = False  # wait for running requests when the server closes
    request_queue_size = 64  # length of the queue for new connections; the default is 5
    answer: Answer


@contextmanager
def serving(answer: Answer) -> Iterator[Address]:
    """Serve only to this machine, and yield the address."""
    server = Server(("127.0.0.1", 0), Handler)  # port 0: any free port
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
        BadRequest: the body has another format.
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
    """Send one request over a new connection."""
    connection = HTTPConnection(*address)
    try:
        return asked(connection, body)
    finally:
        connection.close()
