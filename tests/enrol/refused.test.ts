// SPDX-License-Identifier: Apache-2.0
// The bootstrap refuses: within seconds, with the cause in words, at the machine and where the controller can be told there, too;
// and the machine is as it was before.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { after, test } from "node:test";
import type { PairingCode } from "../../src/protocol/enrol-schema.ts";
import { cleanupOf, type Ending } from "../kit/cleanup.ts";
import { newNodeKey, pairWith } from "../kit/node-double.ts";
import { until } from "../kit/until.ts";
import { wrongClock } from "../kit/wrong-clock.ts";
import { createHome, type Home, type RunOptions, runCommand } from "./home.ts";
import { hostilePath, whereIs } from "./hostile-path.ts";
import { compile, createFleet, lightFiles, scratch } from "./kit.ts";

const file = { after };
const whole = await createFleet(file);
/** Most of it ends before the agent is run, and needs no real one. */
const fleet = await whole.beside(file, lightFiles(file));
const script = await (await fetch(`${fleet.url}/v1/bootstrap.sh`)).text();

/** Runs it, and holds that it fails with these words and leaves nothing behind. */
async function refuses(t: Ending, pairing: PairingCode, words: RegExp, options: RunOptions = {}): Promise<Home> {
  const home = createHome(t);
  const ran = await home.run(pairing, options);
  assert.equal(ran.code, 1, ran.all);
  assert.match(ran.stderr, words);
  assert.deepEqual([...home.look().keys()], [], "nothing is left");
  return home;
}

/** PATH with these programs before the machine's. */
function withTools(t: Ending, extra: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const directory = scratch(t);
  for (const [name, text] of Object.entries(extra))
    fs.writeFileSync(path.join(directory, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return { PATH: `${directory}:/usr/sbin:/usr/bin:/sbin:/bin` };
}

test("the whole script passes shellcheck and is plain ASCII: some shells read nothing else in every locale", () => {
  assert.doesNotMatch(script, /[^\x20-\x7e\n]/);
  const { status, stdout } = spawnSync("shellcheck", ["-"], { input: script, encoding: "utf8" });
  assert.equal(status, 0, stdout);
});

test("D5: cut off at every 97th byte and at each of the last, it does nothing; whole, it does something", (t) => {
  const directory = scratch(t);
  fs.writeFileSync(path.join(directory, "script"), script);
  const tools = path.join(directory, "bin");
  fs.mkdirSync(tools);
  const noting = `#!/bin/sh\necho "$0 $*" >>${directory}/did\n`;
  for (const name of ["curl", "id", "mkdir", "uname", "rm", "cat", "sed", "grep"])
    fs.writeFileSync(path.join(tools, name), noting, { mode: 0o755 });
  const length = Buffer.byteLength(script);
  const cuts = [...Array(Math.ceil(length / 97)).keys()].map((index) => index * 97);
  cuts.push(...Array.from({ length: 40 }, (_, index) => length - 2 - index));
  const loop = `while read -r cut; do head -c "$cut" script | PATH=${tools} ${whereIs("dash")} -s -- --controller http://localhost --uninstall --yes; done`;
  spawnSync("sh", ["-c", loop], { cwd: directory, input: cuts.join("\n"), stdio: ["pipe", "ignore", "ignore"] });
  assert.equal(fs.existsSync(path.join(directory, "did")), false, "a part of it started something");
  spawnSync(whereIs("dash") ?? "", ["-s", "--", "--controller", "http://localhost"], {
    input: script,
    env: { PATH: tools, HOME: directory },
  });
  assert.ok(fs.existsSync(path.join(directory, "did")), "this check can fail");
});

const answers = {
  "a login page with 200": ["200 OK", "<!DOCTYPE html>\n<html><body>Sign in to the network</body></html>\n"],
  "a way to a portal with 302": ["302 Found", ""],
  "an error in JSON": [
    "404 Not Found",
    '{"code":"not_found","message":"there is no GET /v1/health here","requestId":"x"}',
  ],
} as const;

for (const [what, [status, body]] of Object.entries(answers)) {
  test(`D6: ${what} instead of the controller is not taken for one, and the code is not sent there`, async (t) => {
    const heard: string[] = [];
    const portal = await listen(t, (socket) =>
      socket.on("data", (piece) => {
        heard.push(String(piece));
        socket.end(
          `HTTP/1.1 ${status}\r\nlocation: http://portal.test/\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
        );
      }),
    );
    const pairing = await fleet.pair("anna");
    const home = createHome(t);
    const piped = await home.command(`curl -fsS ${portal}/v1/bootstrap.sh | sh -s -- --controller ${portal}`, {
      HOLDFAST_PAIRING_CODE: pairing.code,
    });
    assert.doesNotMatch(piped.stdout, /==>/);
    const script = await home.command(`curl -fsSk ${fleet.url}/v1/bootstrap.sh | sh -s -- --controller ${portal}`, {
      HOLDFAST_PAIRING_CODE: pairing.code,
    });
    assert.equal(script.code, 1);
    assert.match(
      script.stderr,
      /answered \d+, not as a Holdfast controller does: is there a proxy or a login page in between\?/,
    );
    assert.deepEqual([...home.look().keys()], []);
    assert.ok(heard.length >= 2 && !heard.join().includes(pairing.code));
  });
}

test("D11, D12: a runtime that cannot run here is named before anything is changed: its kind, glibc, musl, noexec", async (t) => {
  const directory = scratch(t);
  const at = (name: string): string => path.join(directory, name);
  const other = fs.readFileSync(fleet.files.runtime);
  other[18] = process.arch === "arm64" ? 0x3e : 0xb7;
  fs.writeFileSync(at("other"), other);
  const message = "/lib/libc.so.6: version `GLIBC_2.28' not found (required by node)";
  const kinds: readonly (readonly [string, RegExp])[] = [
    [at("other"), /the runtime of this controller is for \w+, and this machine is \w+/],
    [
      compile(at("old"), `fputs("${message}\\n", stderr); return 1;`),
      /too old, the runtime needs glibc 2\.28: .*GLIBC_2\.28/,
    ],
    [
      compile(at("unlinked"), "return 0;", ["-Wl,--dynamic-linker=/lib/none.so"]),
      /the runtime does not run here: .*not found/,
    ],
    [
      compile(at("denied"), `fputs("node: Permission denied\\n", stderr); return 126;`),
      /may not execute programs \(noexec\): export XDG_DATA_HOME/,
    ],
  ];
  for (const [runtime, words] of kinds) {
    await using ending = new AsyncDisposableStack();
    const beside = await fleet.beside(endingOf(ending), { ...fleet.files, runtime });
    const pairing = await beside.pair("anna");
    await refuses(t, pairing, words);
    const shown = await fleet.admin.call("pairingShow", { params: { pairingId: pairing.id } });
    assert.equal(shown.phases.at(-1)?.outcome, "failed");
    assert.match(shown.phases.at(-1)?.detail ?? "", words, "people see it at the controller");
  }
});

test("a file that was changed on the way, or in the controller's directory, is not unpacked and not run", async (t) => {
  for (const kind of ["agent", "runtime"] as const) {
    await using ending = new AsyncDisposableStack();
    const files = lightFiles(endingOf(ending));
    const beside = await fleet.beside(endingOf(ending), files);
    const pairing = await beside.pair("changed");
    fs.appendFileSync(files[kind], "\n");
    await refuses(t, pairing, new RegExp(`${kind}: what was fetched is not what this script names`));
  }
});

test("D17: without a tool for SHA-256 nothing is fetched, and every tool that is missing is named", async (t) => {
  const pairing = await fleet.pair("anna");
  const directory = scratch(t);
  const none = hostilePath(path.join(directory, "a"), { without: ["sha256sum"] });
  const shell = (tools: string) => `env PATH=${tools} ${whereIs("dash")}`;
  await refuses(t, pairing, /none of sha256sum, shasum, openssl is here: .* nothing is fetched/, {
    shell: shell(none),
  });
  const fewer = hostilePath(path.join(directory, "b"), { without: ["tar", "gzip", "awk"] });
  await refuses(t, pairing, /needed, and not here: awk gzip tar/, { shell: shell(fewer) });
});

test("D19, D20, D21: a name that another machine took meanwhile: what to do is said, without a terminal, and nothing stays", async (t) => {
  const pairing = await whole.pair("taken");
  const rival = await whole.pair("taken");
  await pairWith(fleet.url, rival.code, newNodeKey());
  await refuses(t, pairing, /a node named taken exists \(never seen\).*holdfast node pair taken --take-over/);
});

test("D26: a code that is unknown, used by another machine, or expired is told as that", async (t) => {
  const pairing = await fleet.pair("coded");
  await refuses(t, { ...pairing, code: `hfp_${"a".repeat(43)}` }, /pairing_code_unknown: no such pairing code/);
  await refuses(t, { ...pairing, code: "it's not" }, /holds a character that no pairing code has/);
  await refuses(t, pairing, /there is no pairing code: export HOLDFAST_PAIRING_CODE first/, { withCode: false });
  await pairWith(fleet.url, pairing.code, newNodeKey());
  await refuses(
    t,
    { ...pairing, commands: (await whole.pair("any")).commands },
    /this pairing code has enrolled a machine already/,
  );
  const old = await fleet.pair("late");
  await fleet.sql("update app.pairing_code set expires_at = now() - interval '1 second' where id = $1", [old.id]);
  await refuses(t, old, /pairing_code_expired: /);
});

test("D26: another server behind the address, another authority, a dead port and a server that never answers", async (t) => {
  const pairing = await fleet.pair("reached");
  const run = pairing.commands?.run ?? "";
  const other = `sha256//${Buffer.alloc(32).toString("base64")}`;
  const told = (change: (text: string) => string): PairingCode => ({
    ...pairing,
    commands: { run: change(run), read: [], scriptSha256: "" },
  });
  const inScript = (from: RegExp, to: string) =>
    told((text) => text.replace(new RegExp(`(sh -s .*)${from.source}`), `$1${to}`));
  const pinned = await runCommand(["curl", "-fsS", "-k", "--pinnedpubkey", other, `${fleet.url}/v1/bootstrap.sh`], {});
  assert.notEqual(pinned.code, 0);
  assert.equal(pinned.stdout, "");
  await refuses(
    t,
    inScript(/--pin '[^']+'/, `--pin '${other}'`),
    /another server answers at .*: its key is not the one in the command/,
  );
  await refuses(
    t,
    inScript(/--authority \S+/, `--authority ${"0".repeat(64)}`),
    /the authority of .* is not the one in the command/,
  );
  await refuses(
    t,
    inScript(/--controller \S+/, "--controller https://127.0.0.1:9"),
    /controller_unreachable: https:\/\/127\.0\.0\.1:9: curl: \(7\)/,
  );
  const silent = await listen(t, () => {});
  const plain = told((text) => text.replace(/--controller .*/, `--controller ${silent}`));
  await refuses(t, plain, /controller_unreachable: .*curl: \(28\)/);
});

test("D26: a clock that is off is named as that, and the code can still be used", async (t) => {
  const pairing = await whole.pair("clocked");
  const clock = Object.entries(wrongClock("+20y")).map(([name, text]) => `'${name}=${text}'`);
  await refuses(
    t,
    pairing,
    /clock_off: .* is the clock of this machine right\?|the clock of this machine says 20\d\d/,
    {
      shell: `env ${clock.join(" ")} sh`,
    },
  );
  const shown = await fleet.admin.call("pairingShow", { params: { pairingId: pairing.id } });
  assert.equal(shown.state, "waiting");
});

test("D30: options that contradict each other are refused before anything is done", async (t) => {
  const home = createHome(t);
  const contradictions: readonly (readonly [string, RegExp])[] = [
    ["--purge", /--purge goes with --uninstall/],
    ["--foreground --no-start", /exclude each other/],
    ["--uninstall --foreground", /--uninstall starts nothing/],
    ["--uninstall --no-start", /--uninstall starts nothing/],
    ["--pin sha256//x --controller http://box", /go with an https address/],
    ["--pin md5 --controller https://box", /--pin begins with sha256/],
    ["--controller ftp://box", /takes an http or https address/],
    ["--controller 'http://box;id'", /holds a character that no address has/],
    ["--controller", /--controller needs a value/],
    ["--sudo", /--sudo is no option; see --help/],
  ];
  for (const [args, words] of contradictions) {
    const { code, stderr } = await home.command(`curl -fsSk ${fleet.url}/v1/bootstrap.sh | sh -s -- ${args}`);
    assert.equal(code, 1, args);
    assert.match(stderr, words);
  }
  assert.deepEqual([...home.look().keys()], []);
});

const faults = {
  "the controller dies while it sends": {
    curl: 'case "$*" in */v1/node/runtime*) exit 7;; esac; exec /usr/bin/curl "$@"',
  },
  "the disk is full while the agent is unpacked": { tar: "cat >/dev/null; exit 1" },
  "a file cannot be put in its place": { mv: 'case "$*" in *agent.env*) exit 1;; esac; exec /bin/mv "$@"' },
  "somebody presses Ctrl-C": { gzip: "kill -INT 0; exit 1" },
  "it is told to end": { cp: 'case "$*" in *agent.env*) kill -TERM 0;; esac; exec /bin/cp "$@"' },
};

for (const [what, tools] of Object.entries(faults)) {
  test(`a run that fails undoes itself: ${what}`, async (t) => {
    const pairing = await fleet.pair("failing");
    const home = createHome(t);
    const ran = await home.run(pairing, { env: withTools(t, tools) });
    assert.notEqual(ran.code, 0, ran.all);
    await until("nothing is left", () => home.look().size === 0);
    const shown = await fleet.admin.call("pairingShow", { params: { pairingId: pairing.id } });
    assert.equal(shown.state, "waiting");
    await until("people see that it failed", async () =>
      (await fleet.admin.call("pairingShow", { params: { pairingId: pairing.id } })).phases.some(
        ({ outcome }) => outcome === "failed",
      ),
    );
  });
}

test("two of them at once: the second one says so and leaves the first one alone", async (t) => {
  const home = createHome(t);
  const gate = path.join(home.directory, "gate");
  const waiting = `case "$*" in */v1/node/agent*) echo >${gate}.here; until [ -e ${gate} ]; do sleep 0.05; done; exit 7;; esac; exec /usr/bin/curl "$@"`;
  const first = home.run(await fleet.pair("first"), { env: withTools(t, { curl: waiting }) });
  await until("the first one fetches", () => fs.existsSync(`${gate}.here`));
  const second = await home.run(await fleet.pair("second"));
  assert.match(second.stderr, /another bootstrap runs on this machine \(pid \d+/);
  assert.ok(fs.existsSync(path.join(home.prefix, ".lock")), "the lock of the first one stays");
  fs.writeFileSync(gate, "");
  assert.equal((await first).code, 1);
  // What a killed one leaves is no lock.
  fs.mkdirSync(home.prefix, { recursive: true });
  fs.writeFileSync(path.join(home.prefix, ".lock"), `${deadPid()}\n`);
  execFileSync("chown", ["-R", "--reference", home.directory, home.prefix]);
  const third = await home.run(await fleet.pair("third"), { env: withTools(t, { tar: "exit 1" }) });
  assert.match(third.stderr, /the agent cannot be unpacked/);
});

test("--dry-run says what would be done and changes nothing, here or at the controller", async (t) => {
  const home = createHome(t);
  const pairing = await fleet.pair("dry");
  const ran = await home.run(pairing, { args: ["--dry-run"] });
  assert.equal(ran.code, 0, ran.all);
  assert.match(ran.stdout, /program {3}.*holdfast-agent[\s\S]*Nothing was changed\./);
  assert.deepEqual([...home.look().keys()], []);
  const shown = await fleet.admin.call("pairingShow", { params: { pairingId: pairing.id } });
  assert.deepEqual(shown.phases, []);
});

/** A TCP server of this machine that does as it is told; its address. */
async function listen(t: Ending, serve: (socket: net.Socket) => void): Promise<string> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanupOf(t).defer(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`;
}

const endingOf = (stack: AsyncDisposableStack): Ending => ({ after: (clean) => stack.defer(clean) });

/** Of a process that has ended. */
const deadPid = (): number => spawnSync("true").pid;
