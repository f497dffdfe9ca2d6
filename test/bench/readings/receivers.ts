/** Receivers with a part for administrators, each written as the users of its framework write it. */
import { createServer } from 'node:http';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import express from 'express';
import fastify from 'fastify';
import { startGo } from '../../support/go.js';
import { java } from '../../support/javac.js';
import { listen } from '../../support/listening.js';
import { startPhp } from '../../support/php.js';
import { startGunicorn } from '../../support/python-web.js';
import { startUpstreamProcess } from '../../support/upstream-process.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';

/**
 * Answers `PART|SUBJECT|ADDRESSES`: `admin` where the request was taken for one of `/admin` or below, and what stood in
 * `X-Auth-Subject` and `X-Forwarded-For`.
 */
export interface Receiver {
  readonly name: string;
  /** Returns its port. */
  readonly start: (t: Scope) => Promise<number>;
}

const flaskService = `
from flask import Flask, request
application = Flask(__name__)

def say(part):
    return '|'.join([part, request.headers.get('X-Auth-Subject', ''), request.headers.get('X-Forwarded-For', '')])

@application.route('/admin')
@application.route('/admin/<path:rest>')
def admin(rest=''):
    return say('admin')

@application.route('/')
@application.route('/<path:rest>')
def other(rest=''):
    return say('other')
`;

const phpService = `<?php
$path = rawurldecode((string) parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH));
$part = preg_match('#^/admin(/|$)#', $path) ? 'admin' : 'other';
echo implode('|', [$part, $_SERVER['HTTP_X_AUTH_SUBJECT'] ?? '', $_SERVER['HTTP_X_FORWARDED_FOR'] ?? '']);
`;

const goService = `package main

import (
	"io"
	"net/http"
	"os"
)

func say(part string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, part+"|"+r.Header.Get("X-Auth-Subject")+"|"+r.Header.Get("X-Forwarded-For"))
	}
}

func main() {
	http.HandleFunc("/admin", say("admin"))
	http.HandleFunc("/admin/", say("admin"))
	http.HandleFunc("/", say("other"))
	http.ListenAndServe(os.Args[1], nil)
}
`;

const javaService = `
import com.sun.net.httpserver.*;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

class Service {
  static HttpHandler say(String part) {
    return exchange -> {
      Headers headers = exchange.getRequestHeaders();
      String subject = headers.getFirst("X-Auth-Subject"), addresses = headers.getFirst("X-Forwarded-For");
      String text = part + "|" + (subject == null ? "" : subject) + "|" + (addresses == null ? "" : addresses);
      byte[] body = text.getBytes(StandardCharsets.UTF_8);
      exchange.sendResponseHeaders(200, body.length);
      exchange.getResponseBody().write(body);
      exchange.close();
    };
  }

  public static void main(String[] args) throws Exception {
    String[] address = args[0].split(":");
    HttpServer server = HttpServer.create(new InetSocketAddress(address[0], Integer.parseInt(address[1])), 0);
    server.createContext("/admin", say("admin"));
    server.createContext("/", say("other"));
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.start();
  }
}
`;

const said = (part: string, header: (name: string) => string | readonly string[] | undefined): string =>
  [part, header('x-auth-subject') ?? '', header('x-forwarded-for') ?? ''].map(String).join('|');

export const receivers: readonly Receiver[] = [
  {
    name: 'Express',
    start: async (t: Scope): Promise<number> => {
      const app = express();
      // In any other it prints what it cannot decode.
      app.set('env', 'test');
      app.all(['/admin', '/admin/*rest'], (request, response) => {
        response.send(said('admin', (name) => request.get(name)));
      });
      app.all('/{*rest}', (request, response) => {
        response.send(said('other', (name) => request.get(name)));
      });
      return (await listen(t, createServer(app))).port;
    },
  },
  {
    name: 'Fastify',
    start: async (t: Scope): Promise<number> => {
      const app = fastify();
      for (const path of ['/admin', '/admin/*']) app.all(path, ({ headers }) => said('admin', (name) => headers[name]));
      app.all('/*', ({ headers }) => said('other', (name) => headers[name]));
      await app.ready();
      return (await listen(t, app.server)).port;
    },
  },
  { name: 'Flask on Gunicorn', start: async (t) => startGunicorn(t, flaskService, {}) },
  { name: 'PHP', start: async (t) => startPhp(t, phpService, {}) },
  {
    name: 'Java `HttpServer`',
    start: async (t: Scope): Promise<number> => {
      const file = join(tempDir(t), 'Service.java');
      writeFileSync(file, javaService);
      return startUpstreamProcess(t, { command: java, args: (address) => [file, address], env: {} });
    },
  },
  { name: 'Go `net/http`', start: async (t) => startGo(t, goService, {}) },
];
