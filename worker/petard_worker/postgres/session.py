"""A connection that a loop keeps: opened when needed, checked once, dropped when broken."""

from collections.abc import Callable
from dataclasses import dataclass, field

from petard_worker.postgres.connect import Connection
from petard_worker.postgres.migrate import check_schema


@dataclass
class Session:
    """One connection of one loop."""

    connect: Callable[[], Connection]
    _connection: Connection | None = field(default=None, repr=False)

    @property
    def is_open(self) -> bool:
        """Return whether there is a connection, as far as is known without asking the server."""
        return self._connection is not None and not self._connection.closed

    def open(self) -> Connection:
        """Return the open connection, or a new one to a database with the right schema."""
        if self._connection is None or self._connection.closed:
            connection = self.connect()
            try:
                check_schema(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def close(self) -> None:
        """Close the connection; the next `open` makes a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
