// SPDX-License-Identifier: Apache-2.0
// Registered models: what each needs, and the marker that only its server answers.

import { type FormEvent, useState, type ReactNode } from "react";
import { needsText } from "../../../src/protocol/placement.ts";
import type { Model } from "../../../src/protocol/registry-schema.ts";
import { sizeOf } from "../../../src/std/units.ts";
import { useAction, useApi } from "../app/api.ts";
import { useWhyNot } from "../app/session.tsx";
import { archChoices, archNeed } from "../parts/arch.ts";
import { ActionButton, SubmitButton } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { FailureOf, Loaded } from "../parts/failure.tsx";
import { faultsAt, SelectField, TextField } from "../parts/field.tsx";
import { type Column, Page, Table } from "../parts/page.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Ago } from "../parts/time.tsx";
import { RetireButton } from "./retire-button.tsx";

const columns: readonly Column<Model>[] = [
  { head: "Model", cell: (model) => <Foreign text={model.name} /> },
  { head: "Needs", cell: ({ needs }) => needsText(needs) || <span className="quiet">nothing</span> },
  {
    head: "Marker",
    cell: ({ marker }) => (marker === null ? <span className="quiet">none</span> : <Foreign text={marker} isCode />),
  },
  { head: "Description", isWide: true, cell: ({ description }) => <Foreign text={description} /> },
  { head: "Added", cell: ({ createdAt }) => <Ago at={createdAt} /> },
  {
    head: "",
    cell: (model) => (
      <RetireButton route="modelRetire" item={model} input={{ params: { modelId: model.id } }} what="model" />
    ),
  },
];

export function ModelsPage(): ReactNode {
  const models = useApi("modelList", {});
  const [isAdding, setAdding] = useState(false);
  const add = (
    <ActionButton kind="primary" whyNot={useWhyNot("modelAdd")} onClick={() => setAdding(true)}>
      Add a model
    </ActionButton>
  );
  return (
    <Page title="Models" actions={add}>
      <Loaded query={models}>
        {({ items }) => (
          <Table
            label="Models"
            columns={columns}
            rows={items}
            keyOf={({ id }) => id}
            isFaded={({ retiredAt }) => retiredAt !== null}
            empty={<p>No model is registered. A job that names one gets its needs added to its own.</p>}
          />
        )}
      </Loaded>
      {isAdding && (
        <Dialog title="Add a model" onClose={() => setAdding(false)}>
          <ModelForm onClose={() => setAdding(false)} />
        </Dialog>
      )}
    </Page>
  );
}

function ModelForm({ onClose }: { readonly onClose: () => void }) {
  const [draft, setDraft] = useState({ name: "", memory: "", arch: "", marker: "", description: "" });
  const change = (key: keyof typeof draft) => (value: string) => setDraft((before) => ({ ...before, [key]: value }));
  const add = useAction("modelAdd", onClose);
  const memoryBytes = draft.memory.trim() === "" ? undefined : sizeOf(draft.memory.trim());
  const isBadSize = draft.memory.trim() !== "" && memoryBytes === undefined;
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (add.isPending || isBadSize) return;
    const { name, marker, description } = draft;
    const needs = {
      ...(memoryBytes === undefined ? {} : { memoryBytes }),
      ...archNeed(draft.arch),
    };
    add.mutate({
      body: { name, needs, ...(marker === "" ? {} : { marker }), ...(description === "" ? {} : { description }) },
    });
  };
  return (
    <form onSubmit={send} aria-label="Add a model">
      <TextField
        label="Name"
        value={draft.name}
        onChange={change("name")}
        isRequired
        faults={faultsAt(add.error, "/name")}
      />
      <TextField
        label="Memory"
        placeholder="24GiB"
        value={draft.memory}
        onChange={change("memory")}
        faults={[
          ...(isBadSize ? ["is a size such as 8GiB or 500MB"] : []),
          ...faultsAt(add.error, "/needs/memoryBytes"),
        ]}
      />
      <SelectField label="Architecture" value={draft.arch} onChange={change("arch")} choices={archChoices} />
      <TextField
        label="Marker"
        value={draft.marker}
        onChange={change("marker")}
        hint="what only this model’s server answers"
        faults={faultsAt(add.error, "/marker")}
      />
      <TextField
        label="Description"
        value={draft.description}
        onChange={change("description")}
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
