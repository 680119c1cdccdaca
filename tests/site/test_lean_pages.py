"""Pages lose what nobody sees: elements that colour nothing, indents and comments; and nothing that is seen, read or linked."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import lean_pages
import pytest

CSS = """
html[data-theme="light"] .highlight pre { line-height: 125%; }
html[data-theme="light"] .highlight { background: #fefefe; color: #080808 }
html[data-theme="light"] .highlight .n { color: #080808 } /* Name */
html[data-theme="light"] .highlight .nn { color: #080808; font-weight: bold } /* Name.Namespace */
html[data-theme="light"] .highlight .nv { color: #A12236 } /* Name.Variable */
html[data-theme="light"] .highlight .p { color: #080808 } /* Punctuation */
html[data-theme="light"] .highlight .go { color: #080808 } /* Generic.Output */
html[data-theme="dark"] .highlight { background: #2b2b2b; color: #F8F8F2 }
html[data-theme="dark"] .highlight .n { color: #F8F8F2 } /* Name */
html[data-theme="dark"] .highlight .p { color: #ABE338 } /* Punctuation */
"""
CODE = '<pre><span></span><span class="k">def</span> <span class="n">f</span><a href="#x"><span class="n">Tensor</span></a>\n</pre>'


def test_what_has_the_colour_of_all_code_in_every_theme_is_colorless() -> None:
    assert lean_pages.colorless(CSS) == {"n"}, "bold, coloured in one theme, and left out where code is copied: these stay"


def test_a_style_sheet_without_the_colour_of_code_is_an_error() -> None:
    with pytest.raises(ValueError, match="nobody can tell which"):
        lean_pages.colorless(CSS.replace(" color: #080808 }", " }").replace(" color: #F8F8F2 }", " }"))


def test_code_keeps_its_text_its_colours_and_its_links() -> None:
    after = lean_pages.thin(f'<p><span class="n">1</span></p>{CODE}', {"n"})
    thinned = CODE.replace('<span class="n">f</span>', "f")
    assert after == f'<p><span class="n">1</span></p>{thinned}', "only code, and of that not what is inside a link"


def test_every_page_of_a_site_is_thinned_once(tmp_path: Path) -> None:
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static/pygments.css").write_text(CSS)
    page = tmp_path / "a.html"
    page.write_text(CODE)
    app = SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html"))
    lean_pages.thin_all(app, ValueError())
    assert page.read_text() == CODE, "not of a build that failed"
    lean_pages.thin_all(app, None)
    once = page.read_text()
    lean_pages.thin_all(app, None)
    assert page.read_text() == once != CODE
    assert re.sub("<.*?>", "", once) == re.sub("<.*?>", "", CODE)


def test_a_font_goes_that_no_page_asks_for(tmp_path: Path) -> None:
    files = [tmp_path / "_static" / path for path in lean_pages.ASKED_BY]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (tmp_path / "_static/pygments.css").write_text(CSS)
    (tmp_path / "a.html").write_text('<i class="fa-regular fa-copy"></i>')
    lean_pages.thin_all(SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html")), None)
    assert [file.name for file in files if file.exists()] == ["fa-regular-400.woff2"]


PAGE = """<head>
  <!-- a
    comment -->

  <style>
    a { color: red }
  </style>
  <script>
    // <!-- not a comment
    const text = `a
      b`;
  </script>
</head>
<p
   title="one
  two">Words   and
    <b>more</b><!-- x
 --> <i>words</i></p>
<pre class="x">
  a <b>b</b>

  <!-- c -->
</pre>
<textarea>

  a</textarea>
"""


def test_indents_and_comments_go_where_they_are_not_seen() -> None:
    after = lean_pages.minify(PAGE)
    assert lean_pages.minify(after) == after
    for name in ("style", "script", "pre", "textarea"):
        block = re.compile(rf"<{name}.*?</{name}>", re.DOTALL)
        assert block.findall(after) == block.findall(PAGE) != []
        after = block.sub("", after)
    assert after == '<head>\n\n\n</head>\n<p\n   title="one\n  two">Words   and\n<b>more</b> <i>words</i></p>\n\n\n'
