"""A stand-in for the model hub on loopback: repositories in memory, the few addresses that `huggingface_hub` asks for."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Hub(ThreadingHTTPServer):
    """Its repositories: name -> revision -> file -> content; "main" is the newest."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories: dict[str, dict[str, dict[str, bytes]]] = {}
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def put(self, name: str, files: dict[str, bytes]) -> str:
        """A commit; its hash."""
        made = self.repositories.setdefault(name, {})
        tree = made.get("main", {}) | files
        commit = hashlib.sha1(b"".join(key.encode() + value for key, value in sorted(tree.items()))).hexdigest()
        made["main"] = made[commit] = tree
        return commit

    def put_folder(self, name: str, folder: Path) -> str:
        return self.put(name, {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()})

    def commit_of(self, name: str, revision: str) -> str:
        known = self.repositories[name]
        return next(key for key, tree in known.items() if key != "main" and tree is known[revision])


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *args: Any) -> None:
        pass

    def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(key.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def say_json(self, value: Any, status: int = 200) -> None:
        self.say(status, json.dumps(value).encode(), Content_Type="application/json")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        parts = self.path.partition("?")[0].strip("/").split("/")
        if len(parts) > 4 and parts[2] == "resolve":
            return self.file("/".join(parts[:2]), parts[3], "/".join(parts[4:]))
        return self.say_json({"error": "not here"}, 404)

    def file(self, name: str, revision: str, path: str) -> None:
        known = self.server.repositories
        if name not in known:
            return self.say(404, X_Error_Code="RepoNotFound")
        if revision not in known[name]:
            return self.say(404, X_Error_Code="RevisionNotFound")
        commit = self.server.commit_of(name, revision)
        if path not in known[name][revision]:
            return self.say(404, X_Error_Code="EntryNotFound", X_Repo_Commit=commit)
        content = known[name][revision][path]
        return self.say(200, content, ETag=f'"{hashlib.sha1(content).hexdigest()}"', X_Repo_Commit=commit)

    def do_POST(self) -> None:
        self.server.asked.append(self.path)
        if self.headers.get("Transfer-Encoding") == "chunked":
            sent = b""
            while size := int(self.rfile.readline(), 16):
                sent += self.rfile.read(size)
                self.rfile.readline()
        else:
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = self.path.partition("?")[0].strip("/").split("/")
        if parts[-2:] == ["repos", "create"]:
            asked = json.loads(sent)
            name = f"{asked['organization']}/{asked['name']}"
            self.server.repositories.setdefault(name, {})
            return self.say_json({"url": f"{self.server.address}/{name}", "name": name, "id": name})
        if parts[-1] == "validate-yaml":
            return self.say_json({"errors": [], "warnings": []})
        name = "/".join(parts[2:4])
        if parts[4] == "preupload":
            files = [{"path": file["path"], "uploadMode": "regular", "shouldIgnore": False} for file in json.loads(sent)["files"]]
            return self.say_json({"files": files})
        lines = [json.loads(line) for line in sent.decode().splitlines() if line]
        added = {line["value"]["path"]: base64.b64decode(line["value"]["content"]) for line in lines if line["key"] == "file"}
        commit = self.server.put(name, added)
        return self.say_json({"success": True, "commitOid": commit, "commitUrl": f"{self.server.address}/{name}/commit/{commit}"})


@contextmanager
def serving() -> Iterator[Hub]:
    with Hub() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
