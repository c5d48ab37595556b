// SPDX-License-Identifier: Apache-2.0
// Makes an API token; its secret is shown once.

import { type FormEvent, useState } from "react";
import { type PeopleScope, peopleScopes } from "../../../src/protocol/user.ts";
import { useAction } from "../app/api.ts";
import { useWho } from "../app/session.tsx";
import { SubmitButton } from "../parts/button.tsx";
import { FailureOf } from "../parts/failure.tsx";
import { faultsAt, TextField } from "../parts/field.tsx";
import { Copy } from "../parts/copy.tsx";

export function TokenForm({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState("");
  const [days, setDays] = useState("");
  const [scopes, setScopes] = useState<readonly PeopleScope[]>(["fleet:read"]);
  const make = useAction("tokenCreate");
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (make.isPending) return;
    make.mutate({ body: { name, scopes: [...scopes], ...(days === "" ? {} : { expiresInDays: Number(days) }) } });
  };
  if (make.data !== undefined) return <Made name={make.data.name} secret={make.data.secret} onClose={onClose} />;
  return (
    <form onSubmit={send} aria-label="Make a token">
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        isRequired
        faults={faultsAt(make.error, "/name")}
        hint="what uses it"
      />
      <Scopes chosen={scopes} onChange={setScopes} />
      <TextField
        label="Expires in days"
        type="number"
        value={days}
        onChange={setDays}
        placeholder="never"
        faults={faultsAt(make.error, "/expiresInDays")}
      />
      <FailureOf error={make.error} />
      <div className="buttons">
        <SubmitButton isPending={make.isPending}>Make the token</SubmitButton>
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </form>
  );
}

/** A token never reaches further than its user. */
function Scopes({
  chosen,
  onChange,
}: {
  readonly chosen: readonly PeopleScope[];
  readonly onChange: (scopes: readonly PeopleScope[]) => void;
}) {
  const who = useWho();
  return (
    <fieldset>
      <legend>May</legend>
      {peopleScopes.map((scope) => {
        const isBeyond = !who.scopes.includes(scope);
        return (
          <label key={scope} className="check">
            <input
              type="checkbox"
              checked={chosen.includes(scope)}
              disabled={isBeyond}
              onChange={(event) =>
                onChange(peopleScopes.filter((each) => (each === scope ? event.target.checked : chosen.includes(each))))
              }
            />{" "}
            {scope}
            {isBeyond && <span className="quiet"> (you do not have it)</span>}
          </label>
        );
      })}
    </fieldset>
  );
}

function Made({
  name,
  secret,
  onClose,
}: {
  readonly name: string;
  readonly secret: string;
  readonly onClose: () => void;
}) {
  return (
    <>
      <p>
        The token <strong>{name}</strong>. Its secret is shown only now:
      </p>
      <p className="secret">
        <code>{secret}</code> <Copy text={secret} what="the secret" />
      </p>
      <div className="buttons">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </>
  );
}
