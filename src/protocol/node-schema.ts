// SPDX-License-Identifier: Apache-2.0
// What crosses HTTP about nodes as people see them, and the facts that a node reports about its machine.

import Type, { type Static } from "typebox";
import { bytes, counter, exact, id, name, nullable, time } from "./common-schema.ts";
import { DEVICES_MAX } from "./limits.ts";
import { boundaryStates, deviceStates, nodeStatuses } from "./node.ts";
import { sceneName, sceneReport } from "./scene-schema.ts";

const text = Type.String({ maxLength: 256 });

/** A failure to read a device is a state with a reason, never "absent". Unknown is null, never zero. */
export const device = exact({
  kind: Type.Enum(["cpu", "gpu"]),
  vendor: text,
  name: text,
  /** Where it is on the bus, such as "0000:01:00.0"; null for the processor. */
  address: nullable(text),
  memoryBytes: nullable(bytes),
  /** What nobody uses of it now, processes of others included. */
  memoryAvailableBytes: nullable(bytes),
  /** The most of the machine's memory that the driver lets it use, where it shares that; null: no cap is known. */
  memoryCapBytes: nullable(bytes),
  /** Whether it shares the machine's memory; null: not known. */
  unified: nullable(Type.Boolean()),
  driver: nullable(text),
  state: Type.Enum([...deviceStates]),
  reason: nullable(Type.String({ maxLength: 512 })),
});
export type Device = Static<typeof device>;

export const nodeFacts = exact({
  hostname: text,
  arch: text,
  kernel: text,
  cpuName: text,
  cpuCount: Type.Integer({ minimum: 1, maximum: 65_536 }),
  memoryTotalBytes: bytes,
  memoryAvailableBytes: bytes,
  devices: Type.Array(device, { maxItems: DEVICES_MAX }),
  /** Version of the agent. */
  version: text,
  /** How many jobs it runs at once. */
  slots: Type.Integer({ minimum: 1, maximum: 4096 }),
});
export type NodeFacts = Static<typeof nodeFacts>;

export const node = exact({
  id: id("node"),
  name,
  status: Type.Enum([...nodeStatuses]),
  online: Type.Boolean(),
  lastHeartbeatAt: nullable(time),
  /** Its clock minus the database's; null before the first heartbeat. A large one is a warning. */
  clockOffsetMs: nullable(Type.Integer()),
  facts: nullable(nodeFacts),
  /** Leases that it holds now. */
  running: Type.Integer({ minimum: 0 }),
  /** The life of the agent that runs now; null before the first one and after the node was retired. */
  session: nullable(exact({ id: id("nses"), startedAt: nullable(time) })),
  /** Whether it can promise that it starts nothing twice; null when its agent did not say. */
  boundary: nullable(
    exact({
      state: Type.Enum([...boundaryStates]),
      why: nullable(Type.String()),
      /** Records acknowledged in its locker so far. */
      sequence: nullable(counter),
    }),
  ),
  /** When another agent last used this node's credential beside the present one: a copied disk. */
  rivalAt: nullable(time),
  /** requested: the agent will be told with its next heartbeat. offered: the new credential waits for its first use. */
  rotation: nullable(Type.Enum(["requested", "offered"])),
  /** As its agent told them last; null when it keeps none. */
  scenes: nullable(sceneReport),
  /** What a person asked it for last; the report's wish says what became of it. */
  wish: nullable(exact({ number: counter, scene: nullable(sceneName), at: time })),
  /** When it told that it was uninstalled; null while it is not. */
  leftAt: nullable(time),
  createdAt: time,
});
export type Node = Static<typeof node>;
