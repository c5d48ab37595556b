// SPDX-License-Identifier: Apache-2.0
// The command tree. A file for each noun adds its commands; what all of them share is here: --json, help with examples,
// and errors that say what to do.

import { Command } from "commander";
import { example, type Tree } from "./command.ts";
import { addBackupCommands } from "./backup-commands.ts";
import { addBoundaryCommands } from "./boundary-commands.ts";
import { addContextCommands } from "./context-commands.ts";
import { addDatabaseCommands } from "./database-commands.ts";
import { addCompletion } from "./completion.ts";
import { addDevicesCommands } from "./devices-commands.ts";
import { addDoctor } from "./doctor-command.ts";
import { addGatewayCommand } from "./gateway-command.ts";
import { addJobCommands } from "./job-commands.ts";
import { addLaunchCommands } from "./launch-commands.ts";
import { addNodeCommands } from "./node-commands.ts";
import { addPasswordCommand } from "./password-command.ts";
import { addEnrolCommand } from "./enrol-command.ts";
import { addProgramCommands } from "./program-commands.ts";
import { addRegistryCommands } from "./registry-commands.ts";
import { addRepoCommands } from "./repo-commands.ts";
import { addSampleCommands } from "./sample-commands.ts";
import { addSceneCommands } from "./scene-commands.ts";
import { addStatusCommand } from "./status-command.ts";
import { addTokenCommands } from "./token-commands.ts";
import { addUnitCommand } from "./unit-command.ts";
import { addUpgradeCommand } from "./upgrade-command.ts";
import { addUserCommands } from "./user-commands.ts";

export function buildProgram(tree: Tree): Command {
  const program = new Command("holdfast")
    .description("Runs jobs on machines that you own: never lost, never twice.")
    .version(tree.version, "-V, --version", "print the version")
    .enablePositionalOptions()
    .showSuggestionAfterError(true)
    .configureOutput({
      writeOut: (text) => void tree.terminal.stdout.write(text),
      writeErr: (text) => void tree.terminal.stderr.write(text),
      // bin/ says it, as every other fault.
      outputError: () => {},
    });
  example(program, "npm start", "holdfast status", "holdfast job run -- uname -a");
  addProgramCommands(program, tree);
  addEnrolCommand(program, tree);
  addGatewayCommand(program, tree);
  addStatusCommand(program, tree);
  addDoctor(program, tree);
  addJobCommands(program, tree);
  addNodeCommands(program, tree);
  addRegistryCommands(program, tree);
  addUserCommands(program, tree);
  addPasswordCommand(program, tree);
  addTokenCommands(program, tree);
  addContextCommands(program, tree);
  addDatabaseCommands(program, tree);
  addBackupCommands(program, tree);
  addBoundaryCommands(program, tree);
  addDevicesCommands(program, tree);
  addLaunchCommands(program, tree);
  addSceneCommands(program, tree);
  addRepoCommands(program, tree);
  addUnitCommand(program, tree);
  addUpgradeCommand(program, tree);
  addSampleCommands(program, tree);
  addCompletion(program, tree);
  inherit(program);
  return program;
}

/** Every command throws instead of exiting, prints where the root prints, and points to its help after a mistake. */
function inherit(command: Command): void {
  command.exitOverride();
  for (const child of command.commands) {
    child.copyInheritedSettings(command);
    inherit(child);
  }
}
