"""Write the generated files that pages include or load: atomically, and only if they changed."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "generated"
PARTS, STATIC = GENERATED / "parts", GENERATED / "static"


def write(path: Path, content: str | bytes) -> None:
    """Write a file atomically, and only if it changed, so that Sphinx doesn't read it again."""
    new = content.encode() if isinstance(content, str) else content
    if path.exists() and path.read_bytes() == new:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.new")
    draft.write_bytes(new)
    draft.replace(path)


def publish_static(app: Sphinx) -> None:
    """Add generated/static to the site. conf.py can't list it, because it doesn't exist before an extension writes to it."""
    folder = str(STATIC.relative_to(ROOT))
    if folder not in app.config.html_static_path:
        app.config.html_static_path.append(folder)
