// SPDX-License-Identifier: Apache-2.0
// Signing in: with the secret of a login link, at once; or with a name and a password. A refusal says what to do.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef, useState } from "react";
import type { Who } from "../../../src/protocol/access-schema.ts";
import { SubmitButton } from "../parts/button.tsx";
import { FailureOf } from "../parts/failure.tsx";
import { TextField } from "../parts/field.tsx";
import { CommandLine } from "../parts/copy.tsx";
import { api, WHO_KEY } from "./api.ts";

export type SignInProps = { readonly secret: string | undefined; readonly onDone: () => void };

type Way = { readonly secret: string } | { readonly name: string; readonly password: string };

function useSignIn(onDone: () => void) {
  const cache = useQueryClient();
  return useMutation<Who, Error, Way>({
    mutationFn: (way) =>
      "secret" in way ? api.call("signInLink", { body: way }) : api.call("signInPassword", { body: way }),
    onError: () => {},
    onSuccess: (who) => {
      // Nothing that somebody else saw in this tab is shown to the next one.
      cache.removeQueries({ predicate: (query) => query.queryKey[0] !== WHO_KEY[0] });
      cache.setQueryData(WHO_KEY, who);
      onDone();
    },
  });
}

export function SignIn({ secret, onDone }: SignInProps) {
  const signIn = useSignIn(onDone);
  const { mutate } = signIn;
  const sent = useRef<string>(undefined);
  useEffect(() => {
    document.title = "Sign in · Holdfast";
    if (secret === undefined || sent.current === secret) return;
    // A link works once; React may run an effect twice.
    sent.current = secret;
    mutate({ secret });
  }, [secret, mutate]);
  return (
    <main className="alone sign-in">
      <h1>
        <img src="/icon.svg" alt="" width="28" height="28" /> Holdfast
      </h1>
      {secret !== undefined && signIn.error === null ? (
        <p role="status">Signing in with the link…</p>
      ) : (
        <>
          <FailureOf error={signIn.error} />
          <PasswordForm isPending={signIn.isPending} onSend={mutate} />
          <WhereLinksComeFrom />
        </>
      )}
    </main>
  );
}

function PasswordForm({ isPending, onSend }: { readonly isPending: boolean; readonly onSend: (way: Way) => void }) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (!isPending) onSend({ name, password });
  };
  return (
    <form onSubmit={send} aria-label="Sign in with a password">
      <TextField label="Name" value={name} onChange={setName} autoComplete="username" isRequired />
      <TextField
        label="Password"
        type="password"
        value={password}
        onChange={setPassword}
        autoComplete="current-password"
        isRequired
      />
      <SubmitButton isPending={isPending}>Sign in</SubmitButton>
    </form>
  );
}

function WhereLinksComeFrom() {
  return (
    <section aria-label="Sign in with a link">
      <h2>Or with a link</h2>
      <p>A one-time link signs you in without a password. On the controller’s machine:</p>
      <CommandLine text="npx holdfast login-link" />
      <p className="quiet">An admin can also make one for you, on the page People.</p>
    </section>
  );
}
