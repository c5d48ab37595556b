// SPDX-License-Identifier: Apache-2.0
// A fleet for one run of the demonstration: a real controller over TLS with its own PostgreSQL, and nodes that are enrolled
// with codes and run from the very bundle that a controller hands out, as root each under an account of its own.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import tls from "node:tls";
import { fileURLToPath } from "node:url";
import { readContext } from "../src/cli/context-file.ts";
import { type Client, createClient } from "../src/client/client.ts";
import { freePort } from "../tests/kit/stub-model.ts";
import { until } from "../tests/kit/until.ts";

const checkout = fileURLToPath(new URL("..", import.meta.url));
/** Scaled down: a lease that nobody renews returns after four seconds. */
const TIMES = {
  HOLDFAST_LEASE_MS: "4000",
  HOLDFAST_START_WITHIN_MS: "2000",
  HOLDFAST_HEARTBEAT_MS: "500",
  HOLDFAST_RENEW_MS: "500",
  HOLDFAST_SWEEP_MS: "200",
};

export type DemoNode = {
  readonly name: string;
  readonly nodeId: string;
  readonly root: string;
  readonly account: Account;
};

export type Account = { readonly name: string; readonly uid: number; readonly gid: number };

export class DemoWorld {
  readonly suffix: string;
  readonly directory: string;
  readonly secrets = new Map<string, string>();
  readonly #children = new Set<ChildProcess>();
  readonly #accounts: string[] = [];
  #admin: Client | undefined;
  #url = "";

  private constructor(suffix: string) {
    this.suffix = suffix;
    this.directory = fs.mkdtempSync(path.join(os.tmpdir(), `holdfast-demo-${suffix}-`));
    fs.chmodSync(this.directory, 0o755);
  }

  static async start(suffix: string): Promise<DemoWorld> {
    const world = new DemoWorld(suffix);
    try {
      world.#unpack();
      await world.#startController();
      return world;
    } catch (error) {
      await world.end();
      throw error;
    }
  }

  get admin(): Client {
    if (this.#admin === undefined) throw new Error("the controller has not started");
    return this.#admin;
  }

  get url(): string {
    return this.#url;
  }

  get runtime(): string {
    return path.join(this.directory, "node");
  }

  get program(): string {
    return path.join(this.directory, "holdfast/src/bin/holdfast.js");
  }

  /** What a node is given: outside of the checkout, which other accounts may not be able to read. */
  #unpack(): void {
    run("tar", ["-xzf", path.join(checkout, `dist/agent-linux-${process.arch}.tar.gz`), "-C", this.directory]);
    fs.copyFileSync(process.execPath, this.runtime, fs.constants.COPYFILE_FICLONE);
    fs.chmodSync(this.runtime, 0o755);
  }

  async #startController(): Promise<void> {
    const port = await freePort();
    const contextFile = path.join(this.directory, "contexts.json");
    const program = [process.execPath, path.join(checkout, "src/bin/holdfast.js"), "controller", "--embedded"];
    const root = path.join(this.directory, "controller");
    this.spawn("controller", {
      argv: [...program, "--root", root, "--listen", `127.0.0.1:${port}`, "--tls", "fleet"],
      env: { HOLDFAST_CONTEXT_FILE: contextFile, ...TIMES },
    });
    const context = await until(
      `the controller listens (${this.logOf("controller")})`,
      () => readContext(contextFile, "local"),
      {
        withinMs: 60_000,
      },
    );
    if (context.ca !== undefined) tls.setDefaultCACertificates([context.ca]);
    this.secrets.set("the admin's token", context.token);
    this.#url = context.url;
    this.#admin = createClient({ baseUrl: context.url, credential: context.token });
  }

  logOf(name: string): string {
    return path.join(this.directory, `${name}.log`);
  }

  /** A program of this run: its output goes to NAME.log, and it is ended with the run. */
  spawn(
    name: string,
    options: { readonly argv: readonly string[]; readonly env?: Record<string, string>; readonly account?: Account },
  ): ChildProcess {
    const log = fs.openSync(this.logOf(name), "a", 0o600);
    const [command = "", ...rest] = options.argv;
    const child = spawn(command, rest, {
      stdio: ["ignore", log, log],
      env: { PATH: "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", DEMO_RUN: this.suffix, ...options.env },
      ...(options.account === undefined ? {} : { uid: options.account.uid, gid: options.account.gid }),
    });
    fs.closeSync(log);
    this.#children.add(child);
    child.once("exit", () => this.#children.delete(child));
    return child;
  }

  /** As root an account of its own, made for this run; else the one that runs the demonstration. */
  #account(name: string): Account {
    const own = os.userInfo();
    if (own.uid !== 0) return { name: own.username, uid: own.uid, gid: own.gid };
    const account = `hfd-${this.suffix}-${name}`.slice(0, 31);
    run("useradd", ["--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", account]);
    this.#accounts.push(account);
    const id = (flag: string): number => Number(run("id", [flag, account]).trim());
    return { name: account, uid: id("-u"), gid: id("-g") };
  }

  /** Enrolled with a code through the bundle's own program; not started: it is not online yet. */
  async enrol(short: string): Promise<DemoNode> {
    const name = `${short}-${this.suffix}`;
    const { code } = await this.admin.call("pairingCreate", { body: { name } });
    this.secrets.set(`the pairing code of ${name}`, code);
    const account = this.#account(short);
    const root = path.join(this.directory, name);
    fs.mkdirSync(path.join(root, "node"), { recursive: true });
    fs.chmodSync(path.join(root, "node"), 0o700);
    fs.copyFileSync(
      path.join(this.directory, "controller/controller/authority.pem"),
      path.join(root, "node/trust.pem"),
    );
    // Of that file only the certificate: the key is the controller's.
    const pem = fs.readFileSync(path.join(root, "node/trust.pem"), "utf8");
    fs.writeFileSync(path.join(root, "node/trust.pem"), pem.slice(pem.indexOf("-----BEGIN CERTIFICATE-----")), {
      mode: 0o600,
    });
    fs.chmodSync(path.join(root, "node/trust.pem"), 0o600);
    for (const place of [root, path.join(root, "node"), path.join(root, "node/trust.pem")])
      fs.chownSync(place, account.uid, account.gid);
    const argv = [this.program, "enrol", "--root", root, "--join", this.url];
    const { status, stderr } = spawnSync(this.runtime, argv, {
      input: `${code}\n`,
      encoding: "utf8",
      uid: account.uid,
      gid: account.gid,
      env: { PATH: "/usr/bin:/bin", DEMO_RUN: this.suffix },
    });
    if (status !== 0) throw new Error(`${name} could not be enrolled: ${stderr}`);
    this.secrets.set(`the credential of ${name}`, fs.readFileSync(path.join(root, "node/credential"), "utf8").trim());
    const { items } = await this.admin.call("nodeList", {});
    const nodeId = items.find((node) => node.name === name)?.id ?? "";
    return { name, nodeId, root, account };
  }

  agent(node: DemoNode, ...more: readonly string[]): ChildProcess {
    const argv = [this.runtime, this.program, "agent", "--root", node.root, "--slots", "4", ...more];
    return this.spawn(node.name, { argv, account: node.account });
  }

  async online(node: DemoNode): Promise<void> {
    const look = async () => (await this.admin.call("nodeShow", { params: { nodeId: node.nodeId } })).online;
    await until(`${node.name} is online (${this.logOf(node.name)})`, look, { withinMs: 30_000 });
  }

  /** What of this run is alive: by the mark in its environment, or by a place of this run in its arguments. */
  alive(): readonly string[] {
    return fs.readdirSync("/proc").flatMap((pid) => {
      if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return [];
      const read = (file: string): string => {
        try {
          return fs.readFileSync(`/proc/${pid}/${file}`, "latin1");
        } catch {
          return "";
        }
      };
      const command = read("cmdline").replaceAll("\0", " ").trim();
      const isOurs = read("environ").includes(`DEMO_RUN=${this.suffix}\0`) || command.includes(this.directory);
      return isOurs ? [`${pid} ${command}`] : [];
    });
  }

  /** Stops everything in order and takes away what was made; returns what was still alive. */
  async end(): Promise<readonly string[]> {
    for (const child of this.#children) child.kill("SIGTERM");
    const gone = () => this.#children.size === 0;
    await until("the programs of this run end", gone, { withinMs: 30_000 }).catch(() => {
      for (const child of this.#children) child.kill("SIGKILL");
    });
    // The last shim ends a moment after its agent told of it.
    await until("nothing is left", () => this.alive().length === 0, { withinMs: 10_000 }).catch(() => undefined);
    const left = this.alive();
    for (const account of this.#accounts) spawnSync("userdel", [account]);
    fs.rmSync(this.directory, { recursive: true, force: true });
    return left;
  }
}

function run(command: string, argv: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, argv, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${argv.join(" ")}: ${stderr}`);
  return stdout;
}
