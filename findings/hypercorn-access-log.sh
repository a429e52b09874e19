#!/bin/bash
# Hypercorn 0.18.0 writes the decoded path of a request into its access log, so that a path with %20 has a blank there, and
# its default format lacks `HTTP/` before the version and has the client's port: a reader of logs sees four words or another
# path. Expected, as gunicorn and nginx do it: the path as it was sent, and `HTTP/1.1`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet hypercorn==0.18.0
cat > shown.py <<'PY'
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})
PY
cat > ask.py <<'PY'
import socket
import subprocess
import time
from urllib.request import urlopen

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
server = subprocess.Popen(
    ["env/bin/hypercorn", "shown:app", "--bind", f"127.0.0.1:{port}", "--access-logfile", "access.log"],
    stderr=subprocess.DEVNULL,
)
for _ in range(100):
    try:
        urlopen(f"http://127.0.0.1:{port}/two%20words/").close()
        break
    except OSError:
        time.sleep(0.1)
time.sleep(1)
server.terminate()
server.wait()
PY
python3 ask.py
echo "The path that was asked for is /two%20words/. The access log has:"
cat access.log
grep -q '"GET /two words/ 1.1"' access.log || { echo "Not so any more."; exit 1; }
echo "Still so."
