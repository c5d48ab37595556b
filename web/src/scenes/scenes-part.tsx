// SPDX-License-Identifier: Apache-2.0
// The scenes of a node: which is active, what can be asked for, what goes on, and the servers and gateways that make it true.

import type { Node } from "../../../src/protocol/node-schema.ts";
import { CommandLine } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { type Column, fact, Facts, none, Section, Table } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";
import { Ago } from "../parts/time.tsx";
import { GatewayTable } from "./gateway-table.tsx";
import { MemorySection } from "./memory-graph.tsx";
import { ModelTable } from "./model-table.tsx";
import { SceneAnswer } from "./scene-answer.tsx";
import { type ReportingNode, StopButton, SwitchButton } from "./scene-dialogs.tsx";
import { SwitchProgress } from "./switch-progress.tsx";

type Row = { readonly node: ReportingNode; readonly scene: ReportingNode["scenes"]["scenes"][number] };

/** Nothing for a node that keeps no scenes. */
export function ScenesPart({ node, seenAtMs }: { readonly node: Node; readonly seenAtMs: number }) {
  if (!doesReport(node)) return null;
  if (hasNone(node)) return <FirstScenes why={node.scenes.doubt ?? ""} />;
  return (
    <>
      <Section title="Scenes" actions={<StopButton node={node} />}>
        <SceneNotes node={node} />
        <SceneFacts node={node} />
        <SceneAnswer node={node} />
        <SwitchProgress report={node.scenes} seenAtMs={seenAtMs} />
        <Table
          label="Scenes"
          columns={columns}
          rows={node.scenes.scenes.map((scene) => ({ node, scene }))}
          keyOf={({ scene }) => scene.name}
          empty={<p>It tells of no scene.</p>}
        />
      </Section>
      <ModelTable report={node.scenes} />
      <GatewayTable gateways={node.scenes.gateways} hasActive={node.scenes.active !== null} />
      <MemorySection node={node} />
    </>
  );
}

function doesReport(node: Node): node is ReportingNode {
  return node.scenes !== null;
}

/** No scenes.yaml yet, and nothing was ever started: not a fault. */
function hasNone({ scenes: { active, desired, doubt, models, scenes } }: ReportingNode): boolean {
  const isMissing = doubt !== null && /^there is no .*scenes\.yaml$/.test(doubt);
  return isMissing && active === null && desired === null && scenes.length + models.length === 0;
}

function FirstScenes({ why }: { readonly why: string }) {
  return (
    <Section title="Scenes">
      <div className="empty">
        <p>
          It keeps no scenes: <Foreign text={why} />. The first one is written there, with:
        </p>
        <CommandLine text="npx holdfast scene init" />
      </div>
    </Section>
  );
}

function SceneNotes({ node: { online, lastHeartbeatAt, scenes, wish } }: { readonly node: ReportingNode }) {
  const { doubt, lastError } = scenes;
  // The answer to the last wish says it already.
  const isTold =
    lastError !== null && wish?.number === scenes.wish?.number && (scenes.wish?.text ?? "").includes(lastError);
  return (
    <>
      {!online && (
        <p className="quiet as-told">
          As it told last, <Ago at={lastHeartbeatAt} />.
        </p>
      )}
      {doubt !== null && (
        <p className="note warn" role="alert">
          ▲ Not certain: <Foreign text={doubt} />
        </p>
      )}
      {lastError !== null && !isTold && (
        <p className="note bad">
          ■ Last error: <Foreign text={lastError} />
        </p>
      )}
    </>
  );
}

function SceneFacts({ node: { scenes } }: { readonly node: ReportingNode }) {
  const { active, desired, busy } = scenes;
  const quiet = (text: string) => <span className="quiet">{text}</span>;
  return (
    <Facts
      rows={[
        fact("Active", active === null ? quiet("none") : <State tone="good" text={active} />),
        fact("Wished for", desired ?? quiet("none")),
        fact("Busy with", busy === null ? quiet("nothing") : <State tone="busy" text={busy} />),
      ]}
    />
  );
}

const columns: readonly Column<Row>[] = [
  { head: "Scene", cell: ({ scene }) => <span className="cut">{scene.name}</span> },
  { head: "State", cell: ({ node, scene }) => <SceneState report={node.scenes} name={scene.name} /> },
  { head: "Models", isWide: true, cell: ({ scene }) => scene.models.join(", ") },
  { head: "", cell: ({ node, scene }) => <SwitchButton node={node} scene={scene} /> },
];

type SceneStateProps = { readonly report: ReportingNode["scenes"]; readonly name: string };

function SceneState({ report: { active, desired, transition }, name }: SceneStateProps) {
  if (transition === name) return <State tone="busy" text="being switched to" />;
  if (active === name) return <State tone="good" text="active" />;
  return desired === name ? <State tone="warn" text="wished for" /> : none;
}

/** In short, for a list of nodes. */
export function SceneInShort({ scenes }: Pick<Node, "scenes">) {
  if (scenes === null) return none;
  const { active, transition } = scenes;
  const shown = transition ?? active;
  if (shown === null) return none;
  return (
    <span className="cut" title={transition === null ? shown : `being switched to ${shown}`}>
      {transition === null ? "" : "→ "}
      {shown}
    </span>
  );
}
