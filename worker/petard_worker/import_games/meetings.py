"""How often the same players have met at the same time: counted on disk, for files of any length."""

import sqlite3


class Meetings:
    """Counts meetings by their digests.

    One entry a game would fill the memory of whoever imports millions. So they stand in a temporary database:
    SQLite keeps two megabytes of it in memory, as much as a short file needs, and the rest in a file without
    a name, which goes when the process does.
    """

    def __init__(self) -> None:
        # Collected by whatever thread it is: nobody closes a file that is read as far as somebody asks.
        self._counts = sqlite3.connect("", check_same_thread=False)
        # Whatever SQLite was built to do with temporary tables: on disk, and nothing to roll back to.
        self._counts.execute("PRAGMA temp_store = FILE")
        self._counts.execute("PRAGMA temp.journal_mode = OFF")
        self._counts.execute(
            "CREATE TEMP TABLE met (meeting TEXT PRIMARY KEY, times INTEGER NOT NULL) WITHOUT ROWID"
        )

    def __del__(self) -> None:
        self._counts.close()

    def count(self, meeting: str) -> int:
        """Count this one and return how often there was such a meeting, this one included."""
        first = "INSERT OR IGNORE INTO met VALUES (?, 1)"
        if self._counts.execute(first, (meeting,)).rowcount:
            return 1
        self._counts.execute("UPDATE met SET times = times + 1 WHERE meeting = ?", (meeting,))
        (times,) = self._counts.execute("SELECT times FROM met WHERE meeting = ?", (meeting,)).fetchone()
        return int(times)
