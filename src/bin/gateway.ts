// SPDX-License-Identifier: Apache-2.0
// `holdfast gateway`: a front for one upstream, or fronts by the table that comes over its control socket. It stays light: no
// web server, no database, nothing of the agent.

import v8 from "node:v8";
import { Control } from "../gateway/control.ts";
import { Gateway } from "../gateway/gateway.ts";
import { type Address, DRAIN_MS, type Front, parseAddress } from "../gateway/table.ts";
import { systemClock } from "../std/clock.ts";
import { Failure, type Fault } from "../std/errors.ts";
import { defaultMarker } from "../std/marker.ts";
import { systemRandom } from "../std/random.ts";
import { stderrLog } from "./logs.ts";
import type { Environment } from "./settings.ts";

export type GatewayCommand = {
  /** HOST:PORT, with upstream. */
  readonly listen?: string;
  readonly upstream?: string;
  /** What an id in /v1/models of the upstream must be. */
  readonly marker?: string;
  readonly httpStatus?: boolean;
  /** Path of the socket that tables come over. */
  readonly control?: string;
  /** At the end: how long busy connections may go on. */
  readonly drainMs?: number;
};

/** The generation of the front that the command line names: any table that is told comes after it. */
const FROM_COMMAND_LINE = 0;

/** V8's space for young objects stays at 1 MB: what lives for one read or one connection needs no more. Grown, it held 100 MB. */
const FLAT_MEMORY = "--semi-space-growth-factor=1";

/** Runs until the signal aborts; returns the exit code. */
export async function runGateway(options: GatewayCommand, env: Environment, signal: AbortSignal): Promise<number> {
  const front = frontFrom(options);
  const { control: path, drainMs = DRAIN_MS } = options;
  if (front === undefined && path === undefined)
    throw new Failure("usage", "a gateway needs --listen and --upstream, or --control");
  v8.setFlagsFromString(FLAT_MEMORY);
  const log = await stderrLog(env);
  const gateway = new Gateway({ clock: systemClock, random: systemRandom, log });
  await using stack = new AsyncDisposableStack();
  if (path !== undefined) stack.use(await Control.open({ path, gateway, log }));
  if (front !== undefined) {
    const applied = await gateway.set({ fronts: [front] }, FROM_COMMAND_LINE);
    const [failed] = applied.kind === "applied" ? applied.failed : [];
    if (failed !== undefined)
      throw new Failure("port_taken", `the gateway cannot listen on ${failed.listen}: ${failed.why}`);
    log.info({ listen: options.listen, upstream: options.upstream }, "the gateway listens");
  } else log.info({ control: path }, "the gateway waits for its table");
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
  log.info({ drainMs }, "stopping");
  await gateway.close(drainMs);
  return 0;
}

function frontFrom({ listen, upstream, marker, httpStatus = false }: GatewayCommand): Front | undefined {
  const faults: Fault[] = [];
  const address = (place: string, text: string | undefined): Address => {
    const parsed = text === undefined ? undefined : parseAddress(text);
    if (parsed === undefined || parsed.port === 0)
      faults.push({ place, problem: text === undefined ? "is missing" : `${text} is not HOST:PORT` });
    return parsed ?? { host: "", port: 0 };
  };
  if (listen === undefined && upstream === undefined) {
    if (marker !== undefined || httpStatus)
      throw new Failure("usage", "--marker and --http-status belong to --listen and --upstream");
    return undefined;
  }
  const front: Front = {
    listen: address("--listen", listen),
    target: {
      kind: "serving",
      upstream: {
        address: address("--upstream", upstream),
        model: marker ?? upstream ?? "",
        ...(marker === undefined ? {} : { marker: defaultMarker(marker) }),
      },
    },
    httpStatus,
  };
  if (faults.length > 0) throw new Failure("usage", "the addresses of a gateway are HOST:PORT", { details: faults });
  return front;
}
