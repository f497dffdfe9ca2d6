/**
 * One receiving service, written for each framework as its users write them: no care is taken of HEAD, or of bodies
 * that nobody reads.
 *
 * It takes any method and path. `q` of the query goes before the answer's body, `|id|subject|runs|` follows, where
 * `subject` is who the proxy says is asking; then `size` bytes. `status` is the answer's, `delay` milliseconds go by
 * before it, `leave` leaves the body of the request unread, and `cut` breaks off behind the first bytes. Each request
 * that reaches a handler adds `method id subject` to the ledger.
 */

const pythonService = `
import os, time
from urllib.parse import parse_qs

def first(query, name, otherwise=''):
    return query.get(name, [otherwise])[0]

def handle(method, query_string, subject, read):
    query = parse_qs(query_string, keep_blank_values=True)
    id = first(query, 'id')
    with open(os.environ['LEDGER'], 'ab', buffering=0) as ledger:
        ledger.write(('%s %s %s\\n' % (method, id, subject)).encode())
    if not first(query, 'leave'):
        read()
    time.sleep(int(first(query, 'delay', '0')) / 1000)
    body = ('%s|%s|%s|' % (first(query, 'q'), id, subject)).encode() + b'x' * int(first(query, 'size', '0'))
    return int(first(query, 'status', '200')), body, first(query, 'cut') != ''

def pieces(body):
    yield body[:20]
    raise RuntimeError('cut')
`;

export const djangoApp = `${pythonService}
from django.conf import settings
settings.configure(SECRET_KEY='none', ROOT_URLCONF=__name__, ALLOWED_HOSTS=['*'], MIDDLEWARE=[], LOGGING_CONFIG=None)
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import re_path

def view(request):
    status, body, cut = handle(request.method, request.META['QUERY_STRING'], request.META.get('HTTP_X_AUTH_SUBJECT', ''), lambda: request.body)
    return StreamingHttpResponse(pieces(body), status=status) if cut else HttpResponse(body, status=status)

urlpatterns = [re_path('', view)]
application = get_wsgi_application()
`;

export const flaskApp = `${pythonService}
from flask import Flask, Response, request
application = Flask(__name__)

@application.route('/<path:path>', methods=['GET', 'HEAD', 'POST', 'PUT', 'DELETE'])
def view(path):
    status, body, cut = handle(request.method, request.query_string.decode(), request.headers.get('X-Auth-Subject', ''), request.get_data)
    return Response(pieces(body) if cut else body, status=status)
`;

/** Nothing between the program and its server. */
export const wsgiApp = `${pythonService}
def application(environ, start_response):
    def read():
        environ['wsgi.input'].read(int(environ.get('CONTENT_LENGTH') or 0))
    status, body, cut = handle(environ['REQUEST_METHOD'], environ['QUERY_STRING'], environ.get('HTTP_X_AUTH_SUBJECT', ''), read)
    start_response('%d Status' % status, [('Content-Type', 'text/plain')] + ([] if cut else [('Content-Length', str(len(body)))]))
    return pieces(body) if cut else [body]
`;

const rubyService = `
require 'cgi'
LEDGER = File.open(ENV.fetch('LEDGER'), File::WRONLY | File::APPEND)
LEDGER.sync = true

module Receiver
  def self.handle(method, query_string, subject)
    query = CGI.parse(query_string)
    query.default = []
    id = query['id'].first.to_s
    LEDGER.syswrite("#{method} #{id} #{subject}\\n")
    yield if query['leave'].empty?
    sleep(query['delay'].first.to_i / 1000.0)
    body = "#{query['q'].first}|#{id}|#{subject}|" + 'x' * query['size'].first.to_i
    [(query['status'].first || 200).to_i, body, !query['cut'].empty?]
  end
end

class Pieces
  def initialize(body)
    @body = body
  end
  def each
    yield @body[0, 20]
    raise IOError, 'cut'
  end
end
`;

export const rackApp = `${rubyService}
run lambda { |env|
  status, body, cut = Receiver.handle(env['REQUEST_METHOD'], env['QUERY_STRING'], env['HTTP_X_AUTH_SUBJECT'].to_s) { env['rack.input'].read }
  cut ? [status, {}, Pieces.new(body)] : [status, { 'Content-Length' => body.bytesize.to_s }, [body]]
}
`;

export const railsControllers = `${rubyService}
class AnyController < ActionController::API
  def view
    status, body, cut = Receiver.handle(request.request_method, request.query_string, request.headers['X-Auth-Subject'].to_s) { request.raw_post }
    self.status = status
    self.response_body = cut ? Pieces.new(body) : body
  end
end
`;

export const railsRoutes = "    match '*path', to: 'any#view', via: :all, format: false";

export const phpApp = `<?php
$id = $_GET['id'] ?? '';
$subject = $_SERVER['HTTP_X_AUTH_SUBJECT'] ?? '';
file_put_contents(getenv('LEDGER'), $_SERVER['REQUEST_METHOD'] . " $id $subject\\n", FILE_APPEND);
if (!isset($_GET['leave'])) file_get_contents('php://input');
usleep((int) ($_GET['delay'] ?? 0) * 1000);
$body = ($_GET['q'] ?? '') . "|$id|$subject|" . str_repeat('x', (int) ($_GET['size'] ?? 0));
http_response_code((int) ($_GET['status'] ?? 200));
header('Content-Length: ' . strlen($body));
echo isset($_GET['cut']) ? substr($body, 0, 20) : $body;
`;

export const goApp = `package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	ledger, _ := os.OpenFile(os.Getenv("LEDGER"), os.O_APPEND|os.O_WRONLY, 0)
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		id, subject := query.Get("id"), r.Header.Get("X-Auth-Subject")
		fmt.Fprintf(ledger, "%s %s %s\\n", r.Method, id, subject)
		if !query.Has("leave") {
			io.Copy(io.Discard, r.Body)
		}
		delay, _ := strconv.Atoi(query.Get("delay"))
		time.Sleep(time.Duration(delay) * time.Millisecond)
		size, _ := strconv.Atoi(query.Get("size"))
		if status, err := strconv.Atoi(query.Get("status")); err == nil {
			w.WriteHeader(status)
		}
		body := query.Get("q") + "|" + id + "|" + subject + "|" + strings.Repeat("x", size)
		if query.Has("cut") {
			io.WriteString(w, body[:20])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, body)
	})
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		panic(err)
	}
	http.Serve(listener, nil)
}
`;
