"""Tables in Markdown."""

from page.chart import number


def table(head, rows):
    """The first column is text, the others are right-aligned if all that is in them are numbers."""
    numeric = [all(isinstance(row[at], (int, float)) for row in rows) for at in range(len(head))]
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join(" ---: " if it else " --- " for it in numeric) + "|"]
    lines += ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def cell(value):
    if isinstance(value, bool) or isinstance(value, str):
        return str(value)
    return "" if value is None else f"{value:,}" if isinstance(value, int) else number(value)


def chart(charts, name, title, drawing):
    """Keeps a chart, and shows it."""
    charts[name] = drawing
    return f"![{title}](benchmarks/{name}.svg)\n"


def runs(measured):
    """How often something was measured."""
    return "One run." if measured["rounds"] == 1 else f"The median of {measured['rounds']} runs, taken in turns."


def range_of(measured):
    """The median time, and the least and most if there were several."""
    middle = number(measured["seconds"])
    if measured["rounds"] == 1:
        return middle
    return f"{middle} ({number(measured['seconds_least'])} to {number(measured['seconds_most'])})"
