"""What others wrote, shown so that no terminal obeys it and no line looks like another one.

Escaped is what str.isprintable() finds: controls (escape sequences begin with one), what is invisible or
turns the direction of writing, halves of characters, private ones, and every space but the ordinary one.
"""


def printable(text: str) -> str:
    """Return the text with everything escaped that does not show as itself: always one line."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else escape(char) for char in text)


def printable_lines(text: str) -> str:
    """Return the text with everything escaped that does not show as itself, but for the ends of lines."""
    return "\n".join(map(printable, text.split("\n")))


def printable_json(text: str) -> str:
    """Return JSON on one line that says the same, and in which everything shows as itself."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json_escape(char) for char in text)


def escape(char: str) -> str:
    """Return the escape of a character as Python writes it."""
    return char.encode("unicode_escape").decode()


def json_escape(char: str) -> str:
    """Return the escape of a character as JSON writes it: two of them where one does not reach."""
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[start : start + 2].hex()}" for start in range(0, len(units), 2))
