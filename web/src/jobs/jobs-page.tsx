// SPDX-License-Identifier: Apache-2.0
// All jobs, newest first; the filters and the search stand in the address.

import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useState, type ReactNode } from "react";
import { jobStates } from "../../../src/protocol/job.ts";
import { useSearchOf } from "../app/address.ts";
import { api, useApi, type Reply } from "../app/api.ts";
import { ActionButton } from "../parts/button.tsx";
import { Loaded } from "../parts/failure.tsx";
import { SelectField, TextField } from "../parts/field.tsx";
import { Page, Table } from "../parts/page.tsx";
import { CommandLine } from "../parts/copy.tsx";
import { jobColumns } from "./job-columns.tsx";
import { filtersOf, type JobFilters, queryOf, stateOf } from "./job-filters.ts";

const TYPING_MS = 300;

export function JobsPage(): ReactNode {
  const filters = useSearchOf(filtersOf);
  const jobs = useInfiniteQuery({
    queryKey: ["jobList", "pages", filters],
    queryFn: ({ pageParam, signal }): Promise<Reply<"jobList">> =>
      api.call(
        "jobList",
        { query: { ...queryOf(filters), ...(pageParam === null ? {} : { cursor: pageParam }) } },
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.nextCursor,
    placeholderData: (before) => before,
  });
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  return (
    <Page
      title="Jobs"
      actions={
        <Link to="/jobs/new" className="button primary">
          Submit a job
        </Link>
      }
    >
      <Filters filters={filters} />
      <Loaded query={jobs}>
        {({ pages }) => (
          <Table
            label="Jobs"
            columns={jobColumns}
            rows={pages.flatMap((page) => page.items)}
            keyOf={(job) => job.id}
            empty={
              isFiltered ? (
                <p>
                  No job matches. <Link to="/jobs">Show all jobs</Link>
                </p>
              ) : (
                <NoJob />
              )
            }
          />
        )}
      </Loaded>
      {jobs.hasNextPage && (
        <ActionButton onClick={() => void jobs.fetchNextPage()} isPending={jobs.isFetchingNextPage}>
          Load more
        </ActionButton>
      )}
    </Page>
  );
}

function NoJob() {
  return (
    <>
      <p>No job yet. The first one:</p>
      <CommandLine text="npx holdfast job run -- echo hello" />
    </>
  );
}

function Filters({ filters }: { readonly filters: JobFilters }) {
  const navigate = useNavigate();
  const nodes = useApi("nodeList", {});
  const projects = useApi("projectList", {});
  const change = (changed: JobFilters): void => {
    void navigate({ to: "/jobs", search: { ...filters, ...changed }, replace: true });
  };
  const chosen = (value: string): string | undefined => (value === "" ? undefined : value);
  return (
    <form className="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <SearchField value={filters.search ?? ""} onChange={(search) => change({ search: chosen(search) })} />
      <SelectField
        label="State"
        value={filters.state ?? ""}
        onChange={(state) => change({ state: stateOf(state) })}
        choices={[["", "any"], ...jobStates.map((state) => [state, state] as const)]}
      />
      <SelectField
        label="Node"
        value={filters.nodeId ?? ""}
        onChange={(nodeId) => change({ nodeId: chosen(nodeId) })}
        choices={[["", "any"], ...(nodes.data?.items ?? []).map((node) => [node.id, node.name] as const)]}
      />
      <SelectField
        label="Project"
        value={filters.project ?? ""}
        onChange={(project) => change({ project: chosen(project) })}
        choices={[["", "any"], ...projectChoices(projects.data, filters.project)]}
      />
    </form>
  );
}

/** A retired project's name may belong to a new one: each name once, and the one in the address in any case. */
function projectChoices(projects: Reply<"projectList"> | undefined, chosen: string | undefined) {
  const names = new Set([
    ...(projects?.items ?? []).map(({ name }) => name),
    ...(chosen === undefined ? [] : [chosen]),
  ]);
  return [...names].map((name) => [name, name] as const);
}

/** Searches when the typing pauses. */
function SearchField({ value, onChange }: { readonly value: string; readonly onChange: (value: string) => void }) {
  const [typed, setTyped] = useState(value);
  const [known, setKnown] = useState(value);
  if (known !== value) {
    setKnown(value);
    setTyped(value);
  }
  useEffect(() => {
    if (typed.trim() === value) return;
    const timer = setTimeout(() => onChange(typed.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  });
  return (
    <TextField
      label="Search"
      type="search"
      placeholder="id, command or label  ( / )"
      value={typed}
      onChange={setTyped}
    />
  );
}
