"""A small JSON service, as batch APIs of the examples are."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def serve(answer):
    """Serves POST requests on a free port of this machine. `answer(path, headers, body)` returns status, headers and document.
    Returns the service's URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, headers, document = answer(self.path, self.headers, body)
            text = json.dumps(document).encode()
            self.send_response(status)
            for name, value in ({"Content-Length": len(text)} | headers).items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"
