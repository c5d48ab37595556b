// SPDX-License-Identifier: Apache-2.0
// Codes that were made and whose machines are not online yet, the newest first, each with the last that was heard of it.

import { useState } from "react";
import type { Pairing } from "../../../src/protocol/enrol-schema.ts";
import type { Node } from "../../../src/protocol/node-schema.ts";
import { isUnderWay, type Outlook, outlookOf } from "../../../src/protocol/pairing.ts";
import { useApi } from "../app/api.ts";
import { ActionButton } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Loaded } from "../parts/failure.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { type Column, none, Section, Table } from "../parts/page.tsx";
import { State, type Tone } from "../parts/state.tsx";
import { Countdown } from "../parts/time.tsx";
import { PairingProgress, usePairing } from "./pairing-progress.tsx";

type Row = { readonly pairing: Pairing; readonly outlook: Outlook; readonly onShow: () => void };

const tones: Readonly<Record<Outlook["kind"], Tone>> = {
  waiting: "wait",
  going: "busy",
  failed: "bad",
  idle: "warn",
  online: "good",
  offline: "warn",
  expired: "gone",
};

const columns: readonly Column<Row>[] = [
  { head: "Name", cell: ({ pairing }) => <span className="cut">{pairing.name}</span> },
  { head: "State", cell: (row) => <State tone={tones[row.outlook.kind]} text={stateText(row)} /> },
  { head: "Last heard", isWide: true, cell: (row) => <LastHeard {...row} /> },
  { head: "Code ends in", isNumber: true, cell: (row) => <CodeEnd {...row} /> },
  {
    head: "",
    cell: ({ pairing, onShow }) => (
      <ActionButton onClick={onShow} label={`Show how far ${pairing.name} is`}>
        Show…
      </ActionButton>
    ),
  },
];

function stateText({ pairing, outlook }: Row): string {
  const phase = pairing.phases.at(-1)?.phase;
  const what = outlook.kind === "going" && phase !== undefined ? phase : outlook.kind;
  return pairing.takesOver === null ? what : `${what}, takes over`;
}

function LastHeard({ pairing, outlook }: Row) {
  if (outlook.kind === "failed") return <Foreign text={`${outlook.phase} failed: ${outlook.text}`} />;
  const last = pairing.phases.at(-1);
  if (last === undefined) return none;
  return <Foreign text={`${last.phase} ${last.outcome}${last.detail === "" ? "" : `: ${last.detail}`}`} />;
}

function CodeEnd({ pairing: { state, expiresAt } }: Row) {
  return state === "paired" ? <span className="quiet">used</span> : <Countdown until={expiresAt} />;
}

function PairingDialog({ pairing, onClose }: { readonly pairing: Pairing; readonly onClose: () => void }) {
  const current = usePairing(pairing.id);
  return (
    <Dialog title={`How far ${pairing.name} is`} onClose={onClose} isWide>
      <PairingProgress pairing={current.data ?? pairing} />
      <p className="quiet">Its code was shown when it was made, and is not kept.</p>
      <div className="buttons">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

/** A code that runs out wakes nobody. */
const REFETCH_MS = 5_000;

/** Nothing when there is none. */
export function PairingsUnderWay({ nodes }: { readonly nodes: readonly Node[] }) {
  const pairings = useApi("pairingList", {}, { refetchMs: REFETCH_MS });
  // Kept here: a row goes as soon as its machine is online, and whoever looks at it should see that.
  const [shown, setShown] = useState<Pairing>();
  if (pairings.data === undefined && pairings.error === null) return null;
  return (
    <>
      <Loaded query={pairings}>
        {({ items }) => <UnderWay pairings={items} nodes={nodes} seenAtMs={pairings.dataUpdatedAt} onShow={setShown} />}
      </Loaded>
      {shown !== undefined && <PairingDialog pairing={shown} onClose={() => setShown(undefined)} />}
    </>
  );
}

type UnderWayProps = {
  readonly pairings: readonly Pairing[];
  readonly nodes: readonly Node[];
  readonly seenAtMs: number;
  readonly onShow: (pairing: Pairing) => void;
};

function UnderWay({ pairings, nodes, seenAtMs, onShow }: UnderWayProps) {
  const rows = pairings.flatMap((pairing) => {
    const node = nodes.find(({ id }) => id === pairing.nodeId);
    if (!isUnderWay(pairing, node, seenAtMs)) return [];
    return [{ pairing, outlook: outlookOf(pairing, node), onShow: () => onShow(pairing) }];
  });
  if (rows.length === 0) return null;
  return (
    <Section title="Pairings under way">
      <Table
        label="Pairings under way"
        columns={columns}
        rows={rows}
        keyOf={({ pairing }) => pairing.id}
        empty={null}
      />
    </Section>
  );
}
