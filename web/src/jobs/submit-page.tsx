// SPDX-License-Identifier: Apache-2.0
// Submitting a job. Rule: one form has one idempotency key, drawn when it opens, so that a double click submits once; what
// the controller finds wrong is shown at its field by its place.

import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState, type ReactNode } from "react";
import { useAction } from "../app/api.ts";
import { useWhyNot } from "../app/session.tsx";
import { SubmitButton } from "../parts/button.tsx";
import { FailureOf } from "../parts/failure.tsx";
import { faultsAt } from "../parts/field.tsx";
import { Page } from "../parts/page.tsx";
import { CommandFields } from "./command-fields.tsx";
import { PlacementFields, RunFields } from "./submit-fields.tsx";
import { type Draft, draftedSubmission, emptyDraft } from "./submission.ts";

/** Where the controller says that each field is. */
const places: Readonly<Record<keyof Draft, string>> = {
  way: "/command",
  command: "/command",
  environment: "/environment",
  workingDirectory: "/workingDirectory",
  memory: "/requires/memoryBytes",
  arch: "/requires/arch",
  nodeId: "/requires/nodeId",
  model: "/requires/model",
  project: "/project",
  priority: "/priority",
  notBefore: "/notBefore",
  timeLimit: "/timeLimitMs",
  retries: "/retry",
  labels: "/labels",
  input: "/input",
};

export type DraftProps = {
  readonly draft: Draft;
  readonly onChange: (changed: Partial<Draft>) => void;
  readonly faultsOf: (key: keyof Draft) => readonly string[];
};

function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function SubmitPage(): ReactNode {
  const navigate = useNavigate();
  const [draft, setDraft] = useState(emptyDraft);
  const [key, setKey] = useState(newKey);
  const [isTried, setTried] = useState(false);
  const submit = useAction("jobSubmit", (job) => void navigate({ to: "/jobs/$jobId", params: { jobId: job.id } }));
  const whyNot = useWhyNot("jobSubmit");
  const { faults, submission } = draftedSubmission(draft);
  const change = (changed: Partial<Draft>): void => {
    setDraft((before) => ({ ...before, ...changed }));
    // What was refused and is changed is another request, and the same key would be refused for it.
    if (submit.isError) setKey(newKey());
  };
  const send = (event: FormEvent): void => {
    event.preventDefault();
    setTried(true);
    if (whyNot === undefined && Object.keys(faults).length === 0 && !submit.isPending)
      submit.mutate({ body: submission, idempotencyKey: key });
  };
  const faultsOf = (field: keyof Draft): readonly string[] => {
    const own = isTried || field === "command" ? faults[field] : undefined;
    return [
      ...(own === undefined ? [] : [own]),
      ...(submit.error === null ? [] : faultsAt(submit.error, places[field])),
    ];
  };
  const props: DraftProps = { draft, onChange: change, faultsOf };
  return (
    <Page title="Submit a job">
      <form className="wide-form" onSubmit={send} aria-label="Submit a job" noValidate>
        <CommandFields {...props} />
        <div className="columns">
          <PlacementFields {...props} />
          <RunFields {...props} />
        </div>
        <FailureOf error={submit.error} />
        <SubmitButton whyNot={whyNot} isPending={submit.isPending}>
          Submit
        </SubmitButton>
      </form>
    </Page>
  );
}
