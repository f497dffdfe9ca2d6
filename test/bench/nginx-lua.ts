/** nginx that checks tokens by itself, in Lua: what one would do without somebody to ask. */
import type { KeyObject } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runNginx } from '../support/nginx.js';
import { freePort } from '../support/listening.js';
import { request } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import type { Child } from './child.js';

const modules = ['ndk_http_module', 'ngx_http_lua_module'].map((name) => `/usr/lib/nginx/modules/${name}.so`);

/** Whether Debian's packages for it are there: libnginx-mod-http-lua, lua-luaossl and lua-cjson. */
export function hasNginxLua(): boolean {
  const libraries = ['/usr/share/lua/5.1/openssl/pkey.lua', '/usr/lib/x86_64-linux-gnu/lua/5.1/cjson.so'];
  return [...modules, ...libraries].every((file) => existsSync(file));
}

/** The rules of one issuer and one route, and the caller's identity for the receiver. */
function checkOf(remembers: boolean): string {
  return `
    local token = string.match(ngx.var.http_authorization or "", "^[Bb]earer (%S+)$")
    if not token then return ngx.exit(401) end
    local text = ${remembers ? 'ngx.shared.verified:get(token)' : 'nil'}
    if not text then
      local head, payload, signature = string.match(token, "^([^.]+)%.([^.]+)%.([^.]+)$")
      if not head then return ngx.exit(401) end
      local header = cjson.decode(decoded(head))
      if not header or header.alg ~= "RS256" then return ngx.exit(401) end
      if not key:verify(decoded(signature), digest.new("sha256"):update(head .. "." .. payload)) then return ngx.exit(401) end
      text = decoded(payload)
      ${remembers ? 'ngx.shared.verified:set(token, text, 60)' : ''}
    end
    local claims = cjson.decode(text)
    if not claims or claims.iss ~= "https://api.example.com" or claims.aud ~= "orders" or claims.source ~= "microservice"
      or claims.token_type ~= "service" or claims.sub ~= "checkout" or claims.exp <= ngx.time() then
      return ngx.exit(401)
    end
    local permissions = table.concat(claims.permissions, " ")
    if not string.find(" " .. permissions .. " ", " orders:read ", 1, true) then return ngx.exit(403) end
    ngx.req.clear_header("Authorization")
    ngx.req.set_header("X-Auth-Subject", claims.sub)
    ngx.req.set_header("X-Auth-Permissions", permissions)`;
}

/** Runs it before the receiver. `remembers` has it verify a token once a minute. */
export async function startNginxLua(
  t: Scope,
  receiver: number,
  {
    publicKey,
    token,
    remembers,
  }: { readonly publicKey: KeyObject; readonly token: string; readonly remembers: boolean },
): Promise<Child> {
  const port = await freePort();
  const keyFile = join(tempDir(t), 'key.pem');
  writeFileSync(keyFile, publicKey.export({ format: 'pem', type: 'spki' }));
  const http = `
lua_shared_dict verified 10m;
init_by_lua_block {
  cjson = require "cjson.safe"
  digest = require "openssl.digest"
  local file = io.open("${keyFile}")
  key = require "openssl.pkey".new(file:read("*a"))
  file:close()
  function decoded(text)
    local plain = string.gsub(string.gsub(text, "-", "+"), "_", "/")
    return ngx.decode_base64(plain .. string.rep("=", -#plain % 4)) or ""
  end
}
upstream receiver { server 127.0.0.1:${String(receiver)}; keepalive 64; }
server {
  listen 127.0.0.1:${String(port)};
  keepalive_requests 1000000;
  location / {
    access_by_lua_block {${checkOf(remembers)}
    }
    proxy_pass http://receiver;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
  }
}`;
  const { pid } = runNginx(t, http, modules);
  const headers = { Authorization: `Bearer ${token}` };
  await until(
    'nginx answers',
    async () => (await request(port, { path: '/orders', headers }).catch(() => null))?.status === 200,
  );
  return { pid, port };
}
