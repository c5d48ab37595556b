// SPDX-License-Identifier: Apache-2.0
// Made tests/golden/backup-1, once and by hand, from a PostgreSQL 15: the first three migrations and a few rows in each table.
// Usage: node tests/kit/golden-backup-main.ts postgres://OWNER@/DATABASE?host=SOCKETDIRECTORY DIRECTORY

import pg from "pg";
import { writeBackup } from "../../src/db/backup.ts";
import { migrate } from "../../src/db/migrate.ts";
import { migrations } from "./database.ts";

const ROWS = `
insert into app.organisation (id, name) values ('org_1', 'default'), ('org_2', 'ümlaut "quoted"');
insert into app."user" (organisation_id, id, name, role) values ('org_1', 'user_1', 'admin', 'admin');
insert into app.node (organisation_id, id, name, public_key, session_id, claim_number)
  values ('org_1', 'node_1', 'one', decode(repeat('0a', 32), 'hex'), 'nses_1', 3);
insert into app.node_heartbeat values ('org_1', 'node_1', '2026-01-02 03:04:05.678901+00', -12, 8589934592);
insert into app.node_facts values ('org_1', 'node_1', '{"cpuName": "tab\\t, back\\\\slash", "cpuCount": 2}', '2026-01-02 03:04:05+00');
insert into app.credential (organisation_id, id, kind, name, user_id, hash, scopes)
  values ('org_1', 'cred_1', 'token', 'command-line', 'user_1', decode(repeat('0b', 32), 'hex'), '{fleet:read,fleet:write}');
insert into app.credential (organisation_id, id, kind, name, node_id, hash, scopes)
  values ('org_1', 'cred_2', 'node', 'one', 'node_1', decode(repeat('0c', 32), 'hex'), '{node:heartbeat,node:claim,node:report}');
insert into app.pairing_code (organisation_id, id, name, hash, expires_at)
  values ('org_1', 'pair_1', 'two', decode(repeat('0d', 32), 'hex'), '2999-01-01 00:00:00+00');
insert into app.audit (organisation_id, id, actor, action, subject, data)
  values ('org_1', 'aud_1', 'user_1', 'node.pair', 'node_1', '{"name": "one"}');
insert into app.lane (organisation_id, id, key, requirement) values ('org_1', 'lane_1', decode(repeat('0e', 32), 'hex'), '{}');
insert into app.job (organisation_id, id, lane_id, state, epoch, seq, attempt, max_attempts, retry_on_failure, node_id, exit_code, started_at, finished_at)
  values ('org_1', 'job_1', 'lane_1', 'succeeded', 1, 4, 1, 3, false, 'node_1', 0, '2026-01-02 03:00:00+00', '2026-01-02 03:01:00+00');
insert into app.job (organisation_id, id, lane_id, state, epoch, seq, attempt, max_attempts, retry_on_failure, node_id, session_id, claim_number, lease_until, started_at)
  values ('org_1', 'job_2', 'lane_1', 'running', 7, 3, 1, 3, true, 'node_1', 'nses_1', 3, '2026-01-02 03:05:00+00', '2026-01-02 03:04:00+00');
insert into app.job_body (organisation_id, job_id, command, environment, labels, input, result, message, time_limit_ms)
  values ('org_1', 'job_1', '["true"]', '{}', '{}', '[1.50, null]', '{"deep": [true]}', E'two\\nlines, a \\\\. and a \\t', 60000),
         ('org_1', 'job_2', '["sleep", "600"]', '{"NAME": "ünï"}', '{"team": "a"}', null, null, null, null);
insert into app.attempt (organisation_id, job_id, epoch, node_id, started_at, ended_at, outcome, stdout_bytes, log_number, log_kept_bytes)
  values ('org_1', 'job_1', 1, 'node_1', '2026-01-02 03:00:00+00', '2026-01-02 03:01:00+00', '{"kind": "exited", "exitCode": 0}', 4, 1, 4),
         ('org_1', 'job_2', 7, 'node_1', '2026-01-02 03:04:00+00', null, null, 0, 0, 0);
insert into app.job_event (organisation_id, job_id, seq, kind, actor, epoch)
  values ('org_1', 'job_1', 1, 'created', 'user_1', 0), ('org_1', 'job_1', 2, 'claimed', 'node_1', 1),
         ('org_1', 'job_1', 3, 'started', 'node_1', 1), ('org_1', 'job_1', 4, 'succeeded', 'node_1', 1),
         ('org_1', 'job_2', 1, 'created', 'user_1', 0), ('org_1', 'job_2', 2, 'claimed', 'node_1', 7), ('org_1', 'job_2', 3, 'started', 'node_1', 7);
insert into app.job_log (organisation_id, job_id, epoch, number, stream, start_offset, data)
  values ('org_1', 'job_1', 1, 1, 'stdout', 0, decode('0009ff5c', 'hex'));
insert into app.idempotency (organisation_id, route, key, fingerprint, job_id)
  values ('org_1', 'jobSubmit', 'a key', decode(repeat('0f', 32), 'hex'), 'job_1');
insert into app.sweep (at) values ('2026-01-02 03:04:05+00')`;

const [url = "", directory = ""] = process.argv.slice(2);
const known = migrations.slice(0, 3);
await migrate({ connectionString: url }, known);
const client = new pg.Client({ connectionString: url });
await client.connect();
await client.query(ROWS);
await client.end();
await writeBackup(
  { connectionString: url },
  { directory, version: "0.1.0", migrations: known, progress: () => {}, signal: new AbortController().signal },
);
