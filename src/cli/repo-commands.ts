// SPDX-License-Identifier: Apache-2.0
// node repo-key | repo-verify, scene pull: the access of this machine's node to one repository. They act here, on the node
// itself, without agent or controller.

import type { Command } from "commander";
import { Failure } from "../std/errors.ts";
import { example, printing, type Tree } from "./command.ts";
import type { RepoKeyOptions, RepoKeyShown } from "./programs.ts";
import { visible } from "./table.ts";
import { printJson, type Terminal } from "./terminal.ts";

const ROOT = ["--root <directory>", "the root whose node is meant (default: HOLDFAST_ROOT)"] as const;

type KeyOptions = RepoKeyOptions & { readonly json?: boolean };

/** Below the commands node and scene, which are there. */
export function addRepoCommands(program: Command, tree: Tree): void {
  for (const parent of program.commands) {
    if (parent.name() === "node") addNodeRepo(parent, tree);
    if (parent.name() === "scene") addScenePull(parent, tree);
  }
}

function addNodeRepo(node: Command, { terminal, programs }: Tree): void {
  const key = printing(node.command("repo-key"))
    .description("Make this machine's deploy key for one repository; print its public half and alias")
    .option("--host <name>", "the server of the repository")
    .option("--port <number>", "of ssh there (default: 22)", port)
    .option("--user <name>", "the account there (default: git)")
    .option("--repo <path>", "the repository, as the server knows it")
    .option("--fingerprint <sha256>", "trust the server's host key that has this fingerprint")
    .option("--replace", "make a new key, perhaps for another repository")
    .option(...ROOT)
    .action(async ({ json, ...options }: KeyOptions) => {
      const shown = await programs.repoKey(options);
      if (json === true) return printJson(terminal, shown);
      printKey(terminal, shown);
    });
  example(
    key,
    "holdfast node repo-key --host git.example.org --repo operations/scenes.git",
    "holdfast node repo-key --fingerprint SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU",
  );
  const verify = printing(node.command("repo-verify"))
    .description("Prove that this machine's key can fetch, and that a push is refused")
    .option(...ROOT)
    .action(async ({ json, ...options }: { json?: boolean; root?: string }) => {
      const found = await programs.repoVerify(options);
      if (json === true) return printJson(terminal, found);
      const { path, host } = found.access;
      const by = found.refusedBy === "access" ? "the server opens nothing for writing" : "a rule of the repository";
      terminal.stdout.write(`fetch  works: ${path} at ${host}, ${found.commit ?? "which is empty"}\n`);
      terminal.stdout.write(`push   is refused: ${by} (${visible(found.words)})\n`);
    });
  example(verify, "holdfast node repo-verify");
}

function port(text: string): number {
  if (!/^\d{1,5}$/.test(text)) throw new Failure("usage", `--port takes a number, not ${text}`);
  return Number(text);
}

function printKey(terminal: Terminal, shown: RepoKeyShown): void {
  terminal.stdout.write(`${shown.publicKey}\n\n${shown.sshConfig}`);
  const say = (text: string): void => void terminal.stderr.write(`${text}\n`);
  say(`\nThe first line is the public half (${shown.fingerprint}). Give it to the server as a deploy key of`);
  say(`${shown.repository}, for reading only. The alias is in ${shown.sshConfigFile}.`);
  if (shown.isHostTrusted) return say("Then: holdfast node repo-verify");
  say("\nThe server's host key is not trusted yet. Compare with what its operator publishes:");
  for (const { type, fingerprint } of shown.hostKeys) say(`  ${fingerprint}  ${visible(type)}`);
  if (shown.why !== undefined) say(`  ${visible(shown.why)}`);
  say("Then: holdfast node repo-key --fingerprint SHA256:…");
}

type PullOptions = {
  readonly json?: boolean;
  readonly root?: string;
  readonly ref: string;
  readonly file: string;
  readonly replace?: boolean;
};

function addScenePull(scene: Command, { terminal, programs }: Tree): void {
  const pull = printing(scene.command("pull"))
    .description("Bring scenes.yaml from this machine's repository, if it has no fault; nothing is switched")
    .option("--ref <name>", "branch or tag", "HEAD")
    .option("--file <path>", "where it is in the repository", "scenes.yaml")
    .option("--replace", "also over a scenes.yaml that was changed here; it is kept as scenes.yaml.before")
    .option(...ROOT)
    .action(async ({ json, ...options }: PullOptions) => {
      const pulled = await programs.scenePull(options);
      if (json === true) return printJson(terminal, pulled);
      const { commit, target, isChanged, kept } = pulled;
      const state = isChanged ? "is now as in" : "was already as in";
      terminal.stdout.write(`${visible(target)} ${state} commit ${commit.slice(0, 12)}.\n`);
      if (kept !== null) terminal.stdout.write(`The one before is ${visible(kept)}.\n`);
      if (isChanged)
        terminal.stderr.write("Nothing was switched: holdfast scene activate NAME --dry-run shows what would.\n");
    });
  example(pull, "holdfast scene pull", "holdfast scene pull --ref main --file nodes/anna/scenes.yaml");
}
