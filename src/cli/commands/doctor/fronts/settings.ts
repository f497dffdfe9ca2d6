/** Settings of proxies in front that open a hole: docs/decide.md has the same table, and a test shows each. */
import type { Form } from '../../../../decision/decide/forms.js';

/** One setting that has to be otherwise. */
export interface FrontSetting {
  readonly setting: string;
  /** What becomes of requests with it. */
  readonly danger: string;
  readonly fix: string;
  /** Which question to the front shows that it is not so; `null` where none does. */
  readonly shownBy: 'asked' | 'described' | null;
}

export const frontSettings: Readonly<Record<Form, readonly FrontSetting[]>> = {
  nginx: [
    {
      setting: '`proxy_pass` with a path',
      danger:
        'where a route has `encoded_slashes: allow`, `/files/a%2Fb` is judged as one segment and forwarded as two',
      fix: 'write `proxy_pass` without a path, not even `/`',
      shownBy: null,
    },
    {
      setting: '`rewrite` in a location with `auth_request`',
      danger: 'the target is judged as it came and forwarded as it was rewritten',
      fix: 'rewrite in the service, or write routes for what is forwarded and ask for that',
      shownBy: null,
    },
    {
      setting: 'an identity header without its `proxy_set_header`',
      danger: 'the client’s own goes on',
      fix: 'set each header of `identity`, and `Authorization`, from the answer',
      shownBy: null,
    },
    {
      setting: '`DPoP` without its `proxy_set_header`',
      danger: 'the proof of a key goes on to the upstream',
      fix: 'set it from the answer, as `Authorization`',
      shownBy: null,
    },
    {
      setting: '`X-Forwarded-Host`, `X-Real-IP`, `Forwarded` or `Via` without its `proxy_set_header`',
      danger: 'the client’s own goes on, and an upstream may believe it',
      fix: 'set each to what nginx knows, or to nothing',
      shownBy: null,
    },
    {
      setting: '`proxy_pass_request_headers off` in the asking location, with `underscores_in_headers on`',
      danger: '`X_Auth_Subject` goes on unseen',
      fix: 'leave both as they are by default',
      shownBy: null,
    },
    {
      setting: 'a location without `auth_request`',
      danger: 'nobody is asked',
      fix: 'give each location that forwards its `auth_request`',
      shownBy: 'asked',
    },
  ],
  caddy: [
    {
      setting: 'an identity header that neither `request_header -NAME` removes nor `copy_headers` sets',
      danger: 'the client’s own goes on; releases 2.10 to 2.11.1 copy no empty value, so that only the first helps',
      fix: 'remove each header of `identity` before `forward_auth`',
      shownBy: null,
    },
    {
      setting: '`copy_headers` without `DPoP`',
      danger: 'the proof of a key goes on to the upstream',
      fix: 'name it beside `Authorization`',
      shownBy: null,
    },
    {
      setting: '`X-Real-IP`, `Forwarded` or `Via` that no `request_header` removes',
      danger: 'the client’s own goes on, and an upstream may believe it',
      fix: 'remove them before `forward_auth`',
      shownBy: null,
    },
    {
      setting: 'a path matcher on `forward_auth`',
      danger: 'what does not match is not asked about',
      fix: 'write `forward_auth` without a matcher',
      shownBy: 'asked',
    },
    {
      setting: 'no `X-Original-Connection`',
      danger: '`Connection: X-Auth-Subject` has Caddy remove the identity',
      fix: 'add `header_up X-Original-Connection {http.request.header.Connection}`',
      shownBy: null,
    },
  ],
  haproxy: [
    {
      setting: 'a rule that rewrites behind `lua.sallyport` (`set-path`, `replace-uri`, `normalize-uri`)',
      danger: 'the target is judged as it came and forwarded as it was rewritten',
      fix: 'put such rules before `lua.sallyport`',
      shownBy: null,
    },
    {
      setting: '`http-request allow` before `lua.sallyport`',
      danger: 'what it allows is not asked about',
      fix: 'put `lua.sallyport` first of the rules that end',
      shownBy: 'asked',
    },
    {
      setting: '`lua.sallyport` without the `http-request deny` behind it',
      danger: 'HAProxy goes on behind a script that fails, and nobody was asked',
      fix: 'deny what the script did not mark in `txn.sallyport`',
      shownBy: null,
    },
  ],
  apache: [
    {
      setting: '`Satisfy Any` (`mod_access_compat`)',
      danger: 'a `Require` that is met lets pass what the script refused',
      fix: 'leave it out',
      shownBy: 'asked',
    },
    {
      setting: 'a virtual host without `LuaHookAccessChecker`, where it stands in another one',
      danger: 'nobody is asked',
      fix: 'write it once, outside of every virtual host',
      shownBy: 'asked',
    },
    {
      setting: '`RequestHeader` of `mod_headers` for an identity header',
      danger: 'it works behind the script, and what it takes from the client goes on',
      fix: 'leave these headers to the script',
      shownBy: null,
    },
  ],
  traefik: [
    {
      setting: '`trustForwardHeader: true`',
      danger: 'the client describes its own request',
      fix: 'set it to false',
      shownBy: 'described',
    },
    {
      setting: 'an identity header that is not in `authResponseHeaders`',
      danger: 'the client’s own goes on',
      fix: 'list each header of `identity`, and `Authorization`',
      shownBy: null,
    },
    {
      setting: '`DPoP` that is not in `authResponseHeaders`',
      danger: 'the proof of a key goes on to the upstream',
      fix: 'list it beside `Authorization`',
      shownBy: null,
    },
  ],
  envoy: [
    {
      setting: '`failure_mode_allow: true`',
      danger: 'everything passes while Sallyport is away',
      fix: 'set it to false',
      shownBy: null,
    },
    {
      setting: '`allowed_headers` that are not all, or `disallowed_headers`',
      danger: 'what is not shown is neither judged nor removed',
      fix: 'leave both out with gRPC, and match every name with the HTTP service',
      shownBy: null,
    },
  ],
};
