// SPDX-License-Identifier: Apache-2.0
// token create | list | revoke: API tokens of people and scripts.

import { type Command, InvalidArgumentError } from "commander";
import { type PeopleScope, peopleScopes } from "../protocol/user.ts";
import { example, printing, type Tree } from "./command.ts";
import { ago, table } from "./table.ts";
import { connect, printJson } from "./terminal.ts";
import { parseId, parseWhole } from "./units.ts";

/** One a flag, so that what follows it is never taken for another. */
function parseScope(text: string, before: readonly PeopleScope[] = []): readonly PeopleScope[] {
  const scope = peopleScopes.find((known) => known === text);
  if (scope === undefined) throw new InvalidArgumentError(`It is one of ${peopleScopes.join(", ")}.`);
  return [...before, scope];
}

export function addTokenCommands(program: Command, { terminal }: Tree): void {
  const token = program.command("token").description("API tokens");
  example(token, "holdfast token create ci --scope fleet:write");

  const create = printing(token.command("create"))
    .argument("<name>")
    .description("Make a token; its secret is printed once, on standard output")
    .option(
      "--scope <scope>",
      `what it may do, repeatable: ${peopleScopes.join(", ")} (default: fleet:read)`,
      parseScope,
    )
    .option("--expires-days <n>", "days until it stops working (default: never)", parseWhole(1, 3650))
    .action(
      async (
        name: string,
        { scope = ["fleet:read"], expiresDays, json }: { scope?: PeopleScope[]; expiresDays?: number; json?: boolean },
      ) => {
        const body = {
          name,
          scopes: [...new Set(scope)],
          ...(expiresDays === undefined ? {} : { expiresInDays: expiresDays }),
        };
        const made = await connect(terminal).call("tokenCreate", { body });
        if (json === true) return printJson(terminal, made);
        terminal.stderr.write(`Token ${made.id} (${made.scopes.join(", ")}). It is shown only now:\n`);
        terminal.stdout.write(`${made.secret}\n`);
      },
    );
  example(create, "holdfast token create ci --scope fleet:read --scope fleet:write --expires-days 90");

  const list = printing(token.command("list"))
    .description("List tokens")
    .action(async ({ json }) => {
      const { items } = await connect(terminal).call("tokenList", {});
      if (json === true) return printJson(terminal, items);
      const now = terminal.clock.now();
      const state = (item: (typeof items)[number]): string =>
        item.revokedAt !== null
          ? `revoked ${ago(item.revokedAt, now)}`
          : item.expiresAt === null
            ? "valid"
            : `expires ${ago(item.expiresAt, now)}`;
      terminal.stdout.write(
        table(
          ["ID", "NAME", "SCOPES", "LAST USED", "STATE"],
          items.map((item) => [item.id, item.name, item.scopes.join(" "), ago(item.lastUsedAt, now), state(item)]),
        ),
      );
    });
  example(list, "holdfast token list");

  const revoke = printing(token.command("revoke"))
    .argument("<id>", "of the token", parseId("cred", "token"))
    .description("Revoke a token; takes effect on the next request")
    .action(async (id: string, { json }) => {
      const revoked = await connect(terminal).call("tokenRevoke", { params: { credentialId: id } });
      if (json === true) return printJson(terminal, revoked);
      terminal.stdout.write(`Revoked ${revoked.name}.\n`);
    });
  example(revoke, "holdfast token revoke cred_01j…");
}
