/** Targets of other makes than ours, which do what targets should not: nginx, Go, and Python's own server. */
import { accepting } from '../../support/accepting.js';
import { startGo } from '../../support/go.js';
import { freePort } from '../../support/listening.js';
import { runNginx } from '../../support/nginx.js';
import { python } from '../../support/python.js';
import { startUpstreamProcess } from '../../support/upstream-process.js';
import type { Scope } from '../../support/scope.js';

/** nginx: redirects, refusals, endings without a response, slow and compressed ones. Other paths are `done`. */
export async function startNginxTarget(t: Scope, elsewhere: number): Promise<number> {
  const port = await freePort();
  const away = `http://127.0.0.1:${String(elsewhere)}`;
  const dead = await freePort();
  const server = `
    gzip on;
    gzip_min_length 1;
    gzip_types text/plain;
    server {
      listen 127.0.0.1:${String(port)};
      default_type text/plain;
      location / { return 200 "done"; }
      location /found { return 302 ${away}/found; }
      location /kept { return 307 ${away}/kept; }
      location /moved { return 308 /elsewhere; }
      location /scheme { return 301 //127.0.0.1:${String(elsewhere)}/scheme; }
      location /login { add_header WWW-Authenticate 'Basic realm="of the target"' always; return 401 "who are you"; }
      location /dropped { return 444; }
      location /down { proxy_pass http://127.0.0.1:${String(dead)}; }
      location /closing { keepalive_timeout 0; return 200 "done"; }
      location /internal {
        add_header X-Accel-Redirect ${away}/internal;
        add_header Refresh "0; url=${away}/refresh";
        add_header Link "<${away}/link>; rel=preload";
        add_header Alt-Svc 'h2="127.0.0.1:${String(elsewhere)}"';
        return 200 "done";
      }
    }`;
  await accepting(runNginx(t, server), port, 'nginx');
  return port;
}

/** Go: responses that are cut off, late, or too long. `/runs` counts those that it broke off before they began. */
export async function startGoTarget(t: Scope): Promise<number> {
  return startGo(t, goTarget, {});
}

/** Python's server over HTTP/1.1, which leaves the body of what it refuses where it is; `/old` is HTTP/1.0. */
export async function startPythonTarget(t: Scope): Promise<number> {
  const [command, ...args] = python(pythonTarget);
  return startUpstreamProcess(t, { command, args: (address) => [...args, address] });
}

const goTarget = `
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

func hijacked(w http.ResponseWriter, text string) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	conn.Write([]byte(text))
	conn.Close()
}

func main() {
	var runs int64
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		json.NewEncoder(w).Encode(map[string]any{
			"method": r.Method, "target": r.RequestURI, "host": r.Host, "fields": r.Header, "body": len(body),
		})
	})
	http.HandleFunc("/cut", func(w http.ResponseWriter, r *http.Request) {
		hijacked(w, "HTTP/1.1 200 OK\\r\\nContent-Length: 100\\r\\n\\r\\ntoo little")
	})
	http.HandleFunc("/cut-chunk", func(w http.ResponseWriter, r *http.Request) {
		hijacked(w, "HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\na\\r\\ntoo")
	})
	http.HandleFunc("/cut-head", func(w http.ResponseWriter, r *http.Request) {
		io.ReadAll(r.Body)
		atomic.AddInt64(&runs, 1)
		hijacked(w, "HTTP/1.1 200 OK\\r\\nContent-Le")
	})
	http.HandleFunc("/two", func(w http.ResponseWriter, r *http.Request) {
		hijacked(w, "HTTP/1.1 200 OK\\r\\nContent-Length: 3\\r\\n\\r\\noneHTTP/1.1 200 OK\\r\\nContent-Length: 3\\r\\n\\r\\ntwo")
	})
	http.HandleFunc("/abort", func(w http.ResponseWriter, r *http.Request) {
		io.ReadAll(r.Body)
		atomic.AddInt64(&runs, 1)
		panic(http.ErrAbortHandler)
	})
	http.HandleFunc("/runs", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, atomic.SwapInt64(&runs, 0))
	})
	http.HandleFunc("/drip", func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < 5; i++ {
			fmt.Fprint(w, "drip")
			w.(http.Flusher).Flush()
			time.Sleep(50 * time.Millisecond)
		}
	})
	http.HandleFunc("/hints", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		fmt.Fprint(w, "done")
	})
	http.HandleFunc("/late", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(2 * time.Second)
		fmt.Fprint(w, "late")
	})
	panic(http.ListenAndServe(os.Args[1], nil))
}
`;

const pythonTarget = `
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Target(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *arguments):
        pass
    def do_GET(self):
        self.close_connection = True
        self.wfile.write(b'HTTP/1.0 200 OK\\r\\nContent-Type: text/plain\\r\\n\\r\\nuntil the end')
    def do_POST(self):
        if self.headers['Authorization'] != 'Bearer token.two.x':
            self.answer(401, 'no')
            return
        if self.path == '/refused':
            self.answer(403, 'no')
            return
        body = self.rfile.read(int(self.headers['Content-Length']))
        self.answer(201, str(len(body)))
    def answer(self, status, text):
        self.send_response(status)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

host, port = sys.argv[1].split(':')
ThreadingHTTPServer((host, int(port)), Target).serve_forever()
`;
