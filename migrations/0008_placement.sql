-- SPDX-License-Identifier: Apache-2.0
-- Placement by memory pools: whose turn a job has, what a lease takes of which pool, who keeps room for a job that was passed
-- over, and when a node last asked for work.

-- A lane is of one project, so that a claim can take turns between projects; its key is of both. Jobs that wait now stay in the
-- lane they are in.
alter table app.lane add column project_id text collate "C";
alter table app.lane add constraint lane_project foreign key (organisation_id, project_id) references app.project;

-- When it would have come, had it priority 0: a step of priority is a minute, so a job that waits rises one step a minute.
alter table app.job add column turn timestamptz not null default now();
-- When it last began to wait for a node.
alter table app.job add column queued_at timestamptz not null default now();
-- Claims in which a later job took the memory that it was waiting for.
alter table app.job add column skipped smallint not null default 0;
update app.job set turn = coalesce(run_at, created_at) - priority * interval '60 seconds' where finished_at is null;
drop index app.job_claim;
create index job_claim on app.job (lane_id, turn, id) where state = 'queued';

-- What the lease takes: path, and bytes of each pool; null: nothing that is counted.
alter table app.attempt add column placement jsonb;

-- The project whose turn was last on this node; '': jobs without one.
alter table app.node add column last_project text;
alter table app.node_heartbeat add column devices_available jsonb;
-- Not indexed, as all of this table.
alter table app.node_heartbeat add column polled_at timestamptz;

-- A node keeps room for one job, and a job has it on one node. Void when the job no longer waits or the node is away.
create table app.reservation (
  organisation_id text collate "C" not null,
  node_id text collate "C" not null,
  job_id text collate "C" not null,
  created_at timestamptz not null default now(),
  primary key (organisation_id, node_id),
  unique (organisation_id, job_id),
  foreign key (organisation_id, node_id) references app.node,
  foreign key (organisation_id, job_id) references app.job
);
alter table app.reservation enable row level security;
alter table app.reservation force row level security;
create policy tenant on app.reservation to holdfast_tenant
  using (organisation_id = app.current_organisation()) with check (organisation_id = app.current_organisation());
create policy service on app.reservation to holdfast_service using (app.is_service()) with check (app.is_service());
grant select, insert, delete on app.reservation to holdfast_tenant;
grant select, delete on app.reservation to holdfast_service;

grant update (last_project) on app.node to holdfast_tenant;
grant update (queued_at) on app.job to holdfast_service;
