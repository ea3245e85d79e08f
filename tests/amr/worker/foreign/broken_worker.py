"""A worker that breaks the agreement, in the way that its first argument names; it is started as if it were Python."""

import json
import os
import struct
import sys
import time
from multiprocessing.connection import Connection

WAY = sys.argv[1]
MARKS = os.environ["FAKE_MARKS"]

with open(os.path.join(MARKS, "loaded"), "a") as loaded:
    loaded.write(f"{os.getpid()}\n")
healthy = WAY.endswith("-once") and os.path.getsize(os.path.join(MARKS, "loaded")) > len(f"{os.getpid()}\n")
number = int(sys.argv[3])  # after the path of the worker
connection = Connection(number)
while True:
    try:
        request = json.loads(connection.recv_bytes())
    except EOFError:
        break
    reply = {"id": request["id"]}
    breaks = request["do"] == "parse" and not healthy
    if request["do"] == "parse":
        reply["graphs"] = [[key, f"(t / text :quant {len(sentences)})"] for key, sentences in request["texts"]]
        if not healthy and WAY.startswith("other-number"):
            reply["id"] += 1
        if not healthy and WAY.startswith("other-ids"):
            reply["graphs"].reverse()
            reply["graphs"][0][0] = "0" * 32
        if not healthy and WAY.startswith("too-few"):
            reply["graphs"].pop()
    text = json.dumps(reply)
    if breaks and WAY.startswith("no-json"):
        text = "Loading checkpoint shards"
    if breaks and WAY.startswith("nested"):
        text = "[" * 100_000
    if breaks and WAY.startswith("long-number"):
        text = '{"id": ' + "1" * 5000 + "}"
    message = struct.pack("!i", len(text)) + text.encode("ascii")
    if breaks and WAY.startswith("half-a-message"):
        os.write(number, message[: len(message) // 2])
        os._exit(0)
    step = 7 if WAY.startswith("in-drops") else len(message)
    while message:
        message = message[os.write(number, message[:step]) :]
        time.sleep(0.002)
