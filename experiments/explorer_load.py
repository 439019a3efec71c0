"""How quickly the explorer answers, alone and under load, on this machine only. Results go to docs/explorer.md.

    python experiments/explorer_load.py [--clients 200] [--seconds 60]

Alone: a new board (marginals, and MI by the head if the model has one) and a whole step-through, over HTTP. Under load: every client
looks at boards one after the other, every tenth steps through decodings, every twentieth leaves in the middle.
"""

import argparse
import asyncio
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import httpx
import torch

from pairmi.tasks.sudoku.puzzles import TEST, unique_puzzles
from pairmi.tasks.sudoku.rules import to_text

CODE = "import sys; from pairmi.cli import main; sys.exit(main(sys.argv[1:]))"


def alone(address: str, puzzles: list[str], rule: str) -> None:
    with httpx.Client(base_url=address, timeout=120) as client:
        for path, extra in (("look", {}), ("decode", {"rule": rule})):
            times = []
            for puzzle in puzzles:
                start = time.perf_counter()
                client.post(f"api/{path}", json={"model": "sudoku", "canvas": puzzle} | extra).raise_for_status()
                times.append(1000 * (time.perf_counter() - start))
            shown = f"median {statistics.median(times):.0f} ms, longest {max(times):.0f} ms of {len(times)}"
            print(f"alone, {path} {extra.get('rule', '')}: {shown}", flush=True)


async def client(session: httpx.AsyncClient, n: int, puzzles: list[str], end: float, seen: Counter, times: list[float]) -> None:
    turn = n
    while time.monotonic() < end:
        turn += 1
        body = {"model": "sudoku", "canvas": puzzles[turn % len(puzzles)]}
        start = time.monotonic()
        try:
            if n % 20 == 7:
                async with session.stream("POST", "api/probe", json=body) as answer:
                    seen[f"left after {answer.status_code}"] += 1
            elif n % 10 == 3:
                answer = await session.post("api/decode", json=body | {"rule": "eb"})
                seen[f"decode {answer.status_code}"] += 1
            else:
                answer = await session.post("api/look", json=body)
                seen[f"look {answer.status_code}"] += 1
                times.append(time.monotonic() - start)
            if answer.status_code in (429, 503):
                await asyncio.sleep(float(answer.headers["retry-after"]))
        except httpx.HTTPError as error:
            seen[f"FAILED: {type(error).__name__}"] += 1


async def crowd(address: str, puzzles: list[str], clients: int, seconds: float, memory: list[int], pid: int) -> tuple[Counter, list[float]]:
    seen, times, end = Counter(), [], time.monotonic() + seconds
    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(base_url=address, limits=limits, timeout=120) as session:
        tasks = [asyncio.create_task(client(session, n, puzzles, end, seen, times)) for n in range(clients)]
        while time.monotonic() < end:
            memory.append(resident(pid))
            await asyncio.sleep(1)
        await asyncio.gather(*tasks)
    return seen, times


def resident(pid: int) -> int:
    """Megabytes of a process in memory."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) // 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--puzzles", type=int, default=20)
    parser.add_argument("--rule", default="mi-guided")
    parser.add_argument("--head", help="for a backbone that brings none")
    options = parser.parse_args()
    torch.set_num_threads(1)
    puzzles = [to_text(canvas) for canvas in unique_puzzles(options.puzzles, TEST + 5).canvases]
    command = [sys.executable, "-c", CODE, "explore", "--port", "0", "--no-browser", "--backbone", "sudoku"]
    command += ["--head", options.head] if options.head else []
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://\S+", server.stdout.readline())[0]
        httpx.get(f"{address}api/puzzle", timeout=120).raise_for_status()  # the solver is compiled by now
        alone(address, puzzles, options.rule)
        memory = [resident(server.pid)]
        seen, times = asyncio.run(crowd(address, puzzles, options.clients, options.seconds, memory, server.pid))
        print(
            f"{options.clients} clients for {options.seconds:g} s: " + ", ".join(f"{count} {what}" for what, count in sorted(seen.items()))
        )
        print(f"look: median {statistics.median(times):.2f} s, longest {max(times):.2f} s")
        print(f"memory: {memory[0]} MB before, at most {max(memory)} MB, {resident(server.pid)} MB after")
        start = time.monotonic()
        httpx.post(f"{address}api/look", json={"model": "sudoku", "canvas": puzzles[0]}, timeout=60).raise_for_status()
        print(f"a look right afterwards: {time.monotonic() - start:.2f} s (whoever left has left no work behind)")
    finally:
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    main()
