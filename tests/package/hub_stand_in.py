"""A hub on this machine: the part of the Hugging Face hub's interface that uploads and downloads need.

Files are kept in memory, by repository and branch. The client is the real one, so that what is tested is what users
run; only its address is another.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import yaml


def commit_of(branch: str) -> str:
    """The commit that a branch is at."""
    return hashlib.sha1(branch.encode()).hexdigest()


class Hub(ThreadingHTTPServer):
    """The server; ``repos["models/someone/name"]["main"]["README.md"]`` are the bytes of a file."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repos: dict[str, dict[str, dict[str, bytes]]] = {}
        self.private: dict[str, bool | None] = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, content: object, status: int = 200, **headers: str) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _missing(self, code: str) -> None:
        self._answer({"error": "not found"}, 404, X_Error_Code=code)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        if parts == ["api", "repos", "create"]:
            asked = json.loads(body)
            name = "/".join(filter(None, [asked.get("organization"), asked["name"]]))
            repo = f"{asked.get('type') or 'model'}s/{name}"
            self.server.private.setdefault(repo, asked.get("private"))
            self.server.repos.setdefault(repo, {"main": {}})
            self._answer({"url": f"{self.server.address}/{name}"})
            return
        if parts == ["api", "validate-yaml"]:
            front = yaml.safe_load(json.loads(body)["content"].split("---")[1])
            self._answer({"errors": [] if isinstance(front, dict) else [{"message": "no fields"}], "warnings": []})
            return
        _, kind, owner, name, action, *rest = parts
        branches = self.server.repos.get(f"{kind}/{owner}/{name}")
        if branches is None:
            self._missing("RepoNotFound")
        elif action == "branch":
            branches.setdefault(rest[0], {})
            self._answer({})
        elif action == "preupload":
            files = [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                for file in json.loads(body)["files"]
            ]
            self._answer({"files": files})
        else:
            self._commit(branches.setdefault(rest[0], {}), body)
            url = f"{self.server.address}/{owner}/{name}/commit/{commit_of(rest[0])}"
            self._answer({"commitUrl": url, "commitOid": commit_of(rest[0])})

    @staticmethod
    def _commit(files: dict[str, bytes], body: bytes) -> None:
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "file":
                files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])

    def do_GET(self) -> None:
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        api = parts[0] == "api"  # api/models/owner/name/revision/main; owner/name/resolve/main/file; datasets/owner/…
        if parts[0] not in ("api", "datasets"):
            parts = ["models", *parts]
        kind, owner, name, action, revision, *rest = parts[1:] if api else parts
        branches = self.server.repos.get(f"{kind}/{owner}/{name}")
        if branches is None:
            self._missing("RepoNotFound")
            return
        branch = next((each for each in branches if revision in (each, commit_of(each))), None)
        path = "/".join(rest)
        if branch is None:
            self._missing("RevisionNotFound")
        elif action == "tree":
            entries = branches[branch].items()
            self._answer([{"type": "file", "path": path, "size": len(data), "oid": path} for path, data in entries])
        elif api:
            self._answer({"id": f"{owner}/{name}", "sha": commit_of(branch)})
        elif path not in branches[branch]:
            self._missing("EntryNotFound")
        else:
            data = branches[branch][path]
            digest = hashlib.sha256(data).hexdigest()
            self._answer(data, ETag=f'"{digest}"', X_Repo_Commit=commit_of(branch))

    do_HEAD = do_GET  # noqa: N815 - the name that the base class calls
