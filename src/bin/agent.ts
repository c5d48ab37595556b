// SPDX-License-Identifier: Apache-2.0
// `holdfast agent`: pairs when asked to, then runs the node. The credential comes from the environment, standard input or its
// 0600 file, never from argv or a config file, and leaves this process's environment at once.

import fs from "node:fs";
import path from "node:path";
import { type AgentOptions, type OnStop, runAgent } from "../agent/agent.ts";
import { ownEvidence, reportOfBoundary } from "../agent/boundary-report.ts";
import { Link } from "../agent/link.ts";
import { OUTPUT_BYTES_MAX } from "../agent/output-size.ts";
import { createClient } from "../client/client.ts";
import { BATCH_MAX } from "../protocol/limits.ts";
import { deviceScanner } from "../devices/devices.ts";
import {
  type AgentConfig,
  agentConfigFile,
  encodeAgentConfig,
  isHttpUrl,
  loadAgentConfig,
} from "../enrol/agent-config.ts";
import { finishPairing, pair } from "../enrol/enrol.ts";
import { LAUNCH_SOCKET } from "../enrol/launch-unit.ts";
import { checkRefusal, needsPairing, noteRefusal } from "../enrol/refusal.ts";
import { isStillPaired } from "../enrol/reach.ts";
import { writeSandbox } from "../enrol/sandbox.ts";
import { Boundary, BOUNDARY_TENANT } from "../boundary/boundary.ts";
import { startScenes } from "./agent-scenes.ts";
import { openLocker } from "./locker.ts";
import { keepNext, loadOrDrawNext } from "../enrol/next-credential.ts";
import {
  agentLockFile,
  credentialHash,
  loadCredential,
  loadOrMakeNodeKey,
  nodeDirectory,
  parseCredential,
} from "../enrol/node-key.ts";
import { writePrivateFile } from "../enrol/private-file.ts";
import { currentAccount, jobAccount, type LaunchService, Launcher, shimPathFor } from "../launcher/launcher.ts";
import { systemClock } from "../std/clock.ts";
import { codeOf, Failure } from "../std/errors.ts";
import { makeDirectory } from "../std/files.ts";
import { forbidInspection } from "../std/linux.ts";
import { takeLock } from "../std/lock.ts";
import type { Log } from "../std/log.ts";
import { systemRandom } from "../std/random.ts";
import { stderrLog } from "./logs.ts";
import { keepCertificate } from "./node-certificate.ts";
import { handOver, Releases, startAnew } from "./release.ts";
import { rootFrom } from "./settings.ts";
import { trustController } from "./tls.ts";
import { ownSurroundings } from "./surroundings.ts";
import { VERSION } from "./version.ts";

export type AgentCommand = {
  readonly root?: string;
  /** Address of the controller; pairs with it first when this root is not paired yet. */
  readonly join?: string;
  readonly slots?: number;
  readonly onStop?: OnStop;
  readonly stopGraceMs?: number;
  readonly outputBytesMax?: number;
  readonly stopFile?: string;
  /** Directories of the locker, one a disk; default: node/locker in the root. */
  readonly lockerSlots?: readonly string[];
  readonly nodeKeyStdin?: boolean;
  /** Ends when standard input does: its parent holds the other end. */
  readonly lifeline?: boolean;
  /** Takes the release that the controller hands out; returns to the one before when that does not come online. */
  readonly selfUpgrade?: boolean;
  /** Account for jobs alone, under which systemd starts them. */
  readonly jobAccount?: string;
  /** Socket by which systemd starts jobs and models, outside of this agent's sandbox. */
  readonly launchSocket?: string;
  /** Memory that stays available; in place of the floor in scenes.yaml. */
  readonly floorBytes?: number;
  /** Without a controller: keeps the scenes of this machine, and runs no jobs. */
  readonly alone?: boolean;
  /** Dies with exit code 137 right after a claim: for demonstrations. */
  readonly dieAfterClaim?: boolean;
};

const STOP_GRACE_MS = 1_500;
const STOP_FILE_LOOK_MS = 500;
/** One batch of a renewal holds all that an agent can hold. */
const SLOTS_MAX = BATCH_MAX;

/** Runs until the signal aborts; returns the exit code. Throws the Failure of a permanent refusal. */
export async function runAgentCommand(
  options: AgentCommand,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<number> {
  const root = rootFrom(env, options.root);
  const log = await stderrLog(env);
  handOver(root, env, log);
  const secrets = takeSecrets(env);
  makeDirectory(root, 0o755);
  makeDirectory(nodeDirectory(root), 0o700);
  await using stack = new AsyncDisposableStack();
  stack.defer(lockRoot(root));
  if (options.alone === true) return await runAlone(options, env, { root, log, signal, stack });
  finishPairing(root);
  trustController(root);
  const piped =
    options.nodeKeyStdin === true || (secrets.code === undefined && needsCode(options, root))
      ? await readPipe(options)
      : undefined;
  const config = await settle(options, root, secrets.code ?? (options.nodeKeyStdin === true ? undefined : piped));
  const credential = findCredential(root, secrets.key, options.nodeKeyStdin === true ? piped : undefined);

  checkRefusal(root, credential, systemClock.now());
  const client = createClient({ baseUrl: config.controllerUrl, credential, version: VERSION });
  const link = new Link({ client, clock: systemClock, random: systemRandom, log });
  const key = loadOrMakeNodeKey(nodeDirectory(root));
  const boundary = await Boundary.open(openLocker(root, options.lockerSlots, key, stack).tenant(BOUNDARY_TENANT));
  const launcher = await openLauncher(root, options);
  writeSandbox(root, options.jobAccount ?? null);
  const scenes = stack.use(await startScenes({ root, env, log, ...floorFrom(options), ...serviceFrom(options) }));
  const scanner = deviceScanner(systemClock, ownSurroundings());
  const slots = options.slots ?? defaultSlots((await scanner.read()).cpuCount);
  if (!Number.isInteger(slots) || slots < 1 || slots > SLOTS_MAX)
    throw new Failure("usage", `--slots takes 1 to ${SLOTS_MAX}, not ${slots}`);
  const isOwn = isOwnFile(options, secrets);
  const releases = stack.use(
    new Releases({ root, env, log, client: () => link.client, isAllowed: isOwn && options.selfUpgrade === true }),
  );
  const stopping = AbortSignal.any([signal, releases.anew, ...stopSignals(options, root, stack, log)]);
  const agent: AgentOptions = {
    launcher,
    link,
    boundary,
    pressure: scenes.pressure,
    scenes,
    boundaryReport: () => reportOfBoundary(boundary, config.nodeId, key),
    ownEvidence: (told) => ownEvidence(told, config.nodeId, key),
    clock: systemClock,
    log,
    slots,
    facts: async () => ({ ...(await scanner.read()), version: VERSION, slots }),
    rotate: isOwn ? (to) => rotate({ root, config, link }, to) : undefined,
    onStop: () => (releases.anew.aborted ? "leave" : (options.onStop ?? "release")),
    onHeartbeat: (release) => releases.note(release),
    stopGraceMs: options.stopGraceMs ?? STOP_GRACE_MS,
    outputBytesMax: options.outputBytesMax ?? OUTPUT_BYTES_MAX,
    ...(options.dieAfterClaim === true ? { afterClaim: () => process.exit(137) } : {}),
  };
  stack.use(keepCertificate({ root, key, link, clock: systemClock, log }));
  const end = await runAgent(agent, stopping);
  if (end.kind === "refused" && codeOf(end.reason) === "agent_too_old") await releases.takeOffered();
  if (!releases.anew.aborted) {
    if (end.kind === "stopped") return 0;
    noteRefusal(root, isOwn ? (loadCredential(root) ?? credential) : credential, end.reason, systemClock.now());
    throw needsPairing(end.reason);
  }
  await stack.disposeAsync();
  return startAnew(env);
}

/** For jobs. Models have another one, of the agent's own account. */
function openLauncher(root: string, options: AgentCommand): Promise<Launcher> {
  return Launcher.open({
    root: nodeDirectory(root),
    shimPath: shimPathFor(process.arch),
    account: currentAccount(),
    ...serviceFrom(options, options.jobAccount),
    clock: systemClock,
    ceilings: { outputBytes: options.outputBytesMax ?? OUTPUT_BYTES_MAX },
  });
}

/** How launches are started where the agent itself does not start them. `name`: whom they run as. */
function serviceFrom(options: AgentCommand, name?: string): { readonly service?: LaunchService } {
  const socket = options.launchSocket ?? (options.jobAccount === undefined ? undefined : LAUNCH_SOCKET);
  if (socket === undefined) return {};
  return { service: name === undefined ? { socket } : { socket, account: jobAccount(name) } };
}

function floorFrom({ floorBytes }: AgentCommand): { readonly floorBytes?: number } {
  return floorBytes === undefined ? {} : { floorBytes };
}

type Alone = {
  readonly root: string;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly stack: AsyncDisposableStack;
};

/** Scenes only, without a controller: no pairing, no jobs. */
async function runAlone(
  options: AgentCommand,
  env: NodeJS.ProcessEnv,
  { root, log, signal, stack }: Alone,
): Promise<number> {
  const stopping = AbortSignal.any([signal, ...stopSignals(options, root, stack, log)]);
  stack.use(await startScenes({ root, env, log, ...floorFrom(options), ...serviceFrom(options) }));
  log.info({ root }, "keeping scenes, without a controller");
  if (!stopping.aborted) await new Promise((resolve) => stopping.addEventListener("abort", resolve, { once: true }));
  log.info({}, "stopped; the models run on");
  return 0;
}

function isOwnFile(options: AgentCommand, secrets: Secrets): boolean {
  return secrets.key === undefined && options.nodeKeyStdin !== true;
}

type Rotation = { readonly root: string; readonly config: AgentConfig; readonly link: Link };

/** Draws, offers, keeps, uses: in this order a crash after any step leaves a credential that works. */
async function rotate({ root, config, link }: Rotation, signal: AbortSignal): Promise<void> {
  const directory = nodeDirectory(root);
  const next = loadOrDrawNext(directory, systemRandom);
  await link.call("nodeCredential", { body: { credentialHash: credentialHash(next) } }, { signal });
  keepNext(directory);
  link.useClient(createClient({ baseUrl: config.controllerUrl, credential: next, version: VERSION }));
}

/** One job for each pair of processors, at least one: most jobs here are heavy. */
function defaultSlots(cpuCount: number): number {
  return Math.min(SLOTS_MAX, Math.max(1, Math.floor(cpuCount / 2)));
}

type Secrets = { readonly key: string | undefined; readonly code: string | undefined };

/** Takes them out of the environment, so that nothing started from here inherits them, or reads them where they were. */
function takeSecrets(env: NodeJS.ProcessEnv): Secrets {
  forbidInspection();
  const secrets = { key: env["HOLDFAST_NODE_KEY"], code: env["HOLDFAST_PAIRING_CODE"] };
  for (const name of [
    "HOLDFAST_NODE_KEY",
    "HOLDFAST_PAIRING_CODE",
    "HOLDFAST_TOKEN",
    "DATABASE_URL",
    "DATABASE_OWNER_URL",
  ])
    delete env[name];
  return secrets;
}

function needsCode(options: AgentCommand, root: string): boolean {
  return options.join !== undefined && loadAgentConfig(root) === undefined && options.lifeline !== true;
}

/** One line of standard input; an empty pipe is said to be one. */
async function readPipe(options: AgentCommand): Promise<string> {
  const what = options.nodeKeyStdin === true ? "the node's key (--node-key-stdin)" : "the pairing code";
  if (process.stdin.isTTY)
    throw new Failure(
      "secret_missing",
      `${what} is read from a pipe, and standard input is a terminal: pipe it in, or use the environment`,
    );
  let text = "";
  for await (const piece of process.stdin) {
    text += String(piece);
    if (text.length > 4096)
      throw new Failure("secret_missing", `standard input holds more than a key: ${what} is one line`);
  }
  const line = text.trim();
  if (line === "") throw new Failure("secret_missing", `standard input is an empty pipe: ${what} was expected there`);
  return line;
}

/** Which controller, which node: from the file of an earlier pairing, or by pairing now. */
async function settle(options: AgentCommand, root: string, code: string | undefined): Promise<AgentConfig> {
  const { join } = options;
  if (join !== undefined && !isHttpUrl(join)) {
    throw new Failure("usage", `--join takes an address such as http://10.0.0.5:7440, not ${join}`);
  }
  const known = loadAgentConfig(root);
  if (known !== undefined && (code === undefined || (await isStillPaired(root, join ?? known.controllerUrl)))) {
    if (join === undefined || join === known.controllerUrl) return known;
    const moved = { ...known, controllerUrl: join };
    writePrivateFile(agentConfigFile(root), encodeAgentConfig(moved));
    return moved;
  }
  if (join === undefined)
    throw new Failure(
      "not_paired",
      `this machine is not paired yet (${nodeDirectory(root)}): make a code with holdfast node pair NAME, then run holdfast agent --join URL`,
    );
  if (code === undefined)
    throw new Failure(
      "secret_missing",
      "a machine that is not paired needs a pairing code: give it by HOLDFAST_PAIRING_CODE or standard input",
    );
  return pair({ client: createClient({ baseUrl: join }), code, root, random: systemRandom });
}

function findCredential(root: string, fromEnv: string | undefined, piped: string | undefined): string {
  if (piped !== undefined) return parseCredential(piped, "standard input");
  if (fromEnv !== undefined) return parseCredential(fromEnv, "HOLDFAST_NODE_KEY");
  const stored = loadCredential(root);
  if (stored !== undefined) return stored;
  throw new Failure(
    "secret_missing",
    `there is no credential in ${nodeDirectory(root)}: give it by HOLDFAST_NODE_KEY or --node-key-stdin, or pair again`,
  );
}

function lockRoot(root: string): () => void {
  const lock = takeLock(agentLockFile(root), String(process.pid));
  if (lock.kind === "taken") return lock.release;
  throw new Failure("root_in_use", `another agent runs on ${root}${lock.holder === "" ? "" : `: pid ${lock.holder}`}`);
}

/** The stop file and the lifeline, each as a signal. */
function stopSignals(options: AgentCommand, root: string, stack: AsyncDisposableStack, log: Log): AbortSignal[] {
  const stop = new AbortController();
  const file = options.stopFile ?? path.join(nodeDirectory(root), "stop");
  const timer = setInterval(() => {
    if (!fs.existsSync(file)) return;
    log.info({ file }, "the stop file is there");
    fs.rmSync(file, { force: true });
    stop.abort();
  }, STOP_FILE_LOOK_MS);
  stack.defer(() => clearInterval(timer));
  if (options.lifeline === true) {
    process.stdin.resume();
    process.stdin.once("end", () => stop.abort());
    process.stdin.once("error", () => stop.abort());
    stack.defer(() => void process.stdin.destroy());
  }
  return [stop.signal];
}
