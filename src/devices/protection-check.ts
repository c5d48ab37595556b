// SPDX-License-Identifier: Apache-2.0
// Proves a protection: that its files are there, that something watches, and that the nodes really open for the declared
// accounts and for nobody else, by opening them as each of these accounts. Rule: root proves nothing, and what cannot be
// tested is a fault, never left out.

import path from "node:path";
import { isRefused, openNodes, type Opener } from "./access.ts";
import { type Account, type Facts, membersOf, nodesOf, readFileOrUndefined, rightsOf } from "./protection-facts.ts";
import { NODE_MODE, type Protection } from "./protection.ts";
import { BOOT_UNIT, protectionFiles, unitsFor } from "./protection-text.ts";
import { runTool } from "./tool.ts";

/** One line for people: what was looked at, and what to do when it is not right. */
export type Finding = {
  readonly name: string;
  readonly state: "ok" | "warning" | "fault";
  readonly text: string;
  readonly advice: string;
};

const ok = (name: string, text: string): Finding => ({ name, state: "ok", text, advice: "" });
const fault = (name: string, text: string, advice: string): Finding => ({ name, state: "fault", text, advice });

const AGAIN = "Run: holdfast devices protect";

export type CheckOptions = {
  readonly facts: Facts;
  readonly opener: Opener;
  /** Instead of the declared ones. */
  readonly accounts?: readonly string[];
  /** Instead of nobody and the controller's account. */
  readonly denied?: readonly string[];
};

export async function checkProtection(options: CheckOptions): Promise<readonly Finding[]> {
  const { facts, opener } = options;
  const { state } = facts;
  if (facts.devices.length === 0)
    return [fault("devices", "the kernel shows no GPU with a driver", "Look at: holdfast devices status")];
  if (state === undefined) return [fault("protection", "this machine's devices are not protected", AGAIN)];
  if ("unreadable" in state)
    return [
      fault("protection", `what was declared cannot be read: ${state.unreadable}`, "Run: holdfast devices unprotect"),
    ];
  const accounts = options.accounts ?? state.accounts;
  const controller = await controllerUnit();
  const denied = options.denied ?? [
    ...new Set(["nobody", ...(controller === undefined || controller.isDenied ? [] : [controller.account])]),
  ];
  return [
    ...checkWhole(state),
    ...checkFiles(state, facts),
    ...(await checkUnits(state, facts)),
    ...checkNodes(state, facts),
    ...checkGroup(state, facts),
    ...(await Promise.all(accounts.map((name) => checkAllowed(name, { state, facts, opener })))).flat(),
    ...(await Promise.all(denied.map((name) => checkDenied(name, { state, facts, opener })))),
    ...(controller?.isDenied === true
      ? [ok("controller", `${CONTROLLER_UNIT} gets no devices (PrivateDevices=yes)`)]
      : []),
    ...checkModprobe(state, facts),
  ];
}

function checkWhole(state: Protection): readonly Finding[] {
  if (state.isComplete) return [ok("protection", `for ${state.accounts.join(", ")} by the group ${state.group}`)];
  return [
    fault(
      "protection",
      "it was cut off before its end",
      `${AGAIN}, which completes it, or: holdfast devices unprotect`,
    ),
  ];
}

/** Each is exactly what would be written now, so that a card that came later is noticed. */
function checkFiles(state: Protection, facts: Facts): readonly Finding[] {
  const gid = facts.groups.find(({ name }) => name === state.group)?.gid;
  const files = protectionFiles({ ...state, devices: facts.devices }, gid);
  const wrong = files.flatMap(({ path: file, text, mode }) => {
    const found = readFileOrUndefined(file);
    if (found === undefined) return [fault("files", `${file} is missing`, AGAIN)];
    if (found !== text) return [fault("files", `${file} is not what this machine's devices need`, AGAIN)];
    return rightsOf(file)?.mode === mode
      ? []
      : [fault("files", `${file} has another mode than ${mode.toString(8)}`, AGAIN)];
  });
  return wrong.length > 0 ? wrong : [ok("files", `${files.length} files are as written`)];
}

async function checkUnits({ devices }: Protection, { hasSystemd }: Facts): Promise<readonly Finding[]> {
  const units = unitsFor(devices);
  if (units.length === 0) return [];
  if (!hasSystemd)
    return [fault("watch", "systemd does not run here, so nothing heals a changed mode", "Run it under systemd.")];
  const found = await Promise.all(
    units.map(async (unit): Promise<readonly Finding[]> => {
      const enabled = await systemctl("is-enabled", unit);
      if (enabled !== "enabled") return [fault("watch", `${unit} is ${enabled}`, AGAIN)];
      // The one of the boot has run and ended.
      const active = unit === BOOT_UNIT ? "active" : await systemctl("is-active", unit);
      return active === "active" ? [] : [fault("watch", `${unit} is ${active}`, AGAIN)];
    }),
  );
  const wrong = found.flat();
  return wrong.length > 0 ? wrong : [ok("watch", "changed rights are set back, from the start of the machine")];
}

/** It ends with a status above zero for every answer but the good one, and prints it anyway. */
async function systemctl(verb: string, unit: string): Promise<string> {
  const run = await runTool("systemctl", [verb, unit]);
  if (run.kind === "answered") return run.output.trim();
  return run.kind === "failed" ? run.message : run.kind;
}

function checkNodes(state: Protection, { devices, groups }: Facts): readonly Finding[] {
  const gid = groups.find(({ name }) => name === state.group)?.gid;
  const needed = new Set(devices.flatMap(({ nodes }) => nodes));
  const wrong = nodesOf(devices).flatMap((node) => {
    const file = `/dev/${node}`;
    const rights = rightsOf(file);
    if (rights === undefined) return needed.has(node) ? [fault("nodes", `${file} does not exist`, AGAIN)] : [];
    if (rights.mode === NODE_MODE && rights.uid === 0 && rights.gid === gid) return [];
    const shown = `${file} is ${rights.mode.toString(8)} ${rights.uid}:${rights.gid}`;
    return [fault("nodes", `${shown}, not 660 0:${gid ?? "?"}`, AGAIN)];
  });
  return wrong.length > 0 ? wrong : [ok("nodes", `${needed.size} nodes are 660 root:${state.group}`)];
}

function checkGroup(state: Protection, facts: Facts): readonly Finding[] {
  const group = facts.groups.find(({ name }) => name === state.group);
  if (group === undefined) return [fault("group", `the group ${state.group} does not exist`, AGAIN)];
  const strangers = membersOf(group, facts.accounts).filter(
    (name) => !state.accounts.includes(name) && name !== "root",
  );
  return strangers.map((name) =>
    fault(
      "group",
      `${name} is in ${state.group} and was not declared`,
      `Run: gpasswd -d ${name} ${state.group}, or declare it`,
    ),
  );
}

type Tested = { readonly state: Protection; readonly facts: Facts; readonly opener: Opener };

async function checkAllowed(name: string, tested: Tested): Promise<readonly Finding[]> {
  const label = `account ${name}`;
  const account = tested.facts.accounts.find((one) => one.name === name);
  if (account === undefined) return [fault(label, "there is no such account", "Declare another one.")];
  const opened = await openAll(account, tested);
  if ("failed" in opened) return [fault(label, opened.failed, "Look at dmesg.")];
  const shut = [...opened].filter(([, errno]) => errno !== "");
  if (shut.length > 0) {
    const text = shut.map(([node, errno]) => `${node} (${errno})`).join(", ");
    return [
      fault(
        label,
        `may not open ${text}`,
        isRefused(shut[0]?.[1] ?? "") ? AGAIN : "Its driver refuses: look at dmesg.",
      ),
    ];
  }
  return [ok(label, `opens ${opened.size} nodes`), ...(await checkGroupsOf(account, tested))];
}

/** Of the agent alone: other declared accounts are not ours to judge. */
async function checkGroupsOf(account: Account, { state, facts }: Tested): Promise<readonly Finding[]> {
  if (account.name !== state.accounts[0]) return [];
  const run = await runTool("id", ["-G", account.name]);
  const groups = run.kind === "answered" ? run.output.trim().split(/\s+/).map(Number) : [];
  const gid = facts.groups.find(({ name }) => name === state.group)?.gid;
  const more = groups.filter((group) => group !== gid && group !== account.gid);
  const names = more.map((group) => facts.groups.find((one) => one.gid === group)?.name ?? String(group));
  if (names.length === 0) return [ok(`account ${account.name}`, `has no other group than ${state.group}`)];
  const takeOut = names.map((group) => `gpasswd -d ${account.name} ${group}`).join("; ");
  return [
    fault(`account ${account.name}`, `is in ${names.join(", ")} as well, which it does not need`, `Run: ${takeOut}`),
  ];
}

async function checkDenied(name: string, tested: Tested): Promise<Finding> {
  const label = `denied ${name}`;
  const account = tested.facts.accounts.find((one) => one.name === name);
  if (account === undefined)
    return fault(label, "there is no such account, so nothing is proved", "Name one that exists.");
  if (tested.state.accounts.includes(name))
    return fault(
      label,
      "is declared: it cannot be refused",
      "Give what must be refused an account of its own, or a unit with PrivateDevices=yes.",
    );
  const opened = await openAll(account, tested);
  if ("failed" in opened) return fault(label, opened.failed, "Look at dmesg.");
  const reached = [...opened].filter(([, errno]) => !isRefused(errno));
  if (reached.length > 0) return fault(label, `gets to ${reached.map(([node]) => node).join(", ")}`, AGAIN);
  return ok(label, `is refused at ${opened.size} nodes`);
}

async function openAll(account: Account, { facts, opener }: Tested): ReturnType<typeof openNodes> {
  const nodes = nodesOf(facts.devices)
    .map((node) => path.join("/dev", node))
    .filter((node) => rightsOf(node) !== undefined);
  if (nodes.length === 0) return { failed: "none of the nodes exists" };
  return openNodes(opener, nodes, { as: account });
}

const CONTROLLER_UNIT = "holdfast-controller.service";

/** The controller of this machine, if it has one. */
async function controllerUnit(): Promise<{ readonly account: string; readonly isDenied: boolean } | undefined> {
  const parameters = ["show", "-p", "LoadState", "-p", "User", "-p", "PrivateDevices", CONTROLLER_UNIT];
  const run = await runTool("systemctl", parameters);
  if (run.kind !== "answered" || !/^LoadState=loaded$/m.test(run.output)) return undefined;
  const account = /^User=(\S+)$/m.exec(run.output)?.[1];
  return account === undefined ? undefined : { account, isDenied: /^PrivateDevices=yes$/m.test(run.output) };
}

function checkModprobe({ isModprobeLocked }: Protection, { modprobe }: Facts): readonly Finding[] {
  if (modprobe === undefined || (modprobe.mode & 0o4001) !== 0o4001) return [];
  const text = `everybody may run ${modprobe.path}, which opens the nodes to all until they are healed`;
  const advice = "Run: holdfast devices protect --lock-modprobe";
  return [{ name: "nvidia-modprobe", state: isModprobeLocked ? "fault" : "warning", text, advice }];
}
