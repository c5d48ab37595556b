-- SPDX-License-Identifier: Apache-2.0
-- The leased queue. job is narrow and hot; what is wide lies in job_body, which claims and sweeps never touch. A lane is
-- an interned requirement profile and the leading key of the claim index: whether a job can run is decided per lane.

create table app.lane (
  organisation_id text collate "C" not null references app.organisation,
  id text collate "C" not null,
  -- SHA-256 of the canonical JSON of requirement.
  key bytea not null check (length(key) = 32),
  requirement jsonb not null,
  -- Why no node can run its jobs now; null when one can.
  blocked text,
  created_at timestamptz not null default now(),
  primary key (organisation_id, id),
  unique (organisation_id, key)
);

create table app.job (
  organisation_id text collate "C" not null references app.organisation,
  id text collate "C" not null,
  lane_id text collate "C" not null,
  state text not null check (state in ('scheduled', 'queued', 'leased', 'running', 'succeeded', 'failed', 'cancelled', 'dead')),
  priority smallint not null default 0,
  -- Rises with every claim, release, return and sweep; never falls. Fences every write of a node.
  epoch bigint not null default 0 check (epoch >= 0),
  -- The number of the job's last event; the update that changes the state takes the next one.
  seq integer not null default 1,
  attempt smallint not null default 0,
  max_attempts smallint not null,
  retry_on_failure boolean not null,
  -- Claims in a row whose node never said "started".
  unstarted smallint not null default 0,
  run_at timestamptz,
  lease_until timestamptz,
  node_id text collate "C",
  session_id text collate "C",
  claim_number bigint,
  cancel_requested boolean not null default false,
  reason text,
  exit_code smallint,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  primary key (organisation_id, id),
  foreign key (organisation_id, lane_id) references app.lane,
  foreign key (organisation_id, node_id) references app.node,
  constraint job_lease_in_lease_states check ((state in ('leased', 'running')) = (lease_until is not null)),
  constraint job_session_in_lease_states check ((state in ('leased', 'running')) = (session_id is not null)),
  constraint job_node_of_lease check (session_id is null or node_id is not null),
  constraint job_finished_when_final check ((state in ('succeeded', 'failed', 'cancelled', 'dead')) = (finished_at is not null)),
  constraint job_scheduled_has_time check (state <> 'scheduled' or run_at is not null)
) with (fillfactor = 80);
create index job_claim on app.job (lane_id, priority desc, id) where state = 'queued';
create index job_due on app.job (run_at) where state = 'scheduled';
create index job_lease on app.job (lease_until) where lease_until is not null;
create index job_held on app.job (organisation_id, node_id) where lease_until is not null;

create table app.job_body (
  organisation_id text collate "C" not null,
  job_id text collate "C" not null,
  command jsonb not null,
  environment jsonb not null,
  working_directory text,
  input jsonb,
  labels jsonb not null,
  time_limit_ms bigint,
  result jsonb,
  message text,
  primary key (organisation_id, job_id),
  foreign key (organisation_id, job_id) references app.job
);

-- One lease of one job by one node.
create table app.attempt (
  organisation_id text collate "C" not null,
  job_id text collate "C" not null,
  epoch bigint not null,
  node_id text collate "C" not null,
  claimed_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  outcome jsonb,
  stdout_bytes bigint not null default 0,
  stderr_bytes bigint not null default 0,
  log_number bigint not null default 0,
  log_kept_bytes bigint not null default 0,
  primary key (organisation_id, job_id, epoch),
  foreign key (organisation_id, job_id) references app.job,
  foreign key (organisation_id, node_id) references app.node
) with (fillfactor = 80);

-- Append-only by grant; seq is gap-free per job.
create table app.job_event (
  organisation_id text collate "C" not null,
  job_id text collate "C" not null,
  seq integer not null check (seq >= 1),
  kind text not null,
  at timestamptz not null default clock_timestamp(),
  actor text not null,
  epoch bigint not null,
  data jsonb not null default '{}',
  xid xid8 not null default pg_current_xact_id(),
  primary key (organisation_id, job_id, seq),
  foreign key (organisation_id, job_id) references app.job
);

create table app.job_log (
  organisation_id text collate "C" not null,
  job_id text collate "C" not null,
  epoch bigint not null,
  -- In the order of arrival, gap-free per attempt.
  number bigint not null,
  stream text not null check (stream in ('stdout', 'stderr')),
  start_offset bigint not null,
  at timestamptz not null default now(),
  data bytea not null check (length(data) between 1 and 65536),
  primary key (organisation_id, job_id, epoch, number),
  foreign key (organisation_id, job_id, epoch) references app.attempt
);

create table app.idempotency (
  organisation_id text collate "C" not null references app.organisation,
  route text not null,
  key text not null,
  -- SHA-256 of the canonical body.
  fingerprint bytea not null check (length(fingerprint) = 32),
  job_id text collate "C" not null,
  created_at timestamptz not null default now(),
  primary key (organisation_id, route, key),
  -- The key is taken before its job is written; both are there at the end of the transaction.
  foreign key (organisation_id, job_id) references app.job deferrable initially deferred
);

-- When a sweep last ended: a gap means that nobody could renew, and earns the leases one more lease of grace.
create table app.sweep (
  only_row boolean primary key default true check (only_row),
  at timestamptz not null
);

do $$
declare
  tenant_table text;
begin
  foreach tenant_table in array array['lane', 'job', 'job_body', 'attempt', 'job_event', 'job_log', 'idempotency'] loop
    execute format('alter table app.%I enable row level security', tenant_table);
    execute format('alter table app.%I force row level security', tenant_table);
    execute format('create policy tenant on app.%I to holdfast_tenant
      using (organisation_id = app.current_organisation()) with check (organisation_id = app.current_organisation())', tenant_table);
  end loop;
  foreach tenant_table in array array['lane', 'job', 'attempt', 'job_event'] loop
    execute format('create policy service on app.%I to holdfast_service using (app.is_service()) with check (app.is_service())', tenant_table);
  end loop;
end $$;

grant select, insert, update on app.lane, app.job, app.job_body, app.attempt to holdfast_tenant;
grant select, insert on app.job_event, app.job_log, app.idempotency to holdfast_tenant;

-- The loops see columns of the hot rows, never a body, a log or an environment.
grant select on app.lane, app.job to holdfast_service;
grant update (blocked) on app.lane to holdfast_service;
grant update (state, epoch, seq, attempt, unstarted, run_at, lease_until, node_id, session_id, claim_number, reason, exit_code, finished_at)
  on app.job to holdfast_service;
grant select (organisation_id, job_id, epoch, ended_at) on app.attempt to holdfast_service;
grant update (ended_at, outcome) on app.attempt to holdfast_service;
grant insert, select (organisation_id) on app.job_event to holdfast_service;
grant select, insert, update on app.sweep to holdfast_service;
