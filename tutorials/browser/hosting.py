"""A page's files in one folder, and a web server for it. Not here: the browser, nor the model."""

from __future__ import annotations

import functools
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).parent
RUNTIME = HERE.parents[1] / "build" / "web" / "node_modules" / "onnxruntime-web" / "dist"
RUNTIME_FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
DIGITS = ("index.html", "recognise.js")  # of lesson 306
WORDS = ("complete.html", "complete.js", "tokens.js")  # of lesson 310


def copy_page(folder: Path, page: Sequence[str] = DIGITS) -> None:
    """Puts the files of a page and ONNX Runtime's three into `folder`; the model comes from you. `make web` fetches the three."""
    for file in (*(RUNTIME / name for name in RUNTIME_FILES), *(HERE / name for name in page)):
        shutil.copy(file, folder)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serves a folder to this machine alone; yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


class Silent(SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""
