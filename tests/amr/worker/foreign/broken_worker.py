"""A worker that breaks the agreement, in the way that its first argument says; it is started as if it were Python."""

import json
import os
import sys
import time

WAY = sys.argv[1]
MARKS = os.environ["FAKE_MARKS"]

with open(os.path.join(MARKS, "loaded"), "a") as loaded:
    loaded.write(f"{os.getpid()}\n")
healthy = WAY.endswith("-once") and os.path.getsize(os.path.join(MARKS, "loaded")) > len(f"{os.getpid()}\n")
for line in sys.stdin:
    request = json.loads(line)
    reply = {"id": request["id"]}
    if request["do"] == "parse":
        reply["graphs"] = [[key, f"(t / text :quant {len(sentences)})"] for key, sentences in request["texts"]]
        if not healthy and WAY.startswith("other-number"):
            reply["id"] += 1
        if not healthy and WAY.startswith("other-ids"):
            reply["graphs"].reverse()
            reply["graphs"][0][0] = "0" * 32
        if not healthy and WAY.startswith("too-few"):
            reply["graphs"].pop()
    text = json.dumps(reply) + "\n"
    if request["do"] == "parse" and not healthy and WAY.startswith("half-a-line"):
        text = text[: len(text) // 2]
        sys.stdout.write(text)
        sys.stdout.flush()
        os._exit(0)
    if request["do"] == "parse" and not healthy and WAY.startswith("no-json"):
        text = "Loading checkpoint shards\n"
    if request["do"] == "parse" and not healthy and WAY.startswith("nested"):
        text = "[" * 100_000 + "\n"
    if request["do"] == "parse" and not healthy and WAY.startswith("long-number"):
        text = '{"id": ' + "1" * 5000 + "}\n"
    for start in range(0, len(text), 7) if WAY.startswith("in-drops") else [0]:
        sys.stdout.write(text[start : start + 7] if WAY.startswith("in-drops") else text)
        sys.stdout.flush()
        time.sleep(0.002)
