-- SPDX-License-Identifier: Apache-2.0
-- Lineages of a node's locker that a later one took the place of, each with the last evidence that the node signed for it: a
-- node whose disks were turned back to before an operator's reset finds out. An evidence now names its envelope by digest;
-- one without is forgotten, and the node tells a new one with its next heartbeat.

alter table app.node add column boundary_superseded jsonb not null default '[]' check (jsonb_typeof(boundary_superseded) = 'array');
grant update (boundary_superseded) on app.node to holdfast_tenant;
update app.node set boundary_evidence = null where not boundary_evidence ? 'digest';
