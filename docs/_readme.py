"""The README is the first page, its links made relative to `docs/`."""

from pathlib import Path


def on_page_markdown(markdown, page, config, **_):
    """Give `index.md` the README's text."""
    if page.file.src_uri != "index.md":
        return markdown
    text = Path(config.config_file_path).with_name("README.md").read_text(encoding="utf-8")
    return text.replace("](docs/", "](").replace('src="docs/', 'src="')
