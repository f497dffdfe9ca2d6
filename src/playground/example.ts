/** What the page shows that was given no config: a shop's orders, with cases that hold. */

export const exampleConfig = `# Orders of a shop: who may read them, and who may write them.
listen: { host: 127.0.0.1, port: 8080 }
upstream: { url: http://127.0.0.1:3000 }
receiver: { case_sensitive: true, strict_slash: true, format_suffix: false, trailing_dots: false, head_as_get: false }
store: { memory: {} }
issuers:
  core:
    issuer: https://api.example.com
    audience: orders
    source: microservice
    token_type: service
    jwks_url: http://127.0.0.1:3567/.well-known/jwks.json
routes:
  - name: list-orders
    methods: [GET]
    path: /orders
    subjects: [checkout, reporting]
    permissions: [orders:read]
  - name: read-order
    methods: [GET]
    path: /orders/{id}
    subjects: [checkout]
    permissions: [orders:read]
  - name: place-order
    methods: [POST]
    path: /orders
    subjects: [checkout]
    permissions: [orders:write]
    idempotency: required
  - name: health
    methods: [GET]
    path: /healthz
    access: public
`;

export const exampleTests = `config: sallyport.yaml
cases:
  - name: checkout lists orders
    request: { method: GET, path: /orders }
    claims: { sub: checkout, permissions: [orders:read] }
    expect: { status: 200, route: list-orders }
  - name: reporting lists orders
    request: { method: GET, path: /orders }
    claims: { sub: reporting, permissions: [orders:read] }
    expect: { status: 200, route: list-orders }
  - name: to list them takes a permission
    request: { method: GET, path: /orders }
    claims: { sub: reporting }
    expect: { status: 403, reason: permission_missing }
  - name: reporting reads no single order
    request: { method: GET, path: /orders/7 }
    claims: { sub: reporting, permissions: [orders:read] }
    expect: { status: 403, route: read-order }
  - name: an order is placed once
    request: { method: POST, path: /orders, headers: { Idempotency-Key: k-1 }, body: '{"item":7}' }
    claims: { sub: checkout, permissions: [orders:write] }
    expect: { status: 200, reservation: required }
  - name: without a key no order is placed
    request: { method: POST, path: /orders, body: '{"item":7}' }
    claims: { sub: checkout, permissions: [orders:write] }
    expect: { reason: idempotency_key_missing }
  - name: a stranger
    request: { method: GET, path: /orders }
    expect: { status: 401, reason: credential_missing }
  - name: anybody asks for its health
    request: { method: GET, path: /healthz }
    expect: { status: 200, route: health }
`;
