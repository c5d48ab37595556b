// SPDX-License-Identifier: Apache-2.0
// password: sets the caller's own password for signing in on the page. Read from a terminal without echo, or from a pipe;
// never from argv.

import type { Command } from "commander";
import { PASSWORD_LENGTH_MIN } from "../protocol/user.ts";
import { Failure } from "../std/errors.ts";
import { example, type Tree } from "./command.ts";
import { connect } from "./terminal.ts";

export function addPasswordCommand(program: Command, { terminal }: Tree): void {
  const password = program
    .command("password")
    .description(
      "Set your password for signing in on the page; from a pipe: the present one, if there is one, on the first line",
    )
    .action(async () => {
      const client = connect(terminal);
      const { hasPassword, userName } = await client.call("whoami", {});
      const questions = [
        ...(hasPassword ? [`Present password of ${userName}`] : []),
        `New password of ${userName} (at least ${PASSWORD_LENGTH_MIN} characters)`,
      ];
      const answers = await terminal.readSecrets(questions);
      const newPassword = answers.at(-1) ?? "";
      if (answers.length !== questions.length)
        throw new Failure(
          "usage",
          `${questions.length === 2 ? "two lines were" : "one line was"} expected on standard input`,
        );
      if (newPassword.length < PASSWORD_LENGTH_MIN)
        throw new Failure(
          "usage",
          `the new password has ${newPassword.length} characters: at least ${PASSWORD_LENGTH_MIN} are needed`,
        );
      const currentPassword = hasPassword ? { currentPassword: answers[0] ?? "" } : {};
      await client.call("passwordSet", { body: { newPassword, ...currentPassword } });
      terminal.stdout.write(`${userName} signs in with the new password; other browsers were signed out.\n`);
    });
  example(password, "holdfast password", "holdfast password < file-with-the-password");
}
