-- SPDX-License-Identifier: Apache-2.0
-- A pairing tells how far it is and who used it, and may put a new machine in the place of a node that is there.

alter table app.pairing_code
  -- The node whose machine it replaces.
  add column takes_over text collate "C",
  -- What the bootstrap script reported, oldest first: {phase, outcome, detail, at}.
  add column phases jsonb not null default '[]',
  -- The address that first used it.
  add column used_from text,
  add constraint pairing_code_takes_over foreign key (organisation_id, takes_over) references app.node (organisation_id, id),
  add constraint pairing_code_phases_check check (jsonb_typeof(phases) = 'array');

grant update (phases, used_from) on app.pairing_code to holdfast_tenant;
grant update (public_key) on app.node to holdfast_tenant;

-- When the node told that it was uninstalled; a hello takes it away.
alter table app.node add column left_at timestamptz;
grant update (left_at) on app.node to holdfast_tenant;
