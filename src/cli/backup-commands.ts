// SPDX-License-Identifier: Apache-2.0
// backup, restore: the whole database as a directory of files, and back. Their progress goes to a terminal only.

import { Argument, type Command, Option } from "commander";
import { example, printing, type Tree } from "./command.ts";
import type { BackupSummary } from "./programs.ts";
import { printJson, type Terminal } from "./terminal.ts";

type Options = { readonly root?: string; readonly json?: boolean };

const INTERRUPTED = 130;

const root = () =>
  new Option("--root <directory>", "the root whose embedded database is meant (default: HOLDFAST_ROOT)");

export function addBackupCommands(program: Command, tree: Tree): void {
  addBackup(program, tree);
  addRestore(program, tree);
}

function addBackup(program: Command, { terminal, programs, setExitCode }: Tree): void {
  const backup = printing(program.command("backup"))
    .description("Write the whole database to a new directory, also while it is in use")
    .addArgument(new Argument("<directory>", "where to; it must not exist, or be empty"))
    .addOption(root())
    .action(async (directory: string, { json, ...options }: Options) => {
      const line = progressOn(terminal);
      const written = await programs.backup({ directory, ...options, progress: line.show });
      line.clear();
      if (written === undefined) return interrupted(terminal, setExitCode);
      if (json === true) return printJson(terminal, written);
      terminal.stdout.write(`Backed up ${describe(written)} to ${written.directory} in ${seconds(written)}.\n`);
    });
  example(
    backup,
    "holdfast backup /mnt/backup/monday",
    "DATABASE_OWNER_URL=postgres://owner@db/holdfast holdfast backup /mnt/backup/monday",
  );
}

function addRestore(program: Command, { terminal, programs, setExitCode }: Tree): void {
  const restore = printing(program.command("restore"))
    .description("Make the embedded database of a root that has none from a backup")
    .addArgument(new Argument("<directory>", "what holdfast backup has written"))
    .addOption(root())
    .action(async (directory: string, { json, ...options }: Options) => {
      const line = progressOn(terminal);
      const restored = await programs.restore({ directory, ...options, progress: line.show });
      line.clear();
      if (restored === undefined) return interrupted(terminal, setExitCode);
      if (json === true) return printJson(terminal, restored);
      const { jobs, returned, cancelled, migrated } = restored;
      terminal.stdout.write(
        [
          `Restored ${describe(restored)} from ${restored.takenAt} into ${restored.root} in ${seconds(restored)}.`,
          ...(migrated.length === 0 ? [] : [`Applied ${migrated.join(", ")}.`]),
          `${jobs} jobs had not ended: ${returned} that nodes held are queued again, ${cancelled} were cancelled.`,
          "What ended after the backup runs again. Start with: holdfast up",
          "",
        ].join("\n"),
      );
    });
  example(restore, "holdfast restore /mnt/backup/monday", "holdfast restore /mnt/backup/monday --root /srv/holdfast");
}

function describe({ tables, rows, bytes }: BackupSummary): string {
  return `${tables.length} tables with ${rows} rows (${sizeText(bytes)})`;
}

function seconds({ tookMs }: BackupSummary): string {
  return `${(tookMs / 1000).toFixed(1)} s`;
}

function sizeText(bytes: number): string {
  return bytes < 2 ** 20 ? `${Math.ceil(bytes / 2 ** 10)} KiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

function interrupted(terminal: Terminal, setExitCode: (code: number) => void): void {
  terminal.stderr.write("Interrupted: nothing was made.\n");
  setExitCode(INTERRUPTED);
}

const SHOW_EVERY_MS = 100;

/** One line that is written over, ten times a second; nothing at all where nobody looks. */
function progressOn(terminal: Terminal): {
  readonly show: (table: string, bytes: number) => void;
  readonly clear: () => void;
} {
  if (terminal.stderr.isTTY !== true) return { show: () => {}, clear: () => {} };
  let last = Number.NEGATIVE_INFINITY;
  return {
    show: (table, bytes) => {
      const now = terminal.clock.monotonicMs();
      if (now - last < SHOW_EVERY_MS) return;
      last = now;
      terminal.stderr.write(`\r\u001B[K  ${table}${bytes === 0 ? "" : `  ${sizeText(bytes)}`}`);
    },
    clear: () => void terminal.stderr.write("\r\u001B[K"),
  };
}
