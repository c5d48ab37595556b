// SPDX-License-Identifier: Apache-2.0
// Registered projects, and how many of their jobs have not ended.

import { Link } from "@tanstack/react-router";
import { type FormEvent, useState, type ReactNode } from "react";
import type { Project } from "../../../src/protocol/registry-schema.ts";
import { useAction, useApi } from "../app/api.ts";
import { useWhyNot } from "../app/session.tsx";
import { ActionButton, SubmitButton } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { FailureOf, Loaded } from "../parts/failure.tsx";
import { faultsAt, TextField } from "../parts/field.tsx";
import { type Column, Page, Table } from "../parts/page.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Ago } from "../parts/time.tsx";
import { RetireButton } from "./retire-button.tsx";

const columns: readonly Column<Project>[] = [
  {
    head: "Project",
    cell: ({ name }) => (
      <Link to="/jobs" search={{ project: name }}>
        <Foreign text={name} />
      </Link>
    ),
  },
  { head: "Open jobs", isNumber: true, cell: ({ openJobs }) => openJobs },
  { head: "Description", isWide: true, cell: ({ description }) => <Foreign text={description} /> },
  { head: "Added", cell: ({ createdAt }) => <Ago at={createdAt} /> },
  {
    head: "",
    cell: (project) => (
      <RetireButton route="projectRetire" item={project} input={{ params: { projectId: project.id } }} what="project" />
    ),
  },
];

export function ProjectsPage(): ReactNode {
  const projects = useApi("projectList", {});
  const [isAdding, setAdding] = useState(false);
  const add = (
    <ActionButton kind="primary" whyNot={useWhyNot("projectAdd")} onClick={() => setAdding(true)}>
      Add a project
    </ActionButton>
  );
  return (
    <Page title="Projects" actions={add}>
      <Loaded query={projects}>
        {({ items }) => (
          <Table
            label="Projects"
            columns={columns}
            rows={items}
            keyOf={({ id }) => id}
            isFaded={({ retiredAt }) => retiredAt !== null}
            empty={<p>No project is registered. A job may name one, and lists of jobs can be filtered by it.</p>}
          />
        )}
      </Loaded>
      {isAdding && (
        <Dialog title="Add a project" onClose={() => setAdding(false)}>
          <ProjectForm onClose={() => setAdding(false)} />
        </Dialog>
      )}
    </Page>
  );
}

function ProjectForm({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const add = useAction("projectAdd", onClose);
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (!add.isPending) add.mutate({ body: { name, ...(description === "" ? {} : { description }) } });
  };
  return (
    <form onSubmit={send} aria-label="Add a project">
      <TextField label="Name" value={name} onChange={setName} isRequired faults={faultsAt(add.error, "/name")} />
      <TextField
        label="Description"
        value={description}
        onChange={setDescription}
        faults={faultsAt(add.error, "/description")}
      />
      <FailureOf error={add.error} />
      <div className="buttons">
        <SubmitButton isPending={add.isPending}>Add</SubmitButton>
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </form>
  );
}
