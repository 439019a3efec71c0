"""The explorer's HTTP side: routes, what they accept, and how work becomes an answer or a stream of lines."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.staticfiles import StaticFiles

from pairmi.commit import Sampling
from pairmi.model import Model
from pairmi.types import PairmiError
from pairmi.web import api, showing
from pairmi.web.guard import Guard, Rate
from pairmi.web.work import Busy, Event, Lane, Stopped, Watch, Work

Seed = Annotated[int, Query(ge=0, le=2**31 - 1)]
Givens = Annotated[int, Query(ge=api.GIVENS[0], le=api.GIVENS[1])]
QUICK = (1, 256, 20.0)  # workers, room and seconds of the lane for single passes
LONG = (4, 64, 120.0)  # and of the lane for probing and decoding: the rules of a race run side by side


class Canvas(BaseModel):
    """A canvas for one of the loaded models."""

    model_config = ConfigDict(extra="forbid", strict=True)
    model: Annotated[str, Field(max_length=200)]
    canvas: Annotated[str, Field(min_length=1, max_length=2 * api.LONGEST)]


class Decoding(Canvas):
    """A canvas with a rule and how symbols are drawn."""

    rule: Annotated[str, Field(max_length=300)] = "mi-guided"
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    temperature: Annotated[float, Field(ge=0.01, le=100, allow_inf_nan=False)] = 1.0
    greedy: bool = True
    verify: bool = False


class Imagined(Canvas):
    """A canvas with a symbol for one of its open positions."""

    position: Annotated[int, Field(ge=0, lt=api.LONGEST)]
    symbol: Annotated[str, Field(min_length=1, max_length=100)]


class Refusal(BaseModel):
    """One clear line."""

    error: str


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refusal, "description": text}
    for status, text in {
        400: "Not JSON, or another host",
        403: "Another origin",
        413: "Too large",
        422: "Bad input",
        429: "Too many requests",
        503: "The model is busy",
    }.items()
}
LINES: dict[str, Any] = {  # of a route that streams
    "responses": REFUSALS
    | {200: {"description": "Lines of JSON: progress, then a result or an error", "content": {"application/x-ndjson": {}}}},
    "response_class": StreamingResponse,
}


def create(models: Mapping[str, Model], hosts: Sequence[str] = ("localhost", "127.0.0.1"), rate: Rate | None = None) -> Guard:
    """The whole application, guarded, for models that are already loaded, under these names."""
    quick, long = Lane(*QUICK), Lane(*LONG)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if find_spec("numba") is not None:
            long.submit(lambda watch: api.compile_solver())
        yield
        quick.close()
        long.close()

    app = FastAPI(
        title="pairmi explorer",
        version=version("pairmi"),
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
    )
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)
    for error in (PairmiError, RequestValidationError, HTTPException, Stopped):
        app.add_exception_handler(error, _refused)
    _routes(app, models, quick, long)
    app.mount("/", StaticFiles(packages=[("pairmi.web", "static")], html=True))
    return Guard(app, rate or Rate())


def _routes(app: FastAPI, models: Mapping[str, Model], quick: Lane, long: Lane) -> None:
    """What takes a pass or less is answered; what takes many tells of them."""
    described = api.describe(models)

    def known(asked: Canvas) -> Model:
        if asked.model not in models:
            raise PairmiError(f"model {asked.model[:80]!r} is not loaded; there are {', '.join(models)}")
        return models[asked.model]

    @app.get("/api/models", responses=REFUSALS)
    async def offered() -> Event:
        """The loaded models and the catalogue of rules."""
        return described

    @app.get("/api/puzzle", responses=REFUSALS)
    async def puzzle(request: Request, givens: Givens = 27, seed: Seed = 0) -> Response:
        """A random puzzle with one solution."""
        return await _answered(request, long, lambda watch: api.puzzle(givens, seed))

    @app.post("/api/look", responses=REFUSALS)
    async def look(request: Request, asked: Canvas) -> Response:
        """Marginals, and MI by the head: one pass."""
        return await _answered(request, quick, partial(showing.look, known(asked), asked.canvas))

    @app.post("/api/tokens", responses=REFUSALS)
    async def tokens(request: Request, asked: Canvas) -> Response:
        """A text as a canvas: its tokens, with spaces between them."""
        return await _answered(request, quick, lambda watch: api.tokens_of(known(asked), asked.canvas))

    @app.post("/api/imagine", responses=REFUSALS)
    async def imagine(request: Request, asked: Imagined) -> Response:
        """How open positions would move if one took a symbol."""
        return await _answered(request, quick, partial(showing.imagine, known(asked), asked.canvas, asked.position, asked.symbol))

    @app.post("/api/map", **LINES)
    async def chart(request: Request, asked: Canvas) -> Response:
        """What depends on what in a complete sequence, with progress."""
        return _streamed(request, long, partial(showing.chart, known(asked), asked.canvas))

    @app.post("/api/probe", **LINES)
    async def probe(request: Request, asked: Canvas) -> Response:
        """Exact MI, with progress."""
        api.checked(known(asked), asked.canvas)
        return _streamed(request, long, partial(showing.probe, known(asked), asked.canvas))

    @app.post("/api/decode", **LINES)
    async def decode(request: Request, asked: Decoding) -> Response:
        """Decoding, pass by pass."""
        sampling = Sampling(asked.seed, asked.temperature, asked.greedy, asked.verify)
        return _streamed(request, long, partial(api.decode, *_ruled(known(asked), asked), sampling))

    @app.post("/api/price", **LINES)
    async def price(request: Request, asked: Decoding) -> Response:
        """What a rule loses on a canvas, with progress."""
        return _streamed(request, long, partial(api.price, *_ruled(known(asked), asked), asked.seed, asked.temperature))


def _ruled(model: Model, asked: Decoding) -> tuple[Model, str, str]:
    """The model with a canvas and a rule that it takes, refused before anything is streamed."""
    api.checked(model, asked.canvas)
    api.selector(model, asked.rule)
    return model, asked.canvas, asked.rule


async def _answered(request: Request, lane: Lane, work: Work) -> Response:
    """The result of some work, which ends when the client leaves."""
    watch, future = lane.submit(work)
    gone = _when_gone(request, watch, future)
    try:
        return JSONResponse(await asyncio.wrap_future(future))
    except asyncio.CancelledError:
        raise Stopped from None
    finally:
        gone.cancel()


def _streamed(request: Request, lane: Lane, work: Work) -> Response:
    """What some work tells, line by line, and its result or error as the last line; it ends when the client leaves."""
    loop, told = asyncio.get_running_loop(), asyncio.Queue[Event | None]()

    def tell(event: Event | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(told.put_nowait, event)

    watch, future = lane.submit(work, tell)
    future.add_done_callback(lambda done: tell(None))
    gone = _when_gone(request, watch, future)

    async def lines() -> AsyncIterator[str]:
        while (event := await told.get()) is not None:
            yield json.dumps(event) + "\n"
        gone.cancel()
        if future.cancelled():
            return
        error = future.exception()
        if error is None:
            yield json.dumps({"result": future.result()}) + "\n"
        elif isinstance(error, PairmiError):
            yield json.dumps({"error": str(error)}) + "\n"
        elif not isinstance(error, Stopped):
            raise error

    return StreamingResponse(lines(), media_type="application/x-ndjson")


def _when_gone(request: Request, watch: Watch, future: "Future[Event]") -> "asyncio.Task[None]":
    """Stop the work as soon as the client has left."""

    async def wait() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        watch.stop()
        future.cancel()

    return asyncio.create_task(wait())


async def _refused(request: Request, error: Any) -> Response:
    """One line for every error that a request can cause."""
    if isinstance(error, Stopped):
        return Response(status_code=499)  # nobody reads it
    if isinstance(error, HTTPException):
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)
    if isinstance(error, Busy):
        return JSONResponse({"error": str(error)}, 503, {"retry-after": "2"})
    text = str(error)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        text = f"{'.'.join(str(part) for part in first['loc'][1:]) or 'body'}: {first['msg']}"
    return JSONResponse({"error": text}, 422)
