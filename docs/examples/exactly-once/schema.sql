create table applied_writes (
  record  text primary key,                -- Idempotency-Record
  fence   bigint not null,                 -- the highest Idempotency-Fence that came
  status  integer,                         -- what was answered; null while nothing was applied
  body    json,                            -- not jsonb, which would write its members in another order
  at      timestamptz not null default now()
);

create table orders (
  id       bigint generated always as identity primary key,
  customer text not null,
  item     text not null
);

create table outbox (
  id      bigint generated always as identity primary key,
  record  text not null,                   -- Idempotency-Record: the key under which it is done
  kind    text not null,
  payload jsonb not null,
  done_at timestamptz,
  unique (record, kind)
);
