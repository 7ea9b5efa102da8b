"""Charts as SVG: bars and lines. They follow the reader's light or dark scheme."""

import math
from xml.sax.saxutils import escape

WIDTH = 720
STYLE = """
  .paper { fill: #ffffff } .text { fill: #1f2328 } .quiet { fill: #59636e } .grid { stroke: #d1d9e0 }
  .ours { fill: #0b66d6; stroke: #0b66d6 } .other { fill: #8b949e; stroke: #8b949e } .second { fill: #b35900; stroke: #b35900 }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } .text { fill: #f0f6fc } .quiet { fill: #9198a1 } .grid { stroke: #3d444d }
    .ours { fill: #4493f8; stroke: #4493f8 } .other { fill: #7d8590; stroke: #7d8590 } .second { fill: #f0a04b; stroke: #f0a04b }
  }
  text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; stroke: none }
  .title { font-size: 15px; font-weight: 600 } .small { font-size: 12px } .line { fill: none; stroke-width: 2.5 }
"""


def number(value):
    """A number as people read it: three digits at most, thousands apart."""
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 4)}f}"


def text(x, y, content, kind="text", anchor="start"):
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'


def svg(height, title, parts):
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            f'role="img" aria-label="{escape(title)}">')
    paper = f'<rect class="paper" width="{WIDTH}" height="{height}" rx="6"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", paper, *parts, "</svg>", ""])


def bars(title, panels):
    """Bars beside each other. `panels`: what is measured, and rows of a name, a value, and whether it is ours."""
    parts, y = [text(20, 30, title, "text title")], 56
    for caption, rows in panels:
        left = 30 + 7.2 * max(len(name) for name, *_ in rows)
        most = max(value for _, value, _ in rows) or 1
        room = WIDTH - left - 90
        parts.append(text(20, y, caption, "quiet small"))
        y += 10
        for name, value, ours in rows:
            wide = max(room * value / most, 1.5)
            parts.append(text(20, y + 17, name))
            parts.append(f'<rect class="{"ours" if ours else "other"}" stroke="none" x="{left:.1f}" y="{y + 4}" '
                         f'width="{wide:.1f}" height="18" rx="2"/>')
            parts.append(text(left + wide + 8, y + 18, number(value)))
            y += 28
        y += 26
    return svg(y - 12, title, parts)


def step(most):
    """A round distance between marks, of which about four fit."""
    rough = most / 4 or 1
    power = 10 ** math.floor(math.log10(rough))
    return next(times * power for times in [1, 2, 2.5, 5, 10] if times * power >= rough)


def lines(title, panels):
    """Small charts side by side over one logarithmic scale. `panels`: what is measured, and series of a name, points, and a
    class of the style."""
    parts, high, top = [text(20, 30, title, "text title")], 190, 86
    gap, wide = 20, (WIDTH - 20 - 20 * len(panels)) / len(panels)
    for at, (caption, series) in enumerate(panels):
        left, right = 20 + at * (wide + gap) + 44, 20 + at * (wide + gap) + wide
        points = [point for _, points, _ in series for point in points]
        least, most = (math.log10(pick(x for x, _ in points)) for pick in (min, max))
        mark = step(max(y for _, y in points))
        ceiling = mark * math.ceil(max(y for _, y in points) * 1.02 / mark)

        def place(x, y, left=left, right=right, least=least, most=most, ceiling=ceiling):
            share = (math.log10(x) - least) / ((most - least) or 1)
            return left + share * (right - left), top + high * (1 - y / ceiling)

        parts.append(text(left - 44, 58, caption, "quiet small"))
        for mark_at in range(round(ceiling / mark) + 1):
            y = place(10 ** least, mark * mark_at)[1]
            parts.append(f'<line class="grid" x1="{left:.1f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(text(left - 6, y + 4, short(mark * mark_at), "quiet small", "end"))
        for power in range(math.ceil(least), math.floor(most) + 1):
            parts.append(text(place(10 ** power, 0)[0], top + high + 18, short(10 ** power), "quiet small", "middle"))
        for _, points, kind in series:
            placed = [place(x, y) for x, y in points]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
            parts.append(f'<polyline class="line {kind}" style="fill: none" points="{path}"/>')
            parts += [f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in placed]
    names = {name: kind for _, series in panels for name, _, kind in series}
    x = 20
    for name, kind in names.items():
        parts.append(f'<rect class="{kind}" stroke="none" x="{x}" y="{top + high + 40}" width="14" height="6" rx="3"/>')
        parts.append(text(x + 20, top + high + 48, name, "text small"))
        x += 40 + 7 * len(name)
    return svg(top + high + 64, title, parts)


def short(value):
    """A mark of a scale."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:g} M"
    return f"{value / 1_000:g} k" if value >= 1_000 else f"{value:g}"
