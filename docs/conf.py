"""The site: `make docs` writes it to build/docs; tutorials are executed, every other page is as it stands."""

import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(HERE.parent / "src"), os.environ.get("PYTHONPATH")])
)  # for the tutorials' kernels

import site_parts  # noqa: E402 (beside this file)

import pairmi  # noqa: E402

project, author, copyright = "pairmi", "the pairmi authors", "the pairmi authors"
release = version = pairmi.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_static"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header", "mystnb.unknown_mime_type"]  # pages that a script prints may begin a section one level down

default_role = "code"  # docstrings have single backticks
nb_execution_mode = os.environ.get("PAIRMI_TUTORIALS", "force")  # off: as text only
nb_execution_timeout = 600  # seconds a cell: a busy machine is no mistake
nb_execution_raise_on_error = True
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "undoc-members": False}

html_theme = "furo"
html_title = f"pairmi {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {"source_repository": site_parts.REPOSITORY, "source_branch": "main", "source_directory": "docs/"}


def setup(app: Any) -> None:
    """What is read from the code goes into the pages as they are read; notebooks go beside them."""
    app.connect("source-read", site_parts.fill)
    app.connect("env-get-outdated", lambda *_: ["measured"])  # lists pages that come and go
    app.connect("build-finished", site_parts.notebooks)
