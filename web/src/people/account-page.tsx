// SPDX-License-Identifier: Apache-2.0
// The signed-in user's own: who they are here, and their password.

import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState, type ReactNode } from "react";
import { PASSWORD_LENGTH_MIN } from "../../../src/protocol/user.ts";
import { useAction, WHO_KEY } from "../app/api.ts";
import { useWho, useWhyNot } from "../app/session.tsx";
import { SubmitButton } from "../parts/button.tsx";
import { FailureOf } from "../parts/failure.tsx";
import { faultsAt, TextField } from "../parts/field.tsx";
import { fact, Facts, Page, Section } from "../parts/page.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Ago } from "../parts/time.tsx";

export function AccountPage(): ReactNode {
  const who = useWho();
  return (
    <Page title="Account">
      <Facts
        rows={[
          fact("User", <Foreign text={who.userName} />),
          fact("Role", who.role),
          fact("Organisation", <Foreign text={who.organisationName} />),
          fact("May", who.scopes.join(", ")),
          fact("Signed in until", who.expiresAt === null ? null : <Ago at={who.expiresAt} />),
          fact("Password", who.hasPassword ? "set" : "none: a login link signs you in"),
        ]}
      />
      <Section title={who.hasPassword ? "Change the password" : "Set a password"}>
        <PasswordForm hasPassword={who.hasPassword} />
      </Section>
    </Page>
  );
}

function PasswordForm({ hasPassword }: { readonly hasPassword: boolean }) {
  const cache = useQueryClient();
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const [again, setAgain] = useState("");
  const whyNot = useWhyNot("passwordSet");
  const set = useAction("passwordSet", () => {
    for (const clear of [setCurrent, setNext, setAgain]) clear("");
    void cache.invalidateQueries({ queryKey: WHO_KEY });
  });
  const isSame = next === again;
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (set.isPending || !isSame || whyNot !== undefined) return;
    set.mutate({ body: { newPassword: next, ...(hasPassword ? { currentPassword: current } : {}) } });
  };
  return (
    <form onSubmit={send} aria-label="Password">
      {hasPassword && (
        <TextField
          label="Current password"
          type="password"
          autoComplete="current-password"
          value={current}
          onChange={setCurrent}
          isRequired
          faults={faultsAt(set.error, "/currentPassword")}
        />
      )}
      <TextField
        label="New password"
        type="password"
        autoComplete="new-password"
        value={next}
        onChange={setNext}
        isRequired
        hint={`at least ${PASSWORD_LENGTH_MIN} characters; length is what counts`}
        faults={faultsAt(set.error, "/newPassword")}
      />
      <TextField
        label="New password again"
        type="password"
        autoComplete="new-password"
        value={again}
        onChange={setAgain}
        isRequired
        faults={again === "" || isSame ? [] : ["is not the same"]}
      />
      <FailureOf error={set.error} />
      {set.isSuccess && <p role="status">The password is set. Other browsers of yours were signed out.</p>}
      <SubmitButton isPending={set.isPending} whyNot={whyNot}>
        {hasPassword ? "Change the password" : "Set the password"}
      </SubmitButton>
    </form>
  );
}
