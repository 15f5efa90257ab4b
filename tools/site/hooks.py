"""Hooks of mkdocs: the navigation comes from the index pages, and links out of docs/ lead to the repository."""

import posixpath
import re
from pathlib import Path

# ENTRY is a link to a page that begins an item of a list or a row of a table.
ENTRY = re.compile(r"^(?:[-*] |\| *)\[([^\]]+)\]\(([\w./-]+\.md)\)")

# LINK is the target of a link or an image that goes up, or of a definition.
LINK = re.compile(r"(\]\(|^\[[^\]\n]+\]: )(\.\.?/[^)\s]*)", re.MULTILINE)

# TITLED is the first line of fenced code with words behind its language.
TITLED = re.compile(r"^(```\w+) (?:part of )?(\S+\.\w+)?.*", re.MULTILINE)

FENCE = re.compile(r"(^(?:```|~~~).*?^(?:```|~~~)[ \t]*$)", re.MULTILINE | re.DOTALL)


def on_config(config):
    """Derives the navigation from docs/README.md."""
    config.nav = ["README.md", *entries(Path(config.docs_dir), "README.md")]
    return config


def entries(docs, index):
    """Returns the navigation of an index page: a section for each heading, and one for each index that it links."""
    top, section = [], None
    for line in (docs / index).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = []
            top.append({line[3:].strip(): section})
        elif m := ENTRY.match(line):
            title, page = m[1].replace("`", ""), posixpath.join(posixpath.dirname(index), m[2])
            if posixpath.basename(page) == "README.md":
                page = [page, *entries(docs, page)]
            (top if section is None else section).append({title: page})
    return [e for e in top if e not in [{title: []} for title in e]]


def on_page_markdown(markdown, page, config, files):
    """Turns links to files outside of docs/ into links to the repository, and files named with code into its title."""
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))

    def outside(m):
        path, hash_, fragment = m[2].partition("#")
        name = posixpath.normpath(posixpath.join(folder, path))
        if name.startswith("docs/"):
            if name.endswith("/README.md") or files.get_file_from_path(name[len("docs/"):]):
                return m[0]
        kind = "tree" if (Path(config.config_file_path).parent / name).is_dir() else "blob"
        return f"{m[1]}{config.repo_url}/{kind}/main/{name}{hash_}{fragment}"

    def titled(m):
        return m[1] + (f' title="{m[2]}"' if m[2] else "")

    parts = FENCE.split(markdown)
    return "".join(TITLED.sub(titled, part) if i % 2 else LINK.sub(outside, part) for i, part in enumerate(parts))
