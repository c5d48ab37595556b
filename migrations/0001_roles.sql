-- SPDX-License-Identifier: Apache-2.0
-- Roles and the helpers that every row-level policy is written against. Roles belong to the whole cluster: they may exist
-- already, and two databases of one cluster may be migrated at the same time.

do $$
declare
  wanted record;
begin
  for wanted in select * from (values ('holdfast_tenant', 'nologin'), ('holdfast_service', 'nologin'), ('holdfast_controller', 'login')) as w(name, kind) loop
    if not exists (select 1 from pg_roles where rolname = wanted.name) then
      begin
        execute format('create role %I %s', wanted.name, wanted.kind);
      exception when duplicate_object or unique_violation then
        null; -- another database of this cluster was faster
      end;
    end if;
  end loop;
end $$;

-- The controller logs in as a role that owns nothing and takes on one of the two for each transaction.
do $$
begin
  if not pg_has_role('holdfast_controller', 'holdfast_tenant', 'member') or not pg_has_role('holdfast_controller', 'holdfast_service', 'member') then
    if current_setting('server_version_num')::int >= 160000 then
      execute 'grant holdfast_tenant, holdfast_service to holdfast_controller with inherit false, set true';
    else
      execute 'grant holdfast_tenant, holdfast_service to holdfast_controller';
    end if;
  end if;
exception when unique_violation then
  null; -- the same race
end $$;

do $$
begin
  execute format('grant connect on database %I to holdfast_controller', current_database());
end $$;
grant usage on schema app to holdfast_tenant, holdfast_service, holdfast_controller;
-- Whoever logs in may read which migrations were applied, and nothing else.
grant select on app.migration to holdfast_controller;

-- The organisation of this transaction; null when none is set, and then nothing matches.
create function app.current_organisation() returns text language sql stable parallel safe
  as $$ select nullif(current_setting('app.organisation', true), '') $$;

create function app.has_scope(scope text) returns boolean language sql stable parallel safe
  as $$ select coalesce(scope = any(string_to_array(current_setting('app.scopes', true), ' ')), false) $$;

create function app.is_service() returns boolean language sql stable parallel safe
  as $$ select current_user = 'holdfast_service' $$;
