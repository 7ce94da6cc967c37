"""Build the documentation site into ``site/``: ``python -m scripts.site [FOLDER]``.

    documents ─copy─▶ a folder with the same layout ─Zensical─▶ pages ─▶ llms.txt, llms-full.txt ─▶ check of every link

The folder has the layout of the repository, so links between documents need no change. The navigation has the sections
and the order of docs/README.md. The build fails on a link without a target.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urldefrag, urlsplit

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "site"
INDEX = "docs/README.md"
# Documents outside docs/. Other files (pictures, examples, the systemd unit) are added if a document links to them.
ALSO = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "app/README.md", "bench/RESULTS.md")
# Parts that llms-full.txt leaves out: the section about Julia, and a page of 3,000 lines of SQL.
NOT_IN_FULL = ("Julia", "docs/queue-sql.md")
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#]+)(?:#[^)]*)?\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
DRAWING = {"name": "mermaid", "class": "mermaid", "format": "pymdownx.superfences.fence_code_format"}
SUMMARY = (
    "Batuta is a Python engine for background work on one SQLite file or a PostgreSQL cluster: cron jobs, durable task queues, "
    "pipelines, limits, supervised loops, health and a dashboard."
)


class Page(NamedTuple):
    section: str
    title: str
    path: str  # from the root of the repository
    about: str  # the text of the entry in docs/README.md


def main(arguments: list[str]) -> int:
    output = Path(arguments[0]).resolve() if arguments else OUTPUT
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        copy_documents(source)
        build(Path(folder), source, output)
    write_summaries(output)
    broken = list(broken_links(output))
    for each in broken:
        print(each, file=sys.stderr)
    print(f"site: {len([*output.rglob('*.html')])} pages in {output}, {len(broken)} broken links")
    return 1 if broken else 0


def documents() -> list[Path]:
    return [*(ROOT / name for name in ALSO), *sorted((ROOT / "docs").rglob("*.md"))]


def copy_documents(source: Path) -> None:
    """Copy the documents and every file to which one of them links."""
    for document in documents():
        _copy(document, source)
        for _, target in links_of(document):
            linked = (document.parent / target).resolve()
            if linked.is_file() and linked.is_relative_to(ROOT):
                _copy(linked, source)


def links_of(document: Path) -> list[tuple[str, str]]:
    """Return the text and the target of each link from a document to a file."""
    text = FENCE.sub("", document.read_text(encoding="utf-8"))
    return [(text, target) for text, target in LINK.findall(text) if "://" not in target]


def _copy(file: Path, source: Path) -> None:
    target = source / file.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)


def build(folder: Path, source: Path, output: Path) -> None:
    shutil.rmtree(output, ignore_errors=True)
    config = {
        "site_name": "Batuta",
        "site_description": SUMMARY,
        "docs_dir": source.name,
        "site_dir": "pages",
        "nav": navigation(),
        # Load no font from another host, so that the site works offline and no other host learns who reads it.
        "theme": {"font": False, "features": ["navigation.sections", "navigation.top", "content.code.copy"]},
        "markdown_extensions": {
            # Headings get the same anchors as on GitHub, because the documents are read in both places.
            "toc": {"permalink": True, "slugify": {"object": "pymdownx.slugs.slugify", "kwds": {"case": "lower"}}},
            "tables": {},
            "sane_lists": {},
            "pymdownx.highlight": {},
            "pymdownx.superfences": {"custom_fences": [DRAWING]},
        },
    }
    # JSON is valid YAML, and Zensical reads the configuration file of MkDocs.
    (folder / "mkdocs.yml").write_text(json.dumps(config), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "-f", "mkdocs.yml"],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        sys.exit(f"Zensical ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    shutil.copytree(folder / "pages", output)
    for document in documents():  # llms.txt links to the sources, which a model reads better than pages
        shutil.copyfile(document, output / document.relative_to(ROOT))


def pages() -> Iterator[Page]:
    """Yield the pages that docs/README.md lists, each once."""
    section, seen = "", set[str]()
    for line in (ROOT / INDEX).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        for _, target in LINK.findall(line):
            path = (ROOT / "docs" / target).resolve()
            name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
            if name.endswith(".md") and name not in seen:
                seen.add(name)
                yield Page(section, title_of(path), name, _about(line))


def title_of(document: Path) -> str:
    """Return the text of a document's first heading, or the file's name if the document has no heading."""
    heading = re.search(r"^# (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return heading[1].replace("`", "") if heading else document.stem


def _about(line: str) -> str:
    if line.startswith("|"):
        return line.strip("| ").partition(" | ")[0]
    return re.sub(LINK, r"\1", line.removeprefix("- ")).partition(": ")[2]


def navigation() -> list[object]:
    sections: dict[str, list[dict[str, str]]] = {}
    for page in pages():
        if page.path != "README.md":
            sections.setdefault(page.section, []).append({page.title: page.path})
    entries: list[object] = [{name: entries} for name, entries in sections.items()]
    return [{"Batuta": "README.md"}, *entries, {"Changes": "CHANGELOG.md"}, {"Contributing": "CONTRIBUTING.md"}]


def write_summaries(output: Path) -> None:
    """Write llms.txt (a list of the documents with their subjects) and llms-full.txt (the documents of the engine in
    one file).
    """
    lines, full, section = [f"# Batuta\n\n> {SUMMARY}"], [f"# Batuta\n\n> {SUMMARY}"], ""
    for page in pages():
        if page.section != section:
            section = page.section
            lines.append(f"\n## {section}\n")
        lines.append(f"- [{page.title}]({page.path})" + (f": {page.about}" if page.about else ""))
        if not {page.section, page.path} & {*NOT_IN_FULL}:
            full.append(f"<!-- {page.path} -->\n{(ROOT / page.path).read_text(encoding='utf-8')}")
    (output / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (output / "llms-full.txt").write_text("\n\n".join(full), encoding="utf-8")


class _Links(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.anchors |= {name for name in (found.get("id"), found.get("name")) if name}
        if tag != "base" and (target := found.get("href") or found.get("src")):
            self.targets.add(target)


def broken_links(site: Path) -> Iterator[str]:
    """Yield each link within the site whose target does not exist. A target is a file or an anchor."""
    read = {page: _Links(page.read_text(encoding="utf-8")) for page in site.rglob("*.html")}
    for page, links in sorted(read.items()):
        if page.name == "404.html":  # the links of this page are relative to the address that was not found
            continue
        for target in sorted(links.targets):
            if urlsplit(target).scheme or target.startswith("//"):
                continue
            path, anchor = urldefrag(target)
            file = (page.parent / unquote(path)).resolve() if path else page
            file = file / "index.html" if file.is_dir() else file
            known = read[file].anchors if file in read else set()
            if not file.is_file() or (anchor and file in read and unquote(anchor) not in known):
                yield f"{page.relative_to(site)}: {target} leads nowhere"
    for _, target in LINK.findall((site / "llms.txt").read_text(encoding="utf-8")):
        if not (site / target).is_file():
            yield f"llms.txt: {target} leads nowhere"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
