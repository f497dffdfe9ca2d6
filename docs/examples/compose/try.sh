#!/bin/sh
# What to try once `docker compose up --detach --wait` has come back. Each line says what it expects.
set -eu
core=${CORE:-http://127.0.0.1:3567}
orders=${ORDERS:-http://127.0.0.1:8080}

# A token of the caller `checkout` with these permissions. The emulator signs for everybody; a Core wants an API key.
token() {
  curl -sS "$core/recipe/jwt" -H 'Content-Type: application/json' -H 'cdi-version: 2.21' --data '{ "payload": { "aud": "orders", "sub": "checkout",
    "source": "microservice", "token_type": "service", "permissions": ['"$1"'] }, "algorithm": "RS256", "jwksDomain": "https://api.example.com",
    "validity": 300, "useStaticSigningKey": false }' | sed 's/.*"jwt":"\([^"]*\)".*/\1/'
}

# Prints what is expected, the answer, and its status.
try() {
  printf '\n%s\n' "$1"
  shift
  curl -sS -w ' -> %{http_code}\n' "$@"
}

write() {
  try "$1" -H "Authorization: Bearer $2" -H "Idempotency-Key: $key" -H 'Content-Type: application/json' --data "$3" "$orders/orders"
}

reads=$(token '"orders:read"')
writes=$(token '"orders:read", "orders:write"')
key=try-$(date +%s)-$$

try '200: a public route' "$orders/healthz"
try '401: no token' "$orders/orders"
try '200: a token; the service is told who calls' -H "Authorization: Bearer $reads" "$orders/orders"
try '200: what a caller says of itself is taken away' -H "Authorization: Bearer $reads" -H 'X-Auth-Subject: the-boss' "$orders/orders"
write '403: a token that lacks the permission' "$reads" '{ "item": "book" }'
write '201: an order is written' "$writes" '{ "item": "book" }'
write '201: sent again, it gets the stored answer' "$writes" '{ "item": "book" }'
write '422: the same key with another body' "$writes" '{ "item": "car" }'
try '200: the order is there once' -H "Authorization: Bearer $reads" "$orders/orders"
