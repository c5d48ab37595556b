-- SPDX-License-Identifier: Apache-2.0
-- What a node tells of its scenes with each heartbeat, and the scene that a person asked for: the node decides.

alter table app.node_heartbeat add column scenes jsonb;
alter table app.node add column scene_wish text;
alter table app.node add column scene_wish_number bigint not null default 0 check (scene_wish_number >= 0);
alter table app.node add column scene_wish_at timestamptz;
grant update (scene_wish, scene_wish_number, scene_wish_at) on app.node to holdfast_tenant;
