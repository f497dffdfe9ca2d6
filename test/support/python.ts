/** Receivers of Python's own library: what a WSGI program, and a server of files, make of a request. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { pythonWith } from './python-modules.js';
import { startUpstreamProcess } from './upstream-process.js';
import type { Scope } from './scope.js';

export interface PythonReceivers {
  /**
   * `wsgiref`: answers with `path` (`PATH_INFO`), `query` and the `HTTP_…` variables that the program was given, as
   * JSON; a POST with 201 and the `Location` of what it made, below the address that the program takes itself to have.
   */
  readonly wsgi: number;
  /**
   * `http.server`: serves the files of the folder. `X-File` of each answer is the file that it took the target for,
   * escaped.
   */
  readonly files: number;
  /** `http.server` over HTTP/1.1: answers any POST with 201 and leaves its body unread, any GET with 200. */
  readonly unread: number;
}

const program = `
import json, os, sys, threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote
from wsgiref.util import request_uri
from wsgiref.simple_server import WSGIRequestHandler, make_server

class QuietRequest(WSGIRequestHandler):
    def log_message(self, *arguments):
        pass

def application(environ, start_response):
    fields = {name: value for name, value in environ.items() if name.startswith('HTTP_')}
    body = json.dumps({'path': environ['PATH_INFO'], 'query': environ['QUERY_STRING'], 'fields': fields}).encode()
    status, made = '200 OK', []
    if environ['REQUEST_METHOD'] == 'POST':
        status, made = '201 Created', [('Location', request_uri(environ) + '/1')]
    start_response(status, [('Content-Type', 'application/json'), ('Content-Length', str(len(body)))] + made)
    return [body]

class Files(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass
    def end_headers(self):
        file = os.path.relpath(self.translate_path(self.path), self.directory)
        self.send_header('X-File', quote(file, errors='surrogateescape'))
        super().end_headers()

class Unread(Files):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        self.answer(200)
    def do_POST(self):
        self.answer(201)
    def answer(self, status):
        self.send_response(status)
        self.send_header('Content-Length', '2')
        SimpleHTTPRequestHandler.end_headers(self)
        self.wfile.write(b'ok')

wsgi = make_server('127.0.0.1', 0, application, handler_class=QuietRequest)
files = ThreadingHTTPServer(('127.0.0.1', 0), lambda *arguments: Files(*arguments, directory=sys.argv[1]))
unread = ThreadingHTTPServer(('127.0.0.1', 0), Unread)
for server in files, unread:
    threading.Thread(target=server.serve_forever, daemon=True).start()
print(json.dumps({'wsgi': wsgi.server_port, 'files': files.server_port, 'unread': unread.server_port}), flush=True)
wsgi.serve_forever()
`;

/** The command that runs a program. */
export function python(text: string): readonly [string, ...string[]] {
  return [pythonWith('wsgiref.simple_server', 'http.server'), '-c', text];
}

/** Starts both; they end with the test. @param root the folder of the files. */
export async function startPython(t: Scope, root: string): Promise<PythonReceivers> {
  const [command, ...args] = python(program);
  const child = spawn(command, [...args, root], { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(child, 'close');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const lines = createInterface(child.stdout);
  const tooSoon = ended.then(() => {
    throw new Error('python3 ended before it listened');
  });
  const [line = ''] = (await Promise.race([once(lines, 'line'), tooSoon])) as string[];
  return JSON.parse(line) as PythonReceivers;
}

/** `http.server` with this folder, of whose `cgi-bin` it runs what is asked for. */
export async function startPythonCgi(t: Scope, folder: string): Promise<number> {
  return startUpstreamProcess(t, {
    command: pythonWith('http.server'),
    args: (address) => {
      const [host = '', port = ''] = address.split(':');
      return ['-m', 'http.server', '--cgi', '--bind', host, '--directory', folder, port];
    },
  });
}
