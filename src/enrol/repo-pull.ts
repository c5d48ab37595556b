// SPDX-License-Identifier: Apache-2.0
// One file of the repository, brought here on command. Rules: it is read out of the fetched commit, never checked out; it is
// checked before it takes the place of the old one, as a whole; what somebody changed here by hand is not overwritten unasked.

import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { codeOf, Failure } from "../std/errors.ts";
import { fileFailure, syncDirectory } from "../std/files.ts";
import { takeLock } from "../std/lock.ts";
import { readPrivateFile, writePrivateFile } from "./private-file.ts";
import { accessText, existingAccess, type RepoAccess, type RepoPlace } from "./repo-access.ts";
import type { ChildOptions } from "./repo-child.ts";
import { fetchCommit, type Git, withGit } from "./repo-git.ts";

export type PullOptions = {
  readonly children: ChildOptions;
  /** Branch, tag or HEAD. */
  readonly ref: string;
  /** Path of the file in the repository. */
  readonly file: string;
  /** Where it goes. */
  readonly target: string;
  /** Takes the place of a file that did not come from the repository; that one is kept beside it. */
  readonly isReplacing: boolean;
  /** Throws for a text that must not be used. commit: for what is said. */
  readonly check: (text: string, commit: string) => void;
};

export type Pulled = {
  readonly access: RepoAccess;
  readonly commit: string;
  readonly target: string;
  readonly isChanged: boolean;
  /** Where the file is that was there before, if it did not come from the repository. */
  readonly kept: string | null;
};

const FILE_BYTES_MAX = 1024 * 1024;
const REF = /^(?!.*(?:\.\.|\/\/|@\{|\.lock(?:\/|$)))[A-Za-z0-9_][A-Za-z0-9_./+@-]*$/;
const FILE = /^(?!.*(?:^|\/)\.{1,2}(?:\/|$))[A-Za-z0-9_.][A-Za-z0-9_.+@ -]*(?:\/[A-Za-z0-9_.][A-Za-z0-9_.+@ -]*)*$/;

/** Throws repo_file_changed, repo_missing, whatever check throws, and what stands in the way of a fetch. */
export async function pullFile(options: PullOptions): Promise<Pulled> {
  const { children, ref, file } = options;
  const details = [
    ...(REF.test(ref) ? [] : [{ place: "--ref", problem: `${JSON.stringify(ref)} is no branch or tag` }]),
    ...(FILE.test(file)
      ? []
      : [{ place: "--file", problem: `${JSON.stringify(file)} is no path inside a repository` }]),
  ];
  if (details.length > 0) throw new Failure("usage", "this cannot be pulled", { details });
  const access = existingAccess(children.place);
  const lock = takeLock(children.place.lock, `pid ${process.pid}`);
  if (lock.kind === "held")
    throw new Failure("scene_busy", `another pull is under way${lock.holder === "" ? "" : ` (${lock.holder})`}`);
  try {
    return await withGit(access, children, async (git) => {
      const commit = await fetchCommit(access, ref, children, git);
      if (commit === undefined) throw new Failure("repo_missing", `${accessText(access)} is empty`);
      const text = await readBlob(access, git, commit, file);
      options.check(text, commit);
      return put(options, access, commit, text);
    });
  } finally {
    lock.release();
  }
}

async function readBlob(access: RepoAccess, git: Git, commit: string, file: string): Promise<string> {
  const listed = await git.ok("--literal-pathspecs", "ls-tree", "-z", "--long", commit, "--", file);
  const [, mode, id = "", size] = /^(\d+) \w+ ([0-9a-f]+) +(\d+|-)\t/.exec(listed.toString("utf8")) ?? [];
  const place = `${file} in ${commit.slice(0, 12)} of ${accessText(access)}`;
  if (mode === undefined) throw new Failure("repo_missing", `there is no ${place}`);
  if (mode !== "100644" && mode !== "100755")
    throw new Failure("repo_missing", `${place} is no plain file (mode ${mode})`);
  if (Number(size) > FILE_BYTES_MAX) throw new Failure("repo_missing", `${place} has ${size} bytes, more than 1 MiB`);
  const bytes = await git.ok("cat-file", "blob", id);
  return bytes.toString("utf8");
}

function put({ children, target, isReplacing }: PullOptions, access: RepoAccess, commit: string, text: string): Pulled {
  const { place } = children;
  const present = readOrNone(target);
  const isChanged = present !== text;
  const isOurs = present === undefined || !isChanged || knownTexts(place).includes(hashOf(present));
  if (!isOurs && !isReplacing)
    throw new Failure(
      "repo_file_changed",
      `${target} was changed here: it is not what came from ${accessText(access)}`,
    );
  const kept = isOurs || present === undefined ? null : `${target}.before`;
  if (kept !== null) replace(kept, present ?? "");
  // Both texts, before the file: an end in between is no change by hand.
  const known = [hashOf(text), ...(present === undefined ? [] : [hashOf(present)])];
  writePrivateFile(place.pulled, `${JSON.stringify({ commit, known })}\n`);
  if (isChanged) replace(target, text);
  return { access, commit, target, isChanged, kept };
}

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex");

function knownTexts({ pulled }: RepoPlace): readonly unknown[] {
  try {
    const { known } = JSON.parse(readPrivateFile(pulled) ?? "{}") as { readonly known?: unknown };
    return Array.isArray(known) ? known : [];
  } catch {
    // Then nothing is known to come from the repository, and nothing is overwritten unasked.
    return [];
  }
}

function readOrNone(file: string): string | undefined {
  try {
    return fs.readFileSync(file, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw fileFailure(file, error);
  }
}

/** In one step, flushed: after a crash it is the old one or the new one. */
function replace(file: string, text: string): void {
  const beside = `${file}.${process.pid}.new`;
  try {
    fs.writeFileSync(beside, text, { mode: 0o644, flush: true });
    fs.renameSync(beside, file);
    syncDirectory(path.dirname(file));
  } catch (error) {
    fs.rmSync(beside, { force: true });
    throw fileFailure(file, error);
  }
}
