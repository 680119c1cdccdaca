"""How the site is rendered: Sphinx at the root of the repository. What it executes and writes is begun by the extensions in docs/_ext."""

import os
import re
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / folder) for folder in ("docs/_ext", "tools")]


project = "Export Lab"
author = "the Export Lab authors"
copyright = "2026, " + author
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinxext.opengraph",
    "gallery_pages",
    "findings",
    "recipe_answers",
    "recipe_index",
    "benchmark_index",
    "own_exporter",
    "redirects",
    "known_errors",
    "error_box",
    "search_page",
    "missing_page",
    "support_matrix",
    "atlas",
    "across_time",
    "old_runtimes",
    "operators_table",
    "wrong_exports",
    "export_options",
    "outcome_colors",
    "web_manners",
    "web_runtime",
    "get_it",
    "page_footer",
    "front_page",
    "browser_demo",
    "page_demos",
    "api_pages",
    "graph_pictures",
]
include_patterns = ["index.md", "404.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "tutorials/**", "generated/**"]
exclude_patterns = [
    *("tutorials/[0-9]*.md", "**/.ipynb_checkpoints", "generated/**/*.py", "generated/**/*.ipynb", "generated/parts/**"),
    "generated/page-*/**",  # what make page leaves
    "generated/**/sg_execution_times.rst",
]

html_theme = "pydata_sphinx_theme"
html_title = project
html_static_path = ["docs/_static"]
templates_path = ["docs/_templates"]
html_sourcelink_suffix = ""  # the source of a lesson is its notebook
html_css_files = ["exportlab.css"]
html_js_files = [("errors.js", {"defer": "defer"})]
html_search_scorer = "generated/scorer.js"
html_favicon = "docs/_static/favicon.svg"
html_theme_options = {
    "logo": {"text": project, "image_light": "docs/_static/logo.svg", "image_dark": "docs/_static/logo.svg"},
    "navbar_align": "left",
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": {
        "generated/gallery/**": ["page-toc", "sg_download_links"],
        "generated/benchmarks/**": ["page-toc", "sg_download_links"],
        "generated/errors/**": ["page-toc"],
        "tutorials/[0-9]*": ["page-toc", "download-lesson"],
        "docs/**": ["page-toc"],
        "docs/support": [],
        "docs/atlas": [],
        "docs/options": [],
        "docs/versions": [],
        "index": [],
    },
    "footer_start": ["copyright"],
    "footer_end": ["stamp"],
}
html_sidebars = {
    **{page: [] for page in ("index", "404", "docs/support", "docs/atlas", "docs/errors", "docs/doctor", "generated/errors/**")},
    "generated/gallery/**": ["recipe-sidebar.html"],
}
html_domain_indices = False

nb_execution_mode = "off"  # the page is what is stored, and what is stored is what nbval compared
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
ogp_enable_meta_description = True
ogp_social_cards = {"enable": False}  # one card for all pages
copybutton_exclude = ".linenos, .gp, .go"
autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # as they are written, and not as objects print

sphinx_gallery_conf = {
    "examples_dirs": ["gallery", "benchmarks"],
    "gallery_dirs": ["generated/gallery", "generated/benchmarks"],
    "filename_pattern": f"^{re.escape(str(Path(__file__).parent / 'gallery'))}",  # what is executed: recipes, and no benchmarks
    "ignore_pattern": r"__init__\.py|^(captures|llama_layers|own_exporter)\.py$",  # parts of other pages
    "subsection_order": ["gallery/torch_export", "gallery/torch_onnx", "gallery/contributing"],
    "within_subsection_order": "gallery_pages.ReadingOrder",
    "parallel": 2,
    "reset_modules": ("matplotlib", "gallery_pages.fresh_page"),
    "first_notebook_cell": "from exportlab import quiet\n\nquiet()",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "min_reported_time": 3600,  # no bare times on a page
    "write_computation_times": False,
    "image_scrapers": ("graph_pictures.scrape",),
}

if "EXPORTLAB_PREVIEW" in os.environ:  # set by make preview
    import preview

    globals().update(preview.settings(extensions, sphinx_gallery_conf, html_theme_options))
