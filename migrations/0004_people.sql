-- SPDX-License-Identifier: Apache-2.0
-- How people sign in, what they may do, and the registries that jobs refer to. A user's row is their membership of one
-- organisation. A browser that is signed in holds a credential of its own kind, so expiry, revocation and last use are one
-- mechanism for all.

alter table app."user" add column disabled_at timestamptz;

alter table app.credential drop constraint credential_kind_check;
alter table app.credential add constraint credential_kind_check check (kind in ('token', 'node', 'browser'));
do $$
declare
  old record;
begin
  -- (kind = 'token') = (user_id is not null) was written before browsers were.
  for old in select conname from pg_constraint where conrelid = 'app.credential'::regclass and contype = 'c'
      and pg_get_constraintdef(oid) like '%user_id IS NOT NULL%' loop
    execute format('alter table app.credential drop constraint %I', old.conname);
  end loop;
end $$;
alter table app.credential add constraint credential_of_user check ((kind in ('token', 'browser')) = (user_id is not null));
alter table app.credential add constraint credential_browser_expires check (kind <> 'browser' or expires_at is not null);
create index credential_user on app.credential (organisation_id, user_id) where user_id is not null and revoked_at is null;

-- argon2id in PHC form. Apart from the user, so that whoever lists people never reads a hash.
create table app.password (
  organisation_id text collate "C" not null,
  user_id text collate "C" not null,
  -- The user's name: whoever signs in by a password has not said in which organisation.
  sign_in_name text not null unique,
  hash text not null check (hash like '$argon2id$%'),
  changed_at timestamptz not null default now(),
  primary key (organisation_id, user_id),
  foreign key (organisation_id, user_id) references app."user"
);

create table app.login_link (
  organisation_id text collate "C" not null,
  id text collate "C" not null,
  user_id text collate "C" not null,
  hash bytea not null unique check (length(hash) = 32),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  used_at timestamptz,
  primary key (organisation_id, id),
  foreign key (organisation_id, user_id) references app."user"
);

create table app.model (
  organisation_id text collate "C" not null references app.organisation,
  id text collate "C" not null,
  name text not null,
  needs jsonb not null default '{}',
  marker text,
  description text not null default '',
  created_at timestamptz not null default now(),
  retired_at timestamptz,
  primary key (organisation_id, id)
);
create unique index model_name on app.model (organisation_id, name) where retired_at is null;

create table app.project (
  organisation_id text collate "C" not null references app.organisation,
  id text collate "C" not null,
  name text not null,
  description text not null default '',
  created_at timestamptz not null default now(),
  retired_at timestamptz,
  primary key (organisation_id, id)
);
create unique index project_name on app.project (organisation_id, name) where retired_at is null;

alter table app.job add column project_id text collate "C";
alter table app.job add constraint job_project foreign key (organisation_id, project_id) references app.project;
create index job_project on app.job (organisation_id, project_id, id) where project_id is not null;
-- For what ended of late, minute by minute.
create index job_finished on app.job (organisation_id, finished_at) where finished_at is not null;

alter table app.node add column session_at timestamptz;
-- When an agent last spoke for a session that is not the node's present one.
alter table app.node add column rival_at timestamptz;
alter table app.node add column rotation_requested_at timestamptz;
-- The credential that a node offered in place of its present one, until its first use.
alter table app.node add column offered_credential_id text collate "C";

do $$
declare
  tenant_table text;
begin
  foreach tenant_table in array array['password', 'login_link', 'model', 'project'] loop
    execute format('alter table app.%I enable row level security', tenant_table);
    execute format('alter table app.%I force row level security', tenant_table);
    execute format('create policy tenant on app.%I to holdfast_tenant
      using (organisation_id = app.current_organisation()) with check (organisation_id = app.current_organisation())', tenant_table);
  end loop;
  foreach tenant_table in array array['password', 'login_link'] loop
    execute format('create policy service on app.%I to holdfast_service using (app.is_service()) with check (app.is_service())', tenant_table);
  end loop;
end $$;

-- Whatever a route forgot: people are changed by admins, a browser is let in by signing in, a link is made by an admin, and
-- a password is set by its owner.
create policy user_needs_admin_insert on app."user" as restrictive for insert to holdfast_tenant with check (app.has_scope('fleet:admin'));
create policy user_needs_admin_update on app."user" as restrictive for update to holdfast_tenant using (app.has_scope('fleet:admin'));
create policy browser_needs_sign_in on app.credential as restrictive for insert to holdfast_tenant
  with check (kind <> 'browser' or app.has_scope('sign-in'));
create policy link_needs_admin on app.login_link as restrictive for insert to holdfast_tenant with check (app.has_scope('fleet:admin'));
create policy password_insert on app.password as restrictive for insert to holdfast_tenant with check (app.has_scope('own-password'));
create policy password_update on app.password as restrictive for update to holdfast_tenant using (app.has_scope('own-password'));

grant insert on app."user" to holdfast_tenant;
grant update (role, disabled_at) on app."user" to holdfast_tenant;
grant select (organisation_id, user_id, changed_at), insert, update (sign_in_name, hash, changed_at) on app.password to holdfast_tenant;
grant select on app.password to holdfast_service;
grant select, insert on app.login_link to holdfast_tenant;
grant update (used_at) on app.login_link to holdfast_tenant;
grant select on app.login_link to holdfast_service;
grant select, insert on app.model, app.project to holdfast_tenant;
grant update (retired_at) on app.model, app.project to holdfast_tenant;
grant update (session_at, rival_at, rotation_requested_at, offered_credential_id) on app.node to holdfast_tenant;
