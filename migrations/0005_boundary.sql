-- SPDX-License-Identifier: Apache-2.0
-- What a node says of its boundary: whether it can promise that it starts nothing twice, and, signed by itself, how far its
-- locker is. The evidence is told to it again at its next hello: a node whose disks went back in time finds out.

alter table app.node add column boundary_state text check (boundary_state in ('trusted', 'untrusted', 'future', 'unwritable'));
alter table app.node add column boundary_why text;
alter table app.node add column boundary_evidence jsonb;
grant update (boundary_state, boundary_why, boundary_evidence) on app.node to holdfast_tenant;
