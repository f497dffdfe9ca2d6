/** Spellings that a receiver may take for the same field: other case, other punctuation, doubled or none. */
export function lookAlikes(name: string): readonly string[] {
  const parts = name.split('-');
  const separators = ['_', '.', '!', '#', '$', '%', '&', "'", '*', '+', '^', '`', '|', '~', '--', '__', '-_', ''];
  const others = separators.map((separator) => parts.join(separator));
  return [
    ...others,
    `_${name}`,
    `${name}_`,
    `-${name}`,
    `${name}-`,
    name.replaceAll('-', '_').toUpperCase(),
    name.replace('-', '_'),
    name.replace(/(.)$/, '_$1'),
  ].filter((spelling) => spelling.toLowerCase() !== name.toLowerCase());
}

/** The same name in other cases. */
export function cases(name: string): readonly string[] {
  const alternating = Array.from(name, (character, i) =>
    i % 2 === 0 ? character.toLowerCase() : character.toUpperCase(),
  ).join('');
  return [name, name.toLowerCase(), name.toUpperCase(), alternating];
}

/** Fields that some receiver is known to believe where it stands behind the proxy that sets them, and who does. */
export const believedFields: readonly { readonly by: string; readonly names: readonly string[] }[] = [
  {
    by: 'PHP programs that ask for HTTP_CLIENT_IP',
    names: ['Client-IP', 'X-Client-IP', 'X-Cluster-Client-IP', 'Cluster-Client-IP'],
  },
  {
    by: 'programs that try every name for an address',
    names: [
      'Forwarded',
      'Forwarded-For',
      'Forwarded-For-IP',
      'X-Forwarded',
      'X-Forward-For',
      'X-Forwarded-By',
      'X-Real-IP',
      'Real-IP',
      'X-Remote-Addr',
      'X-Remote-IP',
      'Remote-Addr',
      'Remote-IP',
      'X-Originating-IP',
      'X-Origin-IP',
      'X-Source-IP',
      'X-Host-IP',
      'X-ProxyUser-IP',
      'Coming-From',
      'X-Coming-From',
      'True-IP',
    ],
  },
  {
    by: 'Akamai and Cloudflare',
    names: [
      'True-Client-IP',
      'X-True-Client-IP',
      'CF-Connecting-IP',
      'CF-Connecting-IPv6',
      'CF-Pseudo-IPv4',
      'CF-IPCountry',
      'CF-Visitor',
      'CF-Worker',
      'Cf-Access-Jwt-Assertion',
      'Cf-Access-Authenticated-User-Email',
      'Cf-Access-Client-Id',
    ],
  },
  {
    by: 'Fastly, Fly.io, Vercel, Netlify, Imperva, Sucuri, Alibaba, DigitalOcean',
    names: [
      'Fastly-Client-IP',
      'Fastly-Client',
      'Fastly-SSL',
      'Fly-Client-IP',
      'Fly-Forwarded-Port',
      'X-Vercel-Forwarded-For',
      'X-Vercel-IP-Country',
      'X-NF-Client-Connection-IP',
      'Incap-Client-IP',
      'X-Sucuri-ClientIP',
      'Ali-CDN-Real-IP',
      'CDN-Src-IP',
      'DO-Connecting-IP',
    ],
  },
  {
    by: 'Azure',
    names: [
      'X-Azure-ClientIP',
      'X-Azure-SocketIP',
      'X-MS-Client-Principal',
      'X-MS-Client-Principal-Name',
      'X-MS-Client-Principal-Id',
      'X-MS-Token-AAD-Id-Token',
      'X-ARR-ClientCert',
    ],
  },
  {
    by: 'AWS',
    names: [
      'X-Amzn-Oidc-Data',
      'X-Amzn-Oidc-Identity',
      'X-Amzn-Oidc-AccessToken',
      'X-Amzn-Mtls-Clientcert',
      'X-Amzn-Mtls-Clientcert-Subject',
      'CloudFront-Viewer-Address',
      'CloudFront-Forwarded-Proto',
    ],
  },
  {
    by: 'Google Cloud',
    names: [
      'X-Appengine-User-IP',
      'X-Appengine-Country',
      'X-Appengine-Cron',
      'X-Appengine-Inbound-Appid',
      'X-Goog-Authenticated-User-Email',
      'X-Goog-Authenticated-User-Id',
      'X-Goog-IAP-JWT-Assertion',
    ],
  },
  {
    by: 'WebLogic and servlet containers',
    names: ['WL-Proxy-Client-IP', 'WL-Proxy-SSL', 'WL-Proxy-Client-Cert', 'Proxy-Client-IP'],
  },
  {
    by: "Apache's modules and what stands behind them",
    names: [
      'Remote-User',
      'Remote-Name',
      'Remote-Email',
      'Remote-Groups',
      'X-Remote-User',
      'X-Remote-Group',
      'X-Remote-Extra-Scopes',
      'OIDC-Claim-Sub',
      'OIDC-Access-Token',
      'Mellon-Name-Id',
      'Shib-Identity-Provider',
      'EPPN',
      'Auth-User',
      'Logon-User',
    ],
  },
  {
    by: 'oauth2-proxy, Authelia, authentik, Vouch, Pomerium, Kong, Tailscale',
    names: [
      'X-Auth-Request-User',
      'X-Auth-Request-Email',
      'X-Auth-Request-Groups',
      'X-Auth-Request-Preferred-Username',
      'X-Auth-Request-Access-Token',
      'X-Auth-Request-Redirect',
      'X-Forwarded-User',
      'X-Forwarded-Email',
      'X-Forwarded-Groups',
      'X-Forwarded-Preferred-Username',
      'X-Forwarded-Access-Token',
      'X-Authentik-Username',
      'X-Vouch-User',
      'X-Pomerium-Jwt-Assertion',
      'X-Consumer-Username',
      'X-Consumer-Custom-Id',
      'X-Anonymous-Consumer',
      'X-Credential-Identifier',
      'X-Authenticated-Userid',
      'X-Userinfo',
      'Tailscale-User-Login',
      'Tailscale-User-Name',
      'X-Proxy-User',
    ],
  },
  { by: 'Grafana, Gitea and kin', names: ['X-Webauth-User', 'X-Webauth-Email', 'X-Webauth-Role'] },
  {
    by: 'SiteMinder, WebSEAL, Oracle',
    names: ['SM-User', 'SM-UserDN', 'IV-User', 'IV-Groups', 'IV-Creds', 'OAM-Remote-User', 'Osso-User-DN'],
  },
  {
    by: 'those who let a proxy verify certificates',
    names: [
      'SSL-Client-Verify',
      'SSL-Client-S-DN',
      'SSL-Client-Cert',
      'X-SSL-Client-Verify',
      'X-SSL-Client-DN',
      'X-SSL-Client-Cert',
      'X-SSL-Cert',
      'X-Client-Cert',
      'X-Client-Verify',
      'X-Client-DN',
      'X-Forwarded-Client-Cert',
      'X-Forwarded-Tls-Client-Cert',
      'Client-Cert',
      'Client-Cert-Chain',
    ],
  },
];

/** Fields that change what some receiver carries out. */
export const obeyedFields: readonly string[] = [
  'Destination',
  'X-HTTP-Method-Override',
  'X-HTTP-Method',
  'X-Method-Override',
  'HTTP-Method-Override',
  'X-HTTP-Method-Name',
  'X-Original-URL',
  'X-Original-URI',
  'X-Rewrite-URL',
  'X-Script-Name',
  'Script-Name',
  'Path-Info',
  'X-Replaced-Path',
];
