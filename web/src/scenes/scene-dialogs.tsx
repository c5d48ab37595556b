// SPDX-License-Identifier: Apache-2.0
// Asks a node for a scene, or for none, after showing what that would do.

import { useState } from "react";
import type { Node } from "../../../src/protocol/node-schema.ts";
import type { SceneReport } from "../../../src/protocol/scene-schema.ts";
import { sizeText } from "../../../src/std/units.ts";
import { useAction } from "../app/api.ts";
import { ActionButton } from "../parts/button.tsx";
import { Confirm, Dialog } from "../parts/dialog.tsx";
import { FailureOf } from "../parts/failure.tsx";
import { useWhyNotScene } from "./scene-access.ts";
import { isUntold, previewOf, type SwitchPreview } from "./switch-preview.ts";

export type ReportingNode = Node & { readonly scenes: SceneReport };
type Scene = SceneReport["scenes"][number];

export function SwitchButton({ node, scene }: { readonly node: ReportingNode; readonly scene: Scene }) {
  const [isAsking, setAsking] = useState(false);
  const isActive = node.scenes.active === scene.name;
  return (
    <>
      <ActionButton
        whyNot={useWhyNotScene(node)}
        onClick={() => setAsking(true)}
        label={isActive ? `Activate ${scene.name} again…` : `Switch to ${scene.name}…`}
      >
        {isActive ? "Activate again…" : "Switch…"}
      </ActionButton>
      {isAsking && <SwitchDialog node={node} scene={scene} onClose={() => setAsking(false)} />}
    </>
  );
}

type SwitchDialogProps = { readonly node: ReportingNode; readonly scene: Scene; readonly onClose: () => void };

function SwitchDialog({ node, scene, onClose }: SwitchDialogProps) {
  const ask = useAction("nodeScene", onClose);
  const preview = previewOf(node.scenes, scene.models);
  const isActive = node.scenes.active === scene.name;
  const title = isActive ? `Activate ${scene.name} on ${node.name} again?` : `Switch ${node.name} to ${scene.name}?`;
  return (
    <Dialog title={title} onClose={onClose}>
      {isUntold(node.scenes) && (
        <p className="note warn">▲ It has not told of its model servers yet: what stays and what stops is not known.</p>
      )}
      <dl className="preview">
        <Names head="Stays" names={preview.stays} />
        <Names head="Stops" names={preview.stops} />
        <Names head="Starts" names={preview.starts} />
        <div>
          <dt>Memory</dt>
          <dd>{memoryText(node.scenes, preview)}</dd>
        </div>
      </dl>
      <p className="quiet">
        So says its last report. The node checks it all again and decides; when it refuses, nothing is changed.
      </p>
      <FailureOf error={ask.error} />
      <div className="buttons">
        <ActionButton
          kind="primary"
          whyNot={useWhyNotScene(node)}
          isPending={ask.isPending}
          onClick={() => ask.mutate({ params: { nodeId: node.id }, body: { scene: scene.name } })}
        >
          {isActive ? `Activate ${scene.name} again` : `Switch to ${scene.name}`}
        </ActionButton>
        <button type="button" onClick={onClose}>
          Keep it as it is
        </button>
      </div>
    </Dialog>
  );
}

function Names({ head, names }: { readonly head: string; readonly names: readonly string[] }) {
  return (
    <div>
      <dt>{head}</dt>
      <dd>{names.length === 0 ? <span className="quiet">nothing</span> : names.join(", ")}</dd>
    </div>
  );
}

function memoryText({ availableBytes, floorBytes }: SceneReport, { freedBytes }: SwitchPreview): string {
  const available =
    availableBytes === null ? "how much is available is unknown" : `${sizeText(availableBytes)} available`;
  const floor = floorBytes === null ? "no floor" : `the floor is ${sizeText(floorBytes)}`;
  const freed = freedBytes === 0 ? "" : `; what stops gives back about ${sizeText(freedBytes)}`;
  return `${available}, ${floor}${freed}`;
}

export function StopButton({ node }: { readonly node: ReportingNode }) {
  const [isAsking, setAsking] = useState(false);
  const stop = useAction("nodeScene", () => setAsking(false));
  const { active, desired, models } = node.scenes;
  const whyNot = useWhyNotScene(node);
  const isIdle = active === null && desired === null && models.length === 0;
  return (
    <>
      <ActionButton
        kind="danger"
        whyNot={whyNot ?? (isIdle ? "no scene is active, and no model runs" : undefined)}
        onClick={() => setAsking(true)}
      >
        Stop all…
      </ActionButton>
      {isAsking && (
        <Confirm
          title={`Stop every model on ${node.name}?`}
          verb="Stop all models"
          isPending={stop.isPending}
          error={stop.error}
          onConfirm={() => stop.mutate({ params: { nodeId: node.id }, body: { scene: null } })}
          onClose={() => setAsking(false)}
        >
          <p>No scene is active then, and its gateways refuse. It stays so until somebody asks for a scene.</p>
          <dl className="preview">
            <Names
              head="Stops"
              names={models.filter(({ condition }) => condition !== "dead").map(({ name }) => name)}
            />
          </dl>
        </Confirm>
      )}
    </>
  );
}
