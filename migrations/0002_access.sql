-- SPDX-License-Identifier: Apache-2.0
-- Organisations, people, credentials, nodes and audit. Every table of an organisation has row-level security, forced;
-- foreign keys between them carry the organisation, so that a row can never point across.

create table app.organisation (
  id text collate "C" primary key,
  name text not null unique,
  created_at timestamptz not null default now()
);

create table app."user" (
  organisation_id text collate "C" not null references app.organisation,
  id text collate "C" not null,
  name text not null,
  role text not null check (role in ('admin', 'member')),
  created_at timestamptz not null default now(),
  primary key (organisation_id, id),
  unique (organisation_id, name)
);

-- A node is never deleted: history refers to it. Its name is free again only after it was retired.
create table app.node (
  organisation_id text collate "C" not null references app.organisation,
  id text collate "C" not null,
  name text not null,
  status text not null default 'active' check (status in ('active', 'draining', 'retired')),
  public_key bytea not null check (length(public_key) = 32),
  -- The session of the agent that runs now; an earlier one is refused.
  session_id text collate "C",
  claim_number bigint not null default 0,
  created_at timestamptz not null default now(),
  retired_at timestamptz,
  primary key (organisation_id, id),
  check ((status = 'retired') = (retired_at is not null))
);
create unique index node_name on app.node (organisation_id, name) where status <> 'retired';

-- Written every few seconds: no index on what changes, so that updates stay in their page (HOT).
create table app.node_heartbeat (
  organisation_id text collate "C" not null,
  node_id text collate "C" not null,
  at timestamptz not null,
  clock_offset_ms bigint not null,
  memory_available_bytes bigint not null,
  primary key (organisation_id, node_id),
  foreign key (organisation_id, node_id) references app.node
) with (fillfactor = 50);

-- What the machine has; written only when it changed.
create table app.node_facts (
  organisation_id text collate "C" not null,
  node_id text collate "C" not null,
  facts jsonb not null,
  at timestamptz not null default now(),
  primary key (organisation_id, node_id),
  foreign key (organisation_id, node_id) references app.node
);

create table app.credential (
  organisation_id text collate "C" not null references app.organisation,
  id text collate "C" not null,
  kind text not null check (kind in ('token', 'node')),
  name text not null,
  user_id text collate "C",
  node_id text collate "C",
  -- SHA-256 of the secret; the secret itself is nowhere here.
  hash bytea not null unique check (length(hash) = 32),
  scopes text[] not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz,
  primary key (organisation_id, id),
  foreign key (organisation_id, user_id) references app."user",
  foreign key (organisation_id, node_id) references app.node,
  check ((kind = 'node') = (node_id is not null)),
  check ((kind = 'token') = (user_id is not null)),
  -- A node's credential can never gain a scope of people, nor the other way round.
  check (case kind when 'node' then scopes <@ array['node:heartbeat', 'node:claim', 'node:report']
              else scopes <@ array['fleet:read', 'fleet:write', 'fleet:admin'] end)
);
create unique index credential_token_name on app.credential (organisation_id, name) where kind = 'token' and revoked_at is null;

create table app.pairing_code (
  organisation_id text collate "C" not null references app.organisation,
  id text collate "C" not null,
  name text not null,
  hash bytea not null unique check (length(hash) = 32),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  used_at timestamptz,
  used_public_key bytea,
  used_credential_hash bytea,
  node_id text collate "C",
  primary key (organisation_id, id),
  foreign key (organisation_id, node_id) references app.node,
  check ((used_at is null) = (used_public_key is null)),
  check ((used_at is null) = (node_id is null))
);

create table app.audit (
  organisation_id text collate "C" not null references app.organisation,
  id text collate "C" not null,
  at timestamptz not null default now(),
  actor text not null,
  action text not null,
  subject text not null,
  data jsonb not null default '{}',
  primary key (organisation_id, id)
);

do $$
declare
  tenant_table text;
begin
  foreach tenant_table in array array['user', 'node', 'node_heartbeat', 'node_facts', 'credential', 'pairing_code', 'audit'] loop
    execute format('alter table app.%I enable row level security', tenant_table);
    execute format('alter table app.%I force row level security', tenant_table);
    execute format('create policy tenant on app.%I to holdfast_tenant
      using (organisation_id = app.current_organisation()) with check (organisation_id = app.current_organisation())', tenant_table);
    execute format('create policy service on app.%I to holdfast_service using (app.is_service()) with check (app.is_service())', tenant_table);
  end loop;
end $$;
alter table app.organisation enable row level security;
alter table app.organisation force row level security;
create policy tenant on app.organisation to holdfast_tenant using (id = app.current_organisation());
create policy service on app.organisation to holdfast_service using (app.is_service());

-- Whoever may not administer the fleet cannot make a token or a pairing code, whatever a route forgot.
create policy token_needs_admin on app.credential as restrictive for insert to holdfast_tenant
  with check (kind <> 'token' or app.has_scope('fleet:admin'));
create policy code_needs_admin on app.pairing_code as restrictive for insert to holdfast_tenant
  with check (app.has_scope('fleet:admin'));

grant select on app.organisation, app."user" to holdfast_tenant;
grant select, insert, update on app.node_heartbeat, app.node_facts to holdfast_tenant;
grant select, insert on app.node, app.credential, app.pairing_code to holdfast_tenant;
-- Just what changes in a life: a revoked credential stays revoked where no route says otherwise, and scopes never change.
grant update (status, session_id, claim_number, retired_at) on app.node to holdfast_tenant;
grant update (revoked_at) on app.credential to holdfast_tenant;
grant update (used_at, used_public_key, used_credential_hash, node_id) on app.pairing_code to holdfast_tenant;
grant select, insert on app.audit to holdfast_tenant;

-- The loops that work across organisations, and the look-up of a credential before its organisation is known.
grant select on app.organisation, app."user", app.node, app.node_heartbeat, app.node_facts to holdfast_service;
grant select on app.credential, app.pairing_code to holdfast_service;
grant update (last_used_at) on app.credential to holdfast_service;
