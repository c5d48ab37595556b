// SPDX-License-Identifier: Apache-2.0
// Asks the server whether it opens the repository to this node's key, for reading or for writing, before git is let to it: ssh
// ends with 255 for its own faults and with the server's code else, so a refusal is told from a cable that was pulled.

import fs from "node:fs";
import { Failure } from "../std/errors.ts";
import { accessText, REPO_ALIAS, type RepoAccess } from "./repo-access.ts";
import { type ChildOptions, lastWords, type Ran, runChild } from "./repo-child.ts";

export type RepoService = "git-upload-pack" | "git-receive-pack";

export type Opened =
  /** hasRefs: false for a repository that is empty. */
  | { readonly kind: "open"; readonly hasRefs: boolean }
  /** words: the server's own. */
  | { readonly kind: "refused"; readonly words: string };

const SSH_FAULT = 255;
/** The first packet of a list of refs; each has the id of its commit before it. */
const ADVERTISED = /^[0-9a-f]{4}/;

/** Throws repo_host_unknown, repo_host_changed, repo_key_refused, repo_unreachable. */
export async function askService(access: RepoAccess, service: RepoService, options: ChildOptions): Promise<Opened> {
  const remote = `${service} '${access.path}'`;
  const ran = await runChild(["ssh", "-F", options.place.sshConfig, REPO_ALIAS, remote], options);
  const said = ran.stdout.toString("latin1");
  if (ADVERTISED.test(said)) return { kind: "open", hasRefs: / (?:HEAD|refs\/)/.test(said) };
  if (ran.code === SSH_FAULT || ran.code === null) throw sshFailure(access, ran, options);
  return { kind: "refused", words: lastWords(ran.stderr) };
}

function sshFailure(access: RepoAccess, { stderr }: Ran, { place }: ChildOptions): Failure {
  const where = `${access.host}:${access.port}`;
  // Whether another key was trusted before: ssh's own words differ by the type of the key.
  if (UNVERIFIED.test(stderr) && fs.existsSync(place.knownHosts))
    return new Failure(
      "repo_host_changed",
      `${where} shows another host key than the one that was trusted: somebody may be in between, or the server was set up anew`,
    );
  if (UNVERIFIED.test(stderr))
    return new Failure("repo_host_unknown", `the host key of ${where} is not trusted yet, and nothing was sent there`);
  if (/Permission denied|Too many authentication failures/.test(stderr))
    return new Failure(
      "repo_key_refused",
      `${where} does not take this node's key for ${access.user}: ${lastWords(stderr)}`,
    );
  return new Failure("repo_unreachable", `${accessText(access)} cannot be reached: ${lastWords(stderr)}`);
}

const UNVERIFIED = /host key is known for|Host key verification failed/;
