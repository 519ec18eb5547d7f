"""Builds the site from files that live elsewhere in the repository, and typesets its mathematics.

`index.md`, `changelog.md` and `contributing.md` take the text of the files at the top of the repository, and the
notebooks join the pages. Equations between dollar signs become MathML, which browsers display without a script.
"""

import html
import re
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

PAGES = {"index.md": "README.md", "changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
#: links of the files at the top, as the site has them
LINKS = (
    ("](docs/", "]("),
    ('src="docs/', 'src="'),
    ("](CHANGELOG.md)", "](changelog.md)"),
    ("](CONTRIBUTING.md)", "](contributing.md)"),
    ("[Apache-2.0](LICENSE)", "Apache-2.0"),
)
#: links to files of the repository that are no pages
FILE = re.compile(r"\[[^\]]*\]\(((?:tests|benchmarks)/[^)]*)\)")
EQUATION = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)


@event_priority(100)  # before mkdocs-jupyter, which converts the notebooks that it finds
def on_files(files, config, **_):
    """Adds the notebooks."""
    root = Path(config.config_file_path).parent
    for path in sorted(root.glob("notebooks/*.ipynb")):
        files.append(File(f"notebooks/{path.name}", str(root), config.site_dir, config.use_directory_urls))
    return files


def on_page_markdown(markdown, page, config, **_):
    """Gives the pages of `PAGES` the text of their files."""
    name = PAGES.get(page.file.src_uri)
    if name is None:
        return markdown
    text = Path(config.config_file_path).with_name(name).read_text(encoding="utf-8")
    for link, target in LINKS:
        text = text.replace(link, target)
    return FILE.sub(r"`\1`", text)


def on_page_content(content, **_):
    """Typesets equations."""

    def typeset(match):
        display = "block" if match[1] == "div" else "inline"
        return convert(html.unescape(match[2]), display=display)

    return EQUATION.sub(typeset, content)
