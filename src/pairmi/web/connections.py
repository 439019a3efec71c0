"""How long a connection may take, and how many there may be: slow clients are closed."""

import asyncio
from typing import ClassVar

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol


class Impatient(H11Protocol):
    """Uvicorn's connections, closed when a request's header does not arrive, or an answer is not read, in time."""

    seconds: ClassVar[float] = 5.0
    most: ClassVar[int] = 512  # connections at once
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A new client has to say what it wants; one too many is sent away."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.abort()
        else:
            self._expect()

    def data_received(self, data: bytes) -> None:
        """The clock runs from the first byte of a header to its last."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and self._deadline is None:
            self._expect()
        elif self.conn.their_state is not h11.IDLE and not self.flow.write_paused:
            self._relax()

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self._expect()

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        self._relax()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing to wait for."""
        self._relax()
        super().connection_lost(exc)

    def _expect(self) -> None:
        self._relax()
        self._deadline = self.loop.call_later(self.seconds, self.transport.abort)

    def _relax(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def configuration(app: ASGIApp) -> uvicorn.Config:
    """How uvicorn serves the explorer."""
    return uvicorn.Config(
        app,
        http=Impatient,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=15,  # longer than most clients keep a connection, so that they close it and not we under their hands
    )
