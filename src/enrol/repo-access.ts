// SPDX-License-Identifier: Apache-2.0
// Which repository this node may read, and the files that its access is made of: all below <root>/node/repo, none of them the
// account's own. Rule: what goes into an ssh configuration or a command is checked first, every fault at once.

import fs from "node:fs";
import path from "node:path";
import { codeOf, Failure, type Fault, messageOf } from "../std/errors.ts";
import { nodeDirectory } from "./node-key.ts";
import { writePrivateFile } from "./private-file.ts";

export type RepoAccess = {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  /** As the server knows it: group/name.git, or an absolute path. */
  readonly path: string;
};

/** What ssh and git call the server; only our own configuration knows it. */
export const REPO_ALIAS = "holdfast-repo";

export type RepoPlace = {
  readonly directory: string;
  /** The private key. */
  readonly key: string;
  readonly knownHosts: string;
  readonly sshConfig: string;
  readonly access: string;
  /** Which text of scenes.yaml came from the repository. */
  readonly pulled: string;
  readonly lock: string;
};

/** Throws root_unusable for a root that an ssh configuration cannot name. */
export function repoPlace(root: string): RepoPlace {
  const directory = path.join(nodeDirectory(root), "repo");
  if (/["$\\\p{Cc}]/u.test(directory))
    throw new Failure(
      "root_unusable",
      `ssh cannot be told of ${JSON.stringify(directory)}: it has ", $, \\ or worse in it`,
    );
  const at = (name: string): string => path.join(directory, name);
  return {
    directory,
    key: at("key"),
    knownHosts: at("known_hosts"),
    sshConfig: at("ssh_config"),
    access: at("access.json"),
    pulled: at("pulled.json"),
    lock: at("lock"),
  };
}

const RULES = [
  ["host", /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]+)$/, "a name or an address"],
  ["user", /^[A-Za-z_][A-Za-z0-9_.-]*$/, "the name of an account"],
  ["path", /^[A-Za-z0-9_.~/][A-Za-z0-9_.~/+@-]*$/, "a path of letters, digits and _ . ~ / + @ -"],
] as const;

/** Throws usage, with the option for each fault. */
export function checkAccess(access: RepoAccess): RepoAccess {
  const faults: Fault[] = RULES.flatMap(([name, rule, what]) =>
    rule.test(access[name]) && access[name].length <= 255
      ? []
      : [
          {
            place: name === "path" ? "--repo" : `--${name}`,
            problem: `${JSON.stringify(access[name])} is not ${what}`,
          },
        ],
  );
  if (!Number.isSafeInteger(access.port) || access.port < 1 || access.port > 65_535)
    faults.push({ place: "--port", problem: `${access.port} is not a port` });
  if (faults.length > 0)
    throw new Failure("usage", "this is no repository that can be reached over ssh", { details: faults });
  return access;
}

export function accessText({ host, port, user, path: repo }: RepoAccess): string {
  return `${repo} at ${user}@${host}:${port}`;
}

/** Undefined when none was made. */
export function readAccess(place: RepoPlace): RepoAccess | undefined {
  let text: string;
  try {
    text = fs.readFileSync(place.access, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw new Failure("config_invalid", `${place.access} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  try {
    const { host, port, user, path: repo } = JSON.parse(text) as Record<string, unknown>;
    return checkAccess({ host: String(host), port: Number(port), user: String(user), path: String(repo) });
  } catch (error) {
    const what = "does not say which repository is meant: make the access anew with holdfast node repo-key --replace";
    throw new Failure("config_invalid", `${place.access} ${what}`, { cause: error });
  }
}

/** The same, which must be there. Throws repo_unset. */
export function existingAccess(place: RepoPlace): RepoAccess {
  const access = readAccess(place);
  if (access !== undefined && fs.existsSync(place.key)) return access;
  throw new Failure("repo_unset", `this node has no access to a repository: there is no ${place.key}`);
}

/** With the ssh configuration that leads there. */
export function writeAccess(place: RepoPlace, access: RepoAccess): void {
  writePrivateFile(place.sshConfig, sshConfigText(place, access));
  writePrivateFile(place.access, `${JSON.stringify(access)}\n`);
}

/** Nothing of the account's own is used: no agent, no other key, no other known host, no configuration of the machine. */
export function sshConfigText(place: RepoPlace, { host, port, user }: RepoAccess): string {
  // ssh expands % in file names.
  const file = (name: string): string => `"${name.replaceAll("%", "%%")}"`;
  const lines = [
    ["HostName", host],
    ["Port", String(port)],
    ["User", user],
    ["IdentityFile", file(place.key)],
    ["IdentitiesOnly", "yes"],
    ["IdentityAgent", "none"],
    ["UserKnownHostsFile", file(place.knownHosts)],
    ["GlobalKnownHostsFile", "/dev/null"],
    ["StrictHostKeyChecking", "yes"],
    ["UpdateHostKeys", "no"],
    ["PreferredAuthentications", "publickey"],
    ["BatchMode", "yes"],
    ["ForwardAgent", "no"],
    ["ForwardX11", "no"],
    ["ClearAllForwardings", "yes"],
    ["PermitLocalCommand", "no"],
    ["ControlMaster", "no"],
    ["ControlPath", "none"],
    ["RequestTTY", "no"],
    ["ConnectTimeout", "10"],
    ["ServerAliveInterval", "10"],
    ["ServerAliveCountMax", "3"],
  ];
  return `Host ${REPO_ALIAS}\n${lines.map(([name, value]) => `  ${name} ${value}\n`).join("")}`;
}
