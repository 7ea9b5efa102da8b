import json, os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Letters(BaseHTTPRequestHandler):
    def do_POST(self):
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = call["target"] != "Nowhere"  # all members have the same target
        outcome = {"outcome": "succeeded"} if known else {"outcome": "failed", "error": "no such town"}
        answer = json.dumps({"members": [{"id": member["id"], **outcome} for member in call["members"]]})
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Letters).serve_forever()
