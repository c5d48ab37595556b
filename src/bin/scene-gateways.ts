// SPDX-License-Identifier: Apache-2.0
// The gateway process of a node, as its scenes see it: launched like a model, found again after the agent's death, told its
// table over its socket. Rule: it outlives the agent; only when there is none is one started.

import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { type GatewayControl, gatewayControl } from "../gateway/control-client.ts";
import type { CountersSeen } from "../gateway/counters.ts";
import { type Front as GatewayFront, parseAddress } from "../gateway/table.ts";
import { nodeDirectory } from "../enrol/node-key.ts";
import { adoptLaunch } from "../launcher/adopt.ts";
import { launchesIn, listLaunches } from "../launcher/launch-files.ts";
import { type Launch, type Launcher } from "../launcher/launcher.ts";
import { type Front, type GatewayPort, type Traffic } from "../scenes/fronts.ts";
import { RESERVED } from "../scenes/servers.ts";
import { stateDirectory } from "../scenes/state.ts";
import type { Clock } from "../std/clock.ts";
import { codeOf, Failure } from "../std/errors.ts";
import { describeProcess, ownerOf, processTree } from "../std/listeners.ts";
import { type Identity, isAlive } from "../std/process.ts";

export type GatewayOptions = { readonly root: string; readonly launcher: Launcher; readonly clock: Clock };

const OUTPUT = { mode: "pump", fileBytes: 4 * 1024 * 1024, files: 2 } as const;
const ANSWER_WITHIN_MS = 15_000;
const LOOK_MS = 25;
/** Of each look at how far a drain is. */
const DRAIN_LOOK_MS = 50;
/** At the gateway's own end; its grace is longer. */
const END_DRAIN_MS = 3_000;
const STOP_GRACE_MS = 5_000;

/** Of the gateway process that runs; it changes nothing. */
export async function gatewayIdentity(root: string): Promise<Identity | undefined> {
  const node = nodeDirectory(root);
  for (const launchId of await listLaunches(node)) {
    if (!launchId.startsWith(RESERVED)) continue;
    const adopted = await adoptLaunch(path.join(launchesIn(node), launchId), launchId);
    if (adopted.kind === "alive") return adopted.launch.identity;
  }
  return undefined;
}

export function openGateways(options: GatewayOptions): GatewayPort {
  return new Gateways(options);
}

class Gateways implements GatewayPort {
  readonly #options: GatewayOptions;
  readonly #control: GatewayControl;
  readonly #socket: string;
  #launch: Launch | undefined;
  #generation = 0;
  /** Of the table that was told last. */
  #drainMs = 0;

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.#socket = path.join(stateDirectory(options.root), "gateway.sock");
    this.#control = gatewayControl(this.#socket);
  }

  async set(fronts: readonly Front[]): Promise<void> {
    if (fronts.length === 0 && (await this.#find()) === undefined) return;
    await this.#ensure();
    this.#drainMs = Math.max(0, ...fronts.map(({ gateway }) => gateway.drainMs));
    this.#generation = Math.max(this.#generation + 1, this.#options.clock.now());
    const applied = await this.#control.set({ fronts: fronts.map(frontOf) }, this.#generation);
    if (applied.kind === "stale") {
      // A clock that was set back: this one goes on from what the gateway knows.
      this.#generation = applied.generation;
      return this.set(fronts);
    }
    const failed = applied.failed.map(({ listen, why }) => `the gateway cannot listen on ${listen}: ${why}`);
    if (failed.length > 0) throw new Failure("scene_failed", failed.join("; "));
  }

  async drained(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    if ((await this.#find()) === undefined) return;
    const until = clock.monotonicMs() + this.#drainMs;
    while (clock.monotonicMs() < until && !signal.aborted) {
      const { fronts } = await this.#control.status();
      if (fronts.every(({ draining }) => draining.every(({ connections }) => connections === 0))) return;
      await clock.sleep(DRAIN_LOOK_MS, signal);
    }
  }

  async problems(listens: readonly string[]): Promise<readonly string[]> {
    const own = await this.#find();
    const tree = own === undefined ? [] : processTree(own.identity.pid);
    return listens.flatMap((listen) => {
      const address = parseAddress(listen);
      if (address === undefined) return [];
      const owner = ownerOf(address.host, address.port, tree);
      if (owner.kind !== "other") return [];
      const who = owner.pid === undefined ? "a process of another account" : describeProcess(owner.pid);
      return [`gateway address ${listen} is held by ${who}`];
    });
  }

  async isUp(): Promise<boolean> {
    return (await this.#find()) !== undefined;
  }

  async close(): Promise<void> {
    const launch = await this.#find();
    if (launch === undefined) return;
    const { launcher } = this.#options;
    const stopped = await launcher.stop(launch, { graceMs: STOP_GRACE_MS });
    if (stopped.kind === "survived") throw new Failure("scene_failed", "the gateway does not end");
    await launcher.remove(launch.launchId);
    this.#launch = undefined;
  }

  async traffic(): Promise<ReadonlyMap<string, Traffic>> {
    if ((await this.#find()) === undefined) return new Map();
    try {
      const { fronts } = await this.#control.status();
      return new Map(fronts.map(({ listen, counters }) => [listen, trafficOf(counters)]));
    } catch {
      return new Map();
    }
  }

  /** The one that runs, of whatever life. */
  async #find(): Promise<Launch | undefined> {
    if (this.#launch !== undefined && isAlive(this.#launch.identity)) return this.#launch;
    this.#launch = undefined;
    const { launcher } = this.#options;
    for (const launchId of await launcher.list()) {
      if (!launchId.startsWith(RESERVED)) continue;
      const adopted = await launcher.adopt(launchId);
      if (adopted.kind === "alive") this.#launch = adopted.launch;
      else if (adopted.kind === "remains") await launcher.stop(adopted.launch, { graceMs: STOP_GRACE_MS });
      if (adopted.kind !== "alive") await launcher.remove(launchId);
    }
    return this.#launch;
  }

  async #ensure(): Promise<void> {
    if ((await this.#find()) !== undefined) return;
    const { launcher, clock } = this.#options;
    fs.rmSync(this.#socket, { force: true });
    const program = fileURLToPath(new URL("gateway-main.ts", import.meta.url));
    const argv = [process.execPath, program, "--control", this.#socket, "--drain", String(END_DRAIN_MS)];
    // Compiled once: a third less memory.
    const environment = { NODE_COMPILE_CACHE: path.join(nodeDirectory(this.#options.root), "compile-cache") };
    for (let generation = clock.now(); ; generation++) {
      const purpose = { kind: "model", scene: "_gateway", model: "gateway", generation: String(generation) } as const;
      const prepared = await launcher.prepare({ purpose, argv, environment, output: OUTPUT });
      if (prepared.kind === "already-launched") continue;
      await prepared.launch.openGate();
      this.#launch = prepared.launch;
      return this.#answers(prepared.launch);
    }
  }

  async #answers(launch: Launch): Promise<void> {
    const { clock } = this.#options;
    const until = clock.monotonicMs() + ANSWER_WITHIN_MS;
    for (;;) {
      try {
        await this.#control.status();
        return;
      } catch (error) {
        if (codeOf(error) !== "gateway_unreachable") throw error;
        if (!isAlive(launch.identity) || clock.monotonicMs() > until)
          throw new Failure("scene_failed", `the gateway did not start: look at ${launch.directory}/stderr`, {
            cause: error,
          });
      }
      await clock.sleep(LOOK_MS);
    }
  }
}

function trafficOf({ open, total, held, refused, bytesFromClients, bytesFromUpstream }: CountersSeen): Traffic {
  const all = Object.values(refused).reduce((sum, count) => sum + count, 0);
  return { open, total, held, refused: all, bytesIn: bytesFromClients, bytesOut: bytesFromUpstream };
}

function frontOf({ gateway, shows }: Front): GatewayFront {
  const listen = parseAddress(gateway.listen) ?? { host: "", port: 0 };
  const { isHttpStatus: httpStatus, drainMs } = gateway;
  const target: GatewayFront["target"] =
    shows.kind === "serving"
      ? {
          kind: "serving",
          upstream: {
            address: shows.model.place,
            model: shows.model.name,
            identity: shows.identity,
            marker: shows.model.marker,
          },
        }
      : shows;
  return { listen, target, httpStatus, drainMs };
}
