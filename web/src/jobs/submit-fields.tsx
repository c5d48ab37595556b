// SPDX-License-Identifier: Apache-2.0
// Where a job may run, and how. An empty field asks for nothing: the controller's default counts.

import { useApi } from "../app/api.ts";
import { archChoices } from "../parts/arch.ts";
import { AreaField, Field, SelectField, TextField } from "../parts/field.tsx";
import type { CommandFieldsProps } from "./command-fields.tsx";

export function PlacementFields({ draft, onChange, faultsOf }: CommandFieldsProps) {
  const nodes = useApi("nodeList", {});
  const models = useApi("modelList", {});
  const projects = useApi("projectList", {});
  const named = (items: readonly { readonly name: string; readonly retiredAt: string | null }[] = []) =>
    items.filter((item) => item.retiredAt === null).map(({ name }) => [name, name] as const);
  const inService = (nodes.data?.items ?? []).filter((node) => node.status !== "retired");
  return (
    <fieldset>
      <legend>Where</legend>
      <TextField
        label="Memory"
        placeholder="8GiB"
        hint="the least that the node must have"
        value={draft.memory}
        onChange={(memory) => onChange({ memory })}
        faults={faultsOf("memory")}
      />
      <SelectField
        label="Node"
        value={draft.nodeId}
        onChange={(nodeId) => onChange({ nodeId })}
        choices={[
          ["", "any that fits"],
          ...inService.map((node) => [node.id, node.online ? node.name : `${node.name} (offline)`] as const),
        ]}
        faults={faultsOf("nodeId")}
      />
      <SelectField
        label="Architecture"
        value={draft.arch}
        onChange={(arch) => onChange({ arch })}
        choices={archChoices}
        faults={faultsOf("arch")}
      />
      <SelectField
        label="Model"
        value={draft.model}
        onChange={(model) => onChange({ model })}
        choices={[["", "none"], ...named(models.data?.items)]}
        hint="its needs are added to these"
        faults={faultsOf("model")}
      />
      <SelectField
        label="Project"
        value={draft.project}
        onChange={(project) => onChange({ project })}
        choices={[["", "none"], ...named(projects.data?.items)]}
        faults={faultsOf("project")}
      />
      <TextField
        label="Working directory"
        placeholder="one of its own"
        value={draft.workingDirectory}
        onChange={(workingDirectory) => onChange({ workingDirectory })}
        faults={faultsOf("workingDirectory")}
      />
    </fieldset>
  );
}

export function RunFields({ draft, onChange, faultsOf }: CommandFieldsProps) {
  return (
    <fieldset>
      <legend>How</legend>
      <AreaField
        label="Environment"
        placeholder="NAME=VALUE, one a line"
        hint="no place for secrets: people who may read jobs see it"
        value={draft.environment}
        onChange={(environment) => onChange({ environment })}
        faults={faultsOf("environment")}
      />
      <AreaField
        label="Input"
        placeholder="JSON; the job finds it in the file HOLDFAST_INPUT"
        value={draft.input}
        onChange={(input) => onChange({ input })}
        faults={faultsOf("input")}
      />
      <AreaField
        label="Labels"
        rows={2}
        placeholder="name=value, one a line"
        value={draft.labels}
        onChange={(labels) => onChange({ labels })}
        faults={faultsOf("labels")}
      />
      <div className="row">
        <TextField
          label="Priority"
          placeholder="0"
          hint="higher runs first"
          value={draft.priority}
          onChange={(priority) => onChange({ priority })}
          faults={faultsOf("priority")}
        />
        <TextField
          label="Time limit"
          placeholder="none"
          hint="10m, 2h"
          value={draft.timeLimit}
          onChange={(timeLimit) => onChange({ timeLimit })}
          faults={faultsOf("timeLimit")}
        />
        <TextField
          label="Retries"
          placeholder="0"
          hint="after failures; a lost node is made good anyway"
          value={draft.retries}
          onChange={(retries) => onChange({ retries })}
          faults={faultsOf("retries")}
        />
      </div>
      <Field label="Not before" faults={faultsOf("notBefore")}>
        {(ids) => (
          <input
            {...ids}
            type="datetime-local"
            value={draft.notBefore}
            onChange={(event) => onChange({ notBefore: event.target.value })}
          />
        )}
      </Field>
    </fieldset>
  );
}
