-- SPDX-License-Identifier: Apache-2.0
-- The schema after all migrations, for reading. Written by `npm run schema` from a migrated database; a test compares it.

create table app.attempt (
  organisation_id text not null,
  job_id text not null,
  epoch bigint not null,
  node_id text not null,
  claimed_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  outcome jsonb,
  stdout_bytes bigint not null default 0,
  stderr_bytes bigint not null default 0,
  log_number bigint not null default 0,
  log_kept_bytes bigint not null default 0,
  placement jsonb
) with (fillfactor=80);
-- row-level security: forced
--   constraint attempt_organisation_id_job_id_fkey FOREIGN KEY (organisation_id, job_id) REFERENCES app.job(organisation_id, id)
--   constraint attempt_organisation_id_node_id_fkey FOREIGN KEY (organisation_id, node_id) REFERENCES app.node(organisation_id, id)
--   constraint attempt_pkey PRIMARY KEY (organisation_id, job_id, epoch)
--   policy service permissive for all to holdfast_service using (app.is_service()) with check (app.is_service())
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   grant insert, select, update to holdfast_tenant
--   grant select (ended_at, epoch, job_id, organisation_id) to holdfast_service
--   grant update (ended_at, outcome) to holdfast_service

create table app.audit (
  organisation_id text not null,
  id text not null,
  at timestamp with time zone not null default now(),
  actor text not null,
  action text not null,
  subject text not null,
  data jsonb not null default '{}'::jsonb
);
-- row-level security: forced
--   constraint audit_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES app.organisation(id)
--   constraint audit_pkey PRIMARY KEY (organisation_id, id)
--   policy service permissive for all to holdfast_service using (app.is_service()) with check (app.is_service())
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   grant insert, select to holdfast_tenant

create table app.credential (
  organisation_id text not null,
  id text not null,
  kind text not null,
  name text not null,
  user_id text,
  node_id text,
  hash bytea not null,
  scopes text[] not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  last_used_at timestamp with time zone,
  revoked_at timestamp with time zone
);
-- row-level security: forced
--   constraint credential_browser_expires CHECK (((kind <> 'browser'::text) OR (expires_at IS NOT NULL)))
--   constraint credential_check CHECK (((kind = 'node'::text) = (node_id IS NOT NULL)))
--   constraint credential_check2 CHECK ( CASE kind WHEN 'node'::text THEN (scopes <@ ARRAY['node:heartbeat'::text, 'node:claim'::text, 'node:report'::text]) ELSE (scopes <@ ARRAY['fleet:read'::text, 'fleet:write'::text, 'fleet:admin'::text]) END)
--   constraint credential_hash_check CHECK ((length(hash) = 32))
--   constraint credential_hash_key UNIQUE (hash)
--   constraint credential_kind_check CHECK ((kind = ANY (ARRAY['token'::text, 'node'::text, 'browser'::text])))
--   constraint credential_of_user CHECK (((kind = ANY (ARRAY['token'::text, 'browser'::text])) = (user_id IS NOT NULL)))
--   constraint credential_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES app.organisation(id)
--   constraint credential_organisation_id_node_id_fkey FOREIGN KEY (organisation_id, node_id) REFERENCES app.node(organisation_id, id)
--   constraint credential_organisation_id_user_id_fkey FOREIGN KEY (organisation_id, user_id) REFERENCES app."user"(organisation_id, id)
--   constraint credential_pkey PRIMARY KEY (organisation_id, id)
--   CREATE INDEX credential_user ON app.credential USING btree (organisation_id, user_id) WHERE ((user_id IS NOT NULL) AND (revoked_at IS NULL))
--   CREATE UNIQUE INDEX credential_token_name ON app.credential USING btree (organisation_id, name) WHERE ((kind = 'token'::text) AND (revoked_at IS NULL))
--   policy browser_needs_sign_in restrictive for insert to holdfast_tenant using () with check (((kind <> 'browser'::text) OR app.has_scope('sign-in'::text)))
--   policy service permissive for all to holdfast_service using (app.is_service()) with check (app.is_service())
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   policy token_needs_admin restrictive for insert to holdfast_tenant using () with check (((kind <> 'token'::text) OR app.has_scope('fleet:admin'::text)))
--   grant insert, select to holdfast_tenant
--   grant select to holdfast_service
--   grant update (last_used_at) to holdfast_service
--   grant update (revoked_at) to holdfast_tenant

create table app.idempotency (
  organisation_id text not null,
  route text not null,
  key text not null,
  fingerprint bytea not null,
  job_id text not null,
  created_at timestamp with time zone not null default now()
);
-- row-level security: forced
--   constraint idempotency_fingerprint_check CHECK ((length(fingerprint) = 32))
--   constraint idempotency_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES app.organisation(id)
--   constraint idempotency_organisation_id_job_id_fkey FOREIGN KEY (organisation_id, job_id) REFERENCES app.job(organisation_id, id) DEFERRABLE INITIALLY DEFERRED
--   constraint idempotency_pkey PRIMARY KEY (organisation_id, route, key)
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   grant insert, select to holdfast_tenant

create table app.job (
  organisation_id text not null,
  id text not null,
  lane_id text not null,
  state text not null,
  priority smallint not null default 0,
  epoch bigint not null default 0,
  seq integer not null default 1,
  attempt smallint not null default 0,
  max_attempts smallint not null,
  retry_on_failure boolean not null,
  unstarted smallint not null default 0,
  run_at timestamp with time zone,
  lease_until timestamp with time zone,
  node_id text,
  session_id text,
  claim_number bigint,
  cancel_requested boolean not null default false,
  reason text,
  exit_code smallint,
  created_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  finished_at timestamp with time zone,
  project_id text,
  turn timestamp with time zone not null default now(),
  queued_at timestamp with time zone not null default now(),
  skipped smallint not null default 0
) with (fillfactor=80);
-- row-level security: forced
--   constraint job_epoch_check CHECK ((epoch >= 0))
--   constraint job_finished_when_final CHECK (((state = ANY (ARRAY['succeeded'::text, 'failed'::text, 'cancelled'::text, 'dead'::text])) = (finished_at IS NOT NULL)))
--   constraint job_lease_in_lease_states CHECK (((state = ANY (ARRAY['leased'::text, 'running'::text])) = (lease_until IS NOT NULL)))
--   constraint job_node_of_lease CHECK (((session_id IS NULL) OR (node_id IS NOT NULL)))
--   constraint job_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES app.organisation(id)
--   constraint job_organisation_id_lane_id_fkey FOREIGN KEY (organisation_id, lane_id) REFERENCES app.lane(organisation_id, id)
--   constraint job_organisation_id_node_id_fkey FOREIGN KEY (organisation_id, node_id) REFERENCES app.node(organisation_id, id)
--   constraint job_pkey PRIMARY KEY (organisation_id, id)
--   constraint job_project FOREIGN KEY (organisation_id, project_id) REFERENCES app.project(organisation_id, id)
--   constraint job_scheduled_has_time CHECK (((state <> 'scheduled'::text) OR (run_at IS NOT NULL)))
--   constraint job_session_in_lease_states CHECK (((state = ANY (ARRAY['leased'::text, 'running'::text])) = (session_id IS NOT NULL)))
--   constraint job_state_check CHECK ((state = ANY (ARRAY['scheduled'::text, 'queued'::text, 'leased'::text, 'running'::text, 'succeeded'::text, 'failed'::text, 'cancelled'::text, 'dead'::text])))
--   CREATE INDEX job_claim ON app.job USING btree (lane_id, turn, id) WHERE (state = 'queued'::text)
--   CREATE INDEX job_due ON app.job USING btree (run_at) WHERE (state = 'scheduled'::text)
--   CREATE INDEX job_finished ON app.job USING btree (organisation_id, finished_at) WHERE (finished_at IS NOT NULL)
--   CREATE INDEX job_held ON app.job USING btree (organisation_id, node_id) WHERE (lease_until IS NOT NULL)
--   CREATE INDEX job_lease ON app.job USING btree (lease_until) WHERE (lease_until IS NOT NULL)
--   policy service permissive for all to holdfast_service using (app.is_service()) with check (app.is_service())
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   grant insert, select, update to holdfast_tenant
--   grant select to holdfast_service
--   grant update (attempt, claim_number, epoch, exit_code, finished_at, lease_until, node_id, queued_at, reason, run_at, seq, session_id, state, unstarted) to holdfast_service

create table app.job_body (
  organisation_id text not null,
  job_id text not null,
  command jsonb not null,
  environment jsonb not null,
  working_directory text,
  input jsonb,
  labels jsonb not null,
  time_limit_ms bigint,
  result jsonb,
  message text
);
-- row-level security: forced
--   constraint job_body_organisation_id_job_id_fkey FOREIGN KEY (organisation_id, job_id) REFERENCES app.job(organisation_id, id)
--   constraint job_body_pkey PRIMARY KEY (organisation_id, job_id)
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   grant insert, select, update to holdfast_tenant

create table app.job_event (
  organisation_id text not null,
  job_id text not null,
  seq integer not null,
  kind text not null,
  at timestamp with time zone not null default clock_timestamp(),
  actor text not null,
  epoch bigint not null,
  data jsonb not null default '{}'::jsonb,
  xid xid8 not null default pg_current_xact_id()
);
-- row-level security: forced
--   constraint job_event_organisation_id_job_id_fkey FOREIGN KEY (organisation_id, job_id) REFERENCES app.job(organisation_id, id)
--   constraint job_event_pkey PRIMARY KEY (organisation_id, job_id, seq)
--   constraint job_event_seq_check CHECK ((seq >= 1))
--   policy service permissive for all to holdfast_service using (app.is_service()) with check (app.is_service())
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   grant insert to holdfast_service
--   grant insert, select to holdfast_tenant
--   grant select (organisation_id) to holdfast_service

create table app.job_log (
  organisation_id text not null,
  job_id text not null,
  epoch bigint not null,
  number bigint not null,
  stream text not null,
  start_offset bigint not null,
  at timestamp with time zone not null default now(),
  data bytea not null
);
-- row-level security: forced
--   constraint job_log_data_check CHECK (((length(data) >= 1) AND (length(data) <= 65536)))
--   constraint job_log_organisation_id_job_id_epoch_fkey FOREIGN KEY (organisation_id, job_id, epoch) REFERENCES app.attempt(organisation_id, job_id, epoch)
--   constraint job_log_pkey PRIMARY KEY (organisation_id, job_id, epoch, number)
--   constraint job_log_stream_check CHECK ((stream = ANY (ARRAY['stdout'::text, 'stderr'::text])))
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   grant insert, select to holdfast_tenant

create table app.lane (
  organisation_id text not null,
  id text not null,
  key bytea not null,
  requirement jsonb not null,
  blocked text,
  created_at timestamp with time zone not null default now(),
  project_id text
);
-- row-level security: forced
--   constraint lane_key_check CHECK ((length(key) = 32))
--   constraint lane_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES app.organisation(id)
--   constraint lane_organisation_id_key_key UNIQUE (organisation_id, key)
--   constraint lane_pkey PRIMARY KEY (organisation_id, id)
--   constraint lane_project FOREIGN KEY (organisation_id, project_id) REFERENCES app.project(organisation_id, id)
--   policy service permissive for all to holdfast_service using (app.is_service()) with check (app.is_service())
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   grant insert, select, update to holdfast_tenant
--   grant select to holdfast_service
--   grant update (blocked) to holdfast_service

create table app.login_link (
  organisation_id text not null,
  id text not null,
  user_id text not null,
  hash bytea not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  used_at timestamp with time zone
);
-- row-level security: forced
--   constraint login_link_hash_check CHECK ((length(hash) = 32))
--   constraint login_link_hash_key UNIQUE (hash)
--   constraint login_link_organisation_id_user_id_fkey FOREIGN KEY (organisation_id, user_id) REFERENCES app."user"(organisation_id, id)
--   constraint login_link_pkey PRIMARY KEY (organisation_id, id)
--   policy link_needs_admin restrictive for insert to holdfast_tenant using () with check (app.has_scope('fleet:admin'::text))
--   policy service permissive for all to holdfast_service using (app.is_service()) with check (app.is_service())
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   grant insert, select to holdfast_tenant
--   grant select to holdfast_service
--   grant update (used_at) to holdfast_tenant

create table app.migration (
  number integer not null,
  name text not null,
  sha256 text not null,
  applied_at timestamp with time zone not null default now()
);
-- row-level security: none
--   constraint migration_pkey PRIMARY KEY (number)
--   grant select to holdfast_controller

create table app.model (
  organisation_id text not null,
  id text not null,
  name text not null,
  needs jsonb not null default '{}'::jsonb,
  marker text,
  description text not null default ''::text,
  created_at timestamp with time zone not null default now(),
  retired_at timestamp with time zone
);
-- row-level security: forced
--   constraint model_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES app.organisation(id)
--   constraint model_pkey PRIMARY KEY (organisation_id, id)
--   CREATE UNIQUE INDEX model_name ON app.model USING btree (organisation_id, name) WHERE (retired_at IS NULL)
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   grant insert, select to holdfast_tenant
--   grant update (retired_at) to holdfast_tenant

create table app.node (
  organisation_id text not null,
  id text not null,
  name text not null,
  status text not null default 'active'::text,
  public_key bytea not null,
  session_id text,
  claim_number bigint not null default 0,
  created_at timestamp with time zone not null default now(),
  retired_at timestamp with time zone,
  session_at timestamp with time zone,
  rival_at timestamp with time zone,
  rotation_requested_at timestamp with time zone,
  offered_credential_id text,
  boundary_state text,
  boundary_why text,
  boundary_evidence jsonb,
  boundary_superseded jsonb not null default '[]'::jsonb,
  scene_wish text,
  scene_wish_number bigint not null default 0,
  scene_wish_at timestamp with time zone,
  last_project text,
  left_at timestamp with time zone
);
-- row-level security: forced
--   constraint node_boundary_state_check CHECK ((boundary_state = ANY (ARRAY['trusted'::text, 'untrusted'::text, 'future'::text, 'unwritable'::text])))
--   constraint node_boundary_superseded_check CHECK ((jsonb_typeof(boundary_superseded) = 'array'::text))
--   constraint node_check CHECK (((status = 'retired'::text) = (retired_at IS NOT NULL)))
--   constraint node_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES app.organisation(id)
--   constraint node_pkey PRIMARY KEY (organisation_id, id)
--   constraint node_public_key_check CHECK ((length(public_key) = 32))
--   constraint node_scene_wish_number_check CHECK ((scene_wish_number >= 0))
--   constraint node_status_check CHECK ((status = ANY (ARRAY['active'::text, 'draining'::text, 'retired'::text])))
--   CREATE UNIQUE INDEX node_name ON app.node USING btree (organisation_id, name) WHERE (status <> 'retired'::text)
--   policy service permissive for all to holdfast_service using (app.is_service()) with check (app.is_service())
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   grant insert, select to holdfast_tenant
--   grant select to holdfast_service
--   grant update (boundary_evidence, boundary_state, boundary_superseded, boundary_why, claim_number, last_project, left_at, offered_credential_id, public_key, retired_at, rival_at, rotation_requested_at, scene_wish, scene_wish_at, scene_wish_number, session_at, session_id, status) to holdfast_tenant

create table app.node_facts (
  organisation_id text not null,
  node_id text not null,
  facts jsonb not null,
  at timestamp with time zone not null default now()
);
-- row-level security: forced
--   constraint node_facts_organisation_id_node_id_fkey FOREIGN KEY (organisation_id, node_id) REFERENCES app.node(organisation_id, id)
--   constraint node_facts_pkey PRIMARY KEY (organisation_id, node_id)
--   policy service permissive for all to holdfast_service using (app.is_service()) with check (app.is_service())
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   grant insert, select, update to holdfast_tenant
--   grant select to holdfast_service

create table app.node_heartbeat (
  organisation_id text not null,
  node_id text not null,
  at timestamp with time zone not null,
  clock_offset_ms bigint not null,
  memory_available_bytes bigint not null,
  scenes jsonb,
  devices_available jsonb,
  polled_at timestamp with time zone
) with (fillfactor=50);
-- row-level security: forced
--   constraint node_heartbeat_organisation_id_node_id_fkey FOREIGN KEY (organisation_id, node_id) REFERENCES app.node(organisation_id, id)
--   constraint node_heartbeat_pkey PRIMARY KEY (organisation_id, node_id)
--   policy service permissive for all to holdfast_service using (app.is_service()) with check (app.is_service())
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   grant insert, select, update to holdfast_tenant
--   grant select to holdfast_service

create table app.organisation (
  id text not null,
  name text not null,
  created_at timestamp with time zone not null default now()
);
-- row-level security: forced
--   constraint organisation_name_key UNIQUE (name)
--   constraint organisation_pkey PRIMARY KEY (id)
--   policy service permissive for all to holdfast_service using (app.is_service()) with check ()
--   policy tenant permissive for all to holdfast_tenant using ((id = app.current_organisation())) with check ()
--   grant select to holdfast_service
--   grant select to holdfast_tenant

create table app.pairing_code (
  organisation_id text not null,
  id text not null,
  name text not null,
  hash bytea not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  used_at timestamp with time zone,
  used_public_key bytea,
  used_credential_hash bytea,
  node_id text,
  takes_over text,
  phases jsonb not null default '[]'::jsonb,
  used_from text
);
-- row-level security: forced
--   constraint pairing_code_check CHECK (((used_at IS NULL) = (used_public_key IS NULL)))
--   constraint pairing_code_check1 CHECK (((used_at IS NULL) = (node_id IS NULL)))
--   constraint pairing_code_hash_check CHECK ((length(hash) = 32))
--   constraint pairing_code_hash_key UNIQUE (hash)
--   constraint pairing_code_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES app.organisation(id)
--   constraint pairing_code_organisation_id_node_id_fkey FOREIGN KEY (organisation_id, node_id) REFERENCES app.node(organisation_id, id)
--   constraint pairing_code_phases_check CHECK ((jsonb_typeof(phases) = 'array'::text))
--   constraint pairing_code_pkey PRIMARY KEY (organisation_id, id)
--   constraint pairing_code_takes_over FOREIGN KEY (organisation_id, takes_over) REFERENCES app.node(organisation_id, id)
--   policy code_needs_admin restrictive for insert to holdfast_tenant using () with check (app.has_scope('fleet:admin'::text))
--   policy service permissive for all to holdfast_service using (app.is_service()) with check (app.is_service())
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   grant insert, select to holdfast_tenant
--   grant select to holdfast_service
--   grant update (node_id, phases, used_at, used_credential_hash, used_from, used_public_key) to holdfast_tenant

create table app.password (
  organisation_id text not null,
  user_id text not null,
  sign_in_name text not null,
  hash text not null,
  changed_at timestamp with time zone not null default now()
);
-- row-level security: forced
--   constraint password_hash_check CHECK ((hash ~~ '$argon2id$%'::text))
--   constraint password_organisation_id_user_id_fkey FOREIGN KEY (organisation_id, user_id) REFERENCES app."user"(organisation_id, id)
--   constraint password_pkey PRIMARY KEY (organisation_id, user_id)
--   constraint password_sign_in_name_key UNIQUE (sign_in_name)
--   policy password_insert restrictive for insert to holdfast_tenant using () with check (app.has_scope('own-password'::text))
--   policy password_update restrictive for update to holdfast_tenant using (app.has_scope('own-password'::text)) with check ()
--   policy service permissive for all to holdfast_service using (app.is_service()) with check (app.is_service())
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   grant insert to holdfast_tenant
--   grant select to holdfast_service
--   grant select (changed_at, organisation_id, user_id) to holdfast_tenant
--   grant update (changed_at, hash, sign_in_name) to holdfast_tenant

create table app.project (
  organisation_id text not null,
  id text not null,
  name text not null,
  description text not null default ''::text,
  created_at timestamp with time zone not null default now(),
  retired_at timestamp with time zone
);
-- row-level security: forced
--   constraint project_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES app.organisation(id)
--   constraint project_pkey PRIMARY KEY (organisation_id, id)
--   CREATE UNIQUE INDEX project_name ON app.project USING btree (organisation_id, name) WHERE (retired_at IS NULL)
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   grant insert, select to holdfast_tenant
--   grant update (retired_at) to holdfast_tenant

create table app.reservation (
  organisation_id text not null,
  node_id text not null,
  job_id text not null,
  created_at timestamp with time zone not null default now()
);
-- row-level security: forced
--   constraint reservation_organisation_id_job_id_fkey FOREIGN KEY (organisation_id, job_id) REFERENCES app.job(organisation_id, id)
--   constraint reservation_organisation_id_job_id_key UNIQUE (organisation_id, job_id)
--   constraint reservation_organisation_id_node_id_fkey FOREIGN KEY (organisation_id, node_id) REFERENCES app.node(organisation_id, id)
--   constraint reservation_pkey PRIMARY KEY (organisation_id, node_id)
--   policy service permissive for all to holdfast_service using (app.is_service()) with check (app.is_service())
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   grant delete, insert, select to holdfast_tenant
--   grant delete, select to holdfast_service

create table app.sweep (
  only_row boolean not null default true,
  at timestamp with time zone not null
);
-- row-level security: none
--   constraint sweep_only_row_check CHECK (only_row)
--   constraint sweep_pkey PRIMARY KEY (only_row)
--   grant insert, select, update to holdfast_service

create table app.user (
  organisation_id text not null,
  id text not null,
  name text not null,
  role text not null,
  created_at timestamp with time zone not null default now(),
  disabled_at timestamp with time zone
);
-- row-level security: forced
--   constraint user_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES app.organisation(id)
--   constraint user_organisation_id_name_key UNIQUE (organisation_id, name)
--   constraint user_pkey PRIMARY KEY (organisation_id, id)
--   constraint user_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'member'::text])))
--   policy service permissive for all to holdfast_service using (app.is_service()) with check (app.is_service())
--   policy tenant permissive for all to holdfast_tenant using ((organisation_id = app.current_organisation())) with check ((organisation_id = app.current_organisation()))
--   policy user_needs_admin_insert restrictive for insert to holdfast_tenant using () with check (app.has_scope('fleet:admin'::text))
--   policy user_needs_admin_update restrictive for update to holdfast_tenant using (app.has_scope('fleet:admin'::text)) with check ()
--   grant insert, select to holdfast_tenant
--   grant select to holdfast_service
--   grant update (disabled_at, role) to holdfast_tenant

CREATE OR REPLACE FUNCTION app.current_organisation()
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$ select nullif(current_setting('app.organisation', true), '') $function$;

CREATE OR REPLACE FUNCTION app.has_scope(scope text)
 RETURNS boolean
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$ select coalesce(scope = any(string_to_array(current_setting('app.scopes', true), ' ')), false) $function$;

CREATE OR REPLACE FUNCTION app.is_service()
 RETURNS boolean
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$ select current_user = 'holdfast_service' $function$;
