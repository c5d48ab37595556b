// SPDX-License-Identifier: Apache-2.0
// `holdfast node repo-key`, `node repo-verify` and `scene pull`, on the node itself: the access to one repository, what it can
// do, and scenes.yaml out of it. Rule: a scenes.yaml with a fault leaves the old one in use.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { RepoKeyOptions, RepoKeyShown } from "../cli/programs.ts";
import { nodeDirectory } from "../enrol/node-key.ts";
import {
  accessText,
  checkAccess,
  readAccess,
  REPO_ALIAS,
  type RepoAccess,
  type RepoPlace,
  repoPlace,
  sshConfigText,
  writeAccess,
} from "../enrol/repo-access.ts";
import type { ChildOptions } from "../enrol/repo-child.ts";
import { fingerprintOf, forgetRepoKey, publicRepoKey, shownHostKeys, trustHost } from "../enrol/repo-key.ts";
import { type Pulled, pullFile } from "../enrol/repo-pull.ts";
import { type RepoVerified, verifyRepo } from "../enrol/repo-verify.ts";
import { FILE_NAME, parseRegistry } from "../scenes/registry.ts";
import { Failure, type Fault, messageOf } from "../std/errors.ts";
import { makeDirectory } from "../std/files.ts";
import { systemRandom } from "../std/random.ts";
import { type Environment, rootFrom } from "./settings.ts";

const DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin";

function childrenOf(options: { readonly root?: string }, env: Environment): ChildOptions {
  return { place: repoPlace(rootFrom(env, options.root)), searchPath: env["PATH"] ?? DEFAULT_PATH };
}

export async function repoKey(options: RepoKeyOptions, env: Environment): Promise<RepoKeyShown> {
  const root = rootFrom(env, options.root);
  const children = childrenOf(options, env);
  const { place } = children;
  if (options.fingerprint !== undefined && !/^SHA256:[A-Za-z0-9+/]{43}$/.test(options.fingerprint))
    throw new Failure("usage", "--fingerprint takes SHA256: and 43 characters, as ssh-keygen -l prints it");
  const present = presentAccess(options, place);
  const access = wantedAccess(options, present);
  makeDirectory(root, 0o755);
  makeDirectory(nodeDirectory(root), 0o700);
  makeDirectory(place.directory, 0o700);
  if (options.replace === true) forgetRepoKey(children, present?.host === access.host && present.port === access.port);
  writeAccess(place, access);
  const publicKey = await publicRepoKey(`holdfast@${os.hostname()}`, children);
  if (options.fingerprint !== undefined) await trustHost(access, options.fingerprint, children);
  const isHostTrusted = fs.existsSync(place.knownHosts);
  return {
    publicKey,
    fingerprint: fingerprintOf(publicKey.split(" ")[1] ?? ""),
    repository: accessText(access),
    alias: REPO_ALIAS,
    sshConfig: sshConfigText(place, access),
    sshConfigFile: place.sshConfig,
    isHostTrusted,
    ...(isHostTrusted ? { hostKeys: [] } : await seenKeys(access, children)),
  };
}

/** For the person who compares; that it does not answer now is no fault of the key. */
async function seenKeys(access: RepoAccess, children: ChildOptions): Promise<Pick<RepoKeyShown, "hostKeys" | "why">> {
  try {
    const shown = await shownHostKeys(access, children);
    return { hostKeys: shown.map(({ type, fingerprint }) => ({ type, fingerprint })) };
  } catch (error) {
    return { hostKeys: [], why: messageOf(error) };
  }
}

/** What says nothing any more is no hindrance to making it anew. */
function presentAccess({ replace }: RepoKeyOptions, place: RepoPlace): RepoAccess | undefined {
  try {
    return readAccess(place);
  } catch (error) {
    if (replace === true) return undefined;
    throw error;
  }
}

/** What is given, else what there is. A key belongs to one repository: another one takes --replace. */
function wantedAccess(options: RepoKeyOptions, present: RepoAccess | undefined): RepoAccess {
  const {
    host = present?.host,
    port = present?.port ?? 22,
    user = present?.user ?? "git",
    repo = present?.path,
  } = options;
  if (host === undefined || repo === undefined) {
    const missing: Fault[] = [];
    if (host === undefined) missing.push({ place: "--host", problem: "is missing: the server of the repository" });
    if (repo === undefined) missing.push({ place: "--repo", problem: "is missing: the path of the repository there" });
    throw new Failure("usage", "the first time the repository must be named", { details: missing });
  }
  const access = checkAccess({ host, port, user, path: repo });
  if (options.replace !== true && present !== undefined && accessText(access) !== accessText(present))
    throw new Failure(
      "conflict",
      `this node's key is for ${accessText(present)}; --replace makes a new one for ${accessText(access)}`,
    );
  return access;
}

export function repoVerify(options: { readonly root?: string }, env: Environment): Promise<RepoVerified> {
  return verifyRepo(childrenOf(options, env), systemRandom);
}

export type ScenePullOptions = {
  readonly root?: string;
  readonly ref: string;
  readonly file: string;
  readonly replace?: boolean;
};

export function scenePull({ ref, file, replace, ...options }: ScenePullOptions, env: Environment): Promise<Pulled> {
  const target = path.join(rootFrom(env, options.root), FILE_NAME);
  const known = Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])),
  );
  return pullFile({
    children: childrenOf(options, env),
    ref,
    file,
    target,
    isReplacing: replace === true,
    check: (text, commit) => {
      try {
        parseRegistry(text, target, { env: known });
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        const what = `${file} of commit ${commit.slice(0, 12)} has ${error.details.length} faults; the old one stays in use`;
        throw new Failure("scenes_invalid", what, { details: error.details, cause: error });
      }
    },
  });
}
