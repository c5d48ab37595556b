// SPDX-License-Identifier: Apache-2.0
// The dialog that lets a machine join: under a name of its own, or in the place of a node that is there, after a question.

import { type FormEvent, useEffect, useRef, useState } from "react";
import type { Node } from "../../../src/protocol/node-schema.ts";
import { codeOf } from "../../../src/std/errors.ts";
import { useAction, useApi } from "../app/api.ts";
import { ActionButton, SubmitButton } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { FailureOf } from "../parts/failure.tsx";
import { faultsAt, TextField } from "../parts/field.tsx";
import { MadeCode } from "./pairing-code.tsx";

type Target = Pick<Node, "name" | "online" | "running">;

export type AddMachineProps = {
  readonly onClose: () => void;
  /** The node whose machine is to be replaced; without it a name is asked for. */
  readonly takeOver?: Target;
};

export function AddMachine({ onClose, takeOver }: AddMachineProps) {
  const pair = useAction("pairingCreate");
  const [target, setTarget] = useState<Target | undefined>(takeOver);
  const make = (name: string, isTakeOver: boolean): void => {
    if (!pair.isPending) pair.mutate({ body: isTakeOver ? { name, takeOver: true } : { name } });
  };
  const back = (): void => {
    pair.reset();
    setTarget(undefined);
  };
  if (pair.data !== undefined) {
    const made = pair.data;
    const isTakeOver = pair.variables?.body.takeOver === true;
    return (
      <Dialog title={isTakeOver ? `Take ${made.name} over` : `Add ${made.name}`} onClose={onClose} isWide>
        <HeadingFocus step={made.id} />
        <MadeCode made={made} onNewCode={(isInPlace) => make(made.name, isInPlace)} />
        <div className="buttons">
          <CloseButton onClose={onClose} />
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title={target === undefined ? "Add a machine" : `Take ${target.name} over?`} onClose={onClose} isWide>
      <HeadingFocus step={target === undefined ? "name" : "question"} />
      {target === undefined ? (
        <NameForm pair={pair} onMake={(name) => make(name, false)} onTakeOver={setTarget} onClose={onClose} />
      ) : (
        <TakeOverQuestion
          target={target}
          pair={pair}
          onMake={() => make(target.name, true)}
          onBack={takeOver === undefined ? back : undefined}
          onClose={onClose}
        />
      )}
    </Dialog>
  );
}

function CloseButton({ onClose }: { readonly onClose: () => void }) {
  return (
    <button type="button" onClick={onClose}>
      Close
    </button>
  );
}

/** What had the focus is gone with the step before; the heading says which step this is. */
function HeadingFocus({ step }: { readonly step: string }) {
  const place = useRef<HTMLSpanElement>(null);
  const [first] = useState(step);
  useEffect(() => {
    const heading = place.current?.closest("dialog")?.querySelector("h2");
    if (step === first || !heading) return;
    heading.tabIndex = -1;
    heading.focus();
  }, [step, first]);
  return <span ref={place} hidden />;
}

type Making = {
  readonly pair: { readonly isPending: boolean; readonly error: Error | null };
  readonly onClose: () => void;
};

type NameFormProps = Making & {
  readonly onMake: (name: string) => void;
  readonly onTakeOver: (node: Target) => void;
};

function NameForm({ pair, onMake, onTakeOver, onClose }: NameFormProps) {
  const [name, setName] = useState("");
  const [asked, setAsked] = useState("");
  const send = (event: FormEvent): void => {
    event.preventDefault();
    setAsked(name);
    onMake(name);
  };
  return (
    <form onSubmit={send} aria-label="Add a machine">
      <TextField
        label="Name of the node"
        value={name}
        onChange={setName}
        isRequired
        hint="letters, digits, dots, dashes and underscores"
        faults={faultsAt(pair.error, "/name")}
      />
      <FailureOf error={pair.error} />
      <div className="buttons">
        <SubmitButton isPending={pair.isPending}>Make a code</SubmitButton>
        {codeOf(pair.error) === "node_name_taken" && <TakeOverOffer name={asked} onTakeOver={onTakeOver} />}
        <CloseButton onClose={onClose} />
      </div>
    </form>
  );
}

type TakeOverOfferProps = { readonly name: string; readonly onTakeOver: (node: Target) => void };

function TakeOverOffer({ name, onTakeOver }: TakeOverOfferProps) {
  const nodes = useApi("nodeList", {});
  const node = nodes.data?.items.find((each) => each.name === name && each.status !== "retired");
  if (node === undefined) return null;
  return <ActionButton onClick={() => onTakeOver(node)}>{`Take ${name} over…`}</ActionButton>;
}

type TakeOverQuestionProps = Making & {
  readonly target: Target;
  readonly onMake: () => void;
  readonly onBack: (() => void) | undefined;
};

function TakeOverQuestion({ target, pair, onMake, onBack, onClose }: TakeOverQuestionProps) {
  const { name, online, running } = target;
  return (
    <>
      <p>
        For a machine that was set up anew, or another one in its place. The machine that uses the code becomes{" "}
        <strong>{name}</strong>: it keeps the name and the history. At that moment the credential of the machine that is{" "}
        {name} now ends for good
        {running === 0 ? "" : `, and what it holds (${heldText(running)}) goes back to the queue`}. Until then nothing
        changes.
      </p>
      {online && (
        <p className="note warn">
          ▲ {name} is online now. Stop its jobs first, or drain it: what still runs there when the new machine takes
          over may run a second time.
        </p>
      )}
      <FailureOf error={pair.error} />
      <div className="buttons">
        <ActionButton kind="danger" isPending={pair.isPending} onClick={onMake}>
          {`Make a code that takes ${name} over`}
        </ActionButton>
        {onBack !== undefined && (
          <button type="button" onClick={onBack}>
            Choose another name
          </button>
        )}
        <CloseButton onClose={onClose} />
      </div>
    </>
  );
}

function heldText(running: number): string {
  return running === 1 ? "1 job" : `${running} jobs`;
}
