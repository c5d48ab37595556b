// SPDX-License-Identifier: Apache-2.0
// A code that was just made, shown once: how long it lives, the one command to run, the same in steps for who reads first,
// and how far the machine is.

import type { ReactNode } from "react";
import type { Pairing, PairingCode } from "../../../src/protocol/enrol-schema.ts";
import { CommandLine, Copy } from "../parts/copy.tsx";
import { Loaded } from "../parts/failure.tsx";
import { Countdown } from "../parts/time.tsx";
import { PairingProgress, usePairing } from "./pairing-progress.tsx";

/** An address that only the controller's own machine reaches. */
const LOCAL = /\/\/(127\.|localhost\b|\[::1\])/;

export type MadeCodeProps = {
  readonly made: PairingCode;
  /** Makes another one for the same name. */
  readonly onNewCode: (isTakeOver: boolean) => void;
};

export function MadeCode({ made, onNewCode }: MadeCodeProps) {
  const pairing = usePairing(made.id);
  const address = made.commands?.run ?? window.location.origin;
  return (
    <>
      <p className="secret-head">
        <span>The code, shown only now:</span>
        <CodeLife pairing={pairing.data} expiresAt={made.expiresAt} />
      </p>
      <p className="secret">
        <code>{made.code}</code> <Copy text={made.code} what="the code" />
      </p>
      {made.commands === null ? <OwnCheckout /> : <Commands commands={made.commands} />}
      {LOCAL.test(address) && (
        <p className="note warn">
          ▲ This address is of this machine only: start the controller with <code>--listen HOST:PORT</code> for others
          to reach it.
        </p>
      )}
      <Loaded query={pairing}>{(data) => <PairingProgress pairing={data} onNewCode={onNewCode} />}</Loaded>
    </>
  );
}

type CodeLifeProps = { readonly pairing: Pairing | undefined; readonly expiresAt: string };

/** As wide in every state: nothing moves when it changes. */
function CodeLife({ pairing, expiresAt }: CodeLifeProps): ReactNode {
  const state = pairing?.state ?? "waiting";
  if (state === "paired") return <span className="code-life good">used</span>;
  if (state === "expired") return <span className="code-life bad">expired</span>;
  return (
    <span className="code-life">
      good for <Countdown until={pairing?.expiresAt ?? expiresAt} />
    </span>
  );
}

function Commands({
  commands: { run, read, scriptSha256 },
}: {
  readonly commands: NonNullable<PairingCode["commands"]>;
}) {
  return (
    <>
      <p>On that machine, as root or as any user. It asks for the code, which is not shown there:</p>
      <CommandLine text={run} what="the command" />
      <details className="read-first">
        <summary>Read the script first</summary>
        {read.map((line) => (
          <CommandLine key={line} text={line} />
        ))}
        <p className="quiet">
          Its SHA-256 is <code>{scriptSha256}</code>
        </p>
      </details>
    </>
  );
}

function OwnCheckout() {
  return (
    <>
      <p>
        This controller has no bundle of the agent to hand out (<code>npm run bundle</code> makes one). On that machine,
        in a checkout of Holdfast:
      </p>
      <CommandLine text="npm ci" />
      <CommandLine text="read -rs HOLDFAST_PAIRING_CODE && export HOLDFAST_PAIRING_CODE" />
      <p className="quiet">Paste the code there and press Enter; it is not shown.</p>
      <CommandLine text={`npx holdfast agent --join ${window.location.origin}`} />
    </>
  );
}
