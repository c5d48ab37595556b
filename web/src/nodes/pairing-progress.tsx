// SPDX-License-Identifier: Apache-2.0
// How far a pairing is: every step of the script from the start, so that nothing moves while they are reported, and in words
// how it stands. What that means and what to do is decided in protocol/pairing.ts.

import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { EnrolPhase, Pairing } from "../../../src/protocol/enrol-schema.ts";
import { type EnrolStep, type Outlook, outlookOf, stepsOf } from "../../../src/protocol/pairing.ts";
import { useApi } from "../app/api.ts";
import { Foreign } from "../parts/foreign.tsx";
import { State, type Tone } from "../parts/state.tsx";
import { useSecondsSince } from "../parts/time.tsx";

/** A heartbeat and a code that runs out wake nobody. */
const REFETCH_MS = 3_000;

/** The node that a pairing made or takes over; undefined before there is one. */
export function usePairedNode({ nodeId }: Pick<Pairing, "nodeId">) {
  const choice = { isEnabled: nodeId !== null, refetchMs: REFETCH_MS };
  return useApi("nodeShow", { params: { nodeId: nodeId ?? "" } }, choice).data;
}

export function usePairing(pairingId: string) {
  return useApi("pairingShow", { params: { pairingId } }, { refetchMs: REFETCH_MS });
}

type ProgressProps = {
  readonly pairing: Pairing;
  /** Makes another code; undefined where that is not offered. */
  readonly onNewCode?: ((isTakeOver: boolean) => void) | undefined;
};

export function PairingProgress({ pairing, onNewCode }: ProgressProps) {
  const outlook = outlookOf(pairing, usePairedNode(pairing));
  return (
    <>
      <ol className="steps" aria-label="Progress">
        {stepsOf(pairing.phases).map((step) => (
          <Step key={step.phase} step={step} pairing={pairing} isLast={outlook.kind === "online"} />
        ))}
      </ol>
      <div className="outlook" role="status">
        <OutlookText outlook={outlook} pairing={pairing} onNewCode={onNewCode} />
      </div>
    </>
  );
}

const marks: Readonly<Record<EnrolStep["state"], readonly [string, Tone, string]>> = {
  waiting: ["○", "wait", "not yet"],
  begun: ["…", "busy", "goes on"],
  done: ["✓", "good", "done"],
  failed: ["✗", "bad", "failed"],
};

const about: Readonly<Record<EnrolPhase, string>> = {
  look: "what this machine is",
  plan: "what will be done",
  fetch: "the agent and its runtime, checked by their hashes",
  install: "the program and its settings",
  pair: "a key and a credential of its own",
  start: "the agent",
  prove: "the controller sees it online",
  uninstall: "what was installed",
};

type StepProps = { readonly step: EnrolStep; readonly pairing: Pairing; readonly isLast: boolean };

function Step({ step, pairing, isLast }: StepProps) {
  // That it is online counts more than what the script said of it.
  const state = step.phase === "prove" && isLast ? "done" : step.state;
  const [mark, tone, word] = marks[state];
  const detail = detailOf(step, pairing);
  return (
    <li className={`state ${tone}`}>
      <span aria-hidden="true">{mark}</span>
      <strong>{step.phase}</strong>
      <span className="reader-only">{word}</span>
      <span className="cut detail" title={detail}>
        <Foreign text={detail} />
      </span>
      <Seconds step={step} />
    </li>
  );
}

/** A failure is told in full below. */
function detailOf({ phase, state, detail }: EnrolStep, { usedFrom, keyFingerprint }: Pairing): string {
  if (phase === "pair" && usedFrom !== null) return `from ${usedFrom}, key ${(keyFingerprint ?? "").slice(0, 16)}`;
  return detail === "" || state === "failed" ? about[phase] : detail;
}

function Seconds({ step: { state, beganAt, endedAt } }: { readonly step: EnrolStep }) {
  const isGoing = state === "begun" && beganAt !== null;
  const soFar = useSecondsSince(isGoing ? Date.parse(beganAt) : undefined);
  if (isGoing) return <span className="number">{soFar} s</span>;
  if (beganAt === null || endedAt === null) return <span className="number" />;
  return <span className="number">{((Date.parse(endedAt) - Date.parse(beganAt)) / 1000).toFixed(1)} s</span>;
}

function OutlookText({ outlook, pairing, onNewCode }: ProgressProps & { readonly outlook: Outlook }): ReactNode {
  const { name, nodeId } = pairing;
  switch (outlook.kind) {
    case "waiting":
      return <State tone="wait" text="nothing was reported yet: run the command on the machine" />;
    case "going":
      return <State tone="busy" text="under way" />;
    case "idle":
      return (
        <State tone="warn" text="paired, and nothing starts its agent there by itself: run what the script printed" />
      );
    case "online":
      return (
        <>
          <span className="state good">
            <span aria-hidden="true">●</span>{" "}
            <span className="cut" title={name}>
              {name}
            </span>{" "}
            is online
          </span>{" "}
          {nodeId !== null && (
            <Link to="/nodes/$nodeId" params={{ nodeId }}>
              Open its page
            </Link>
          )}
        </>
      );
    case "offline":
      return <State tone="warn" text="it was online, and is not now" />;
    case "expired":
      return (
        <>
          <State tone="bad" text="the code expired before anybody used it" />
          {onNewCode !== undefined && <NewCode onClick={() => onNewCode(pairing.takesOver !== null)} />}
        </>
      );
    case "failed":
      return (
        <div className="note bad">
          <p>
            <strong>✗ {outlook.phase} failed:</strong> <Foreign text={outlook.text} />
          </p>
          <p>{outlook.advice}</p>
          {outlook.needsCode && onNewCode !== undefined && <NewCode onClick={() => onNewCode(nodeId !== null)} />}
        </div>
      );
    default:
      return outlook satisfies never;
  }
}

function NewCode({ onClick }: { readonly onClick: () => void }) {
  return (
    <button type="button" onClick={onClick}>
      Make a new code
    </button>
  );
}
