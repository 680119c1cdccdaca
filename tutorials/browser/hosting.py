"""Copy the files of a page into one folder, and serve the folder."""

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
DIGITS = ("index.html", "recognise.js")  # files of lesson 306
WORDS = ("complete.html", "complete.js", "tokens.js")  # files of lesson 310


def copy_page(folder: Path, page: Sequence[str] = DIGITS) -> None:
    """Copy the files of a page and the three files of ONNX Runtime, which `make web` downloads, into `folder`. Add the model yourself."""
    for file in (*(RUNTIME / name for name in RUNTIME_FILES), *(HERE / name for name in page)):
        shutil.copy(file, folder)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder only to this machine, and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


class Silent(SimpleHTTPRequestHandler):
    """Serves files without logging."""

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
