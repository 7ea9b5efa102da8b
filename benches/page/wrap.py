"""Wraps the page's prose, whatever the figures in it."""

import textwrap

COLUMNS = 120
# Lines that stay as they are: headings, tables, pictures.
AS_THEY_ARE = ("#", "|", "!")


def wrapped(page):
    """The page with paragraphs and list items filled to the same width. Code stays as it is."""
    lines, paragraph, code = [], [], False
    for line in [*page.split("\n"), ""]:
        fence = line.startswith("```")
        if code or fence or not line or line.startswith((*AS_THEY_ARE, "- ")):
            lines += fill(paragraph)
            paragraph = []
        if not (code or fence) and line and not line.startswith(AS_THEY_ARE):
            paragraph.append(line.strip())
        else:
            lines.append(line)
        code ^= fence
    return "\n".join(lines[:-1])


def fill(paragraph):
    indent = "  " if paragraph and paragraph[0].startswith("- ") else ""
    return textwrap.wrap(" ".join(paragraph), COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
