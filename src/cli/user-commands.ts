// SPDX-License-Identifier: Apache-2.0
// login-link, user list | add | role | disable | enable | sign-out, password, credential list, audit: people and what they hold.

import { type Command, Option } from "commander";
import type { Client } from "../client/client.ts";
import type { Credential } from "../protocol/access-schema.ts";
import { PAGE_MAX } from "../protocol/limits.ts";
import { userRoles, type UserRole } from "../protocol/user.ts";
import type { User } from "../protocol/user-schema.ts";
import { Failure } from "../std/errors.ts";
import { example, printing, type Tree } from "./command.ts";
import { ago, table, visible } from "./table.ts";
import { colours, connect, printJson, type Terminal } from "./terminal.ts";
import { parseWhole } from "./units.ts";

export function addUserCommands(program: Command, tree: Tree): void {
  addLoginLink(program, tree);
  const user = program.command("user").description("People who may sign in");
  example(user, "holdfast user add bea", "holdfast login-link bea");
  addLooks(user, tree);
  addChanges(user, tree);
  addCredentialList(program, tree);
  addAudit(program, tree);
}

function addLoginLink(program: Command, { terminal }: Tree): void {
  const link = printing(program.command("login-link"))
    .argument("[user]", "name or id (default: yourself)")
    .description("Make a one-time link that signs a browser in; good for 15 minutes")
    .action(async (wanted: string | undefined, { json }) => {
      const client = connect(terminal);
      const userId = wanted === undefined ? undefined : (await findUser(client, wanted)).id;
      const made = await client.call("loginLinkCreate", { body: userId === undefined ? {} : { userId } });
      const url = new URL(made.path, client.baseUrl).href;
      if (json === true) return printJson(terminal, { ...made, url });
      terminal.stderr.write(`Signs in as ${made.userName}, once, until ${made.expiresAt}:\n`);
      terminal.stdout.write(`${url}\n`);
    });
  example(link, "holdfast login-link", "holdfast login-link bea");
}

function addLooks(user: Command, { terminal }: Tree): void {
  const list = printing(user.command("list"))
    .description("List users")
    .action(async ({ json }) => {
      const { items } = await connect(terminal).call("userList", {});
      if (json === true) return printJson(terminal, items);
      const now = terminal.clock.now();
      terminal.stdout.write(
        table(
          ["NAME", "ROLE", "PASSWORD", "LAST SEEN", "STATE", "ID"],
          items.map((item) => [
            item.name,
            item.role,
            item.hasPassword ? "yes" : "no",
            ago(item.lastSeenAt, now),
            item.disabledAt === null ? "active" : `disabled ${ago(item.disabledAt, now)}`,
            item.id,
          ]),
        ),
      );
    });
  example(list, "holdfast user list");

  const add = printing(user.command("add"))
    .argument("<name>")
    .description("Add a user; holdfast login-link NAME then lets them in")
    .addOption(new Option("--role <role>", "what they may do").choices([...userRoles]).default("member"))
    .action(async (name: string, { role, json }: { role: UserRole; json?: boolean }) => {
      const made = await connect(terminal).call("userCreate", { body: { name, role } });
      if (json === true) return printJson(terminal, made);
      terminal.stdout.write(`${made.name} is ${made.role}. Let them in with: holdfast login-link ${made.name}\n`);
    });
  example(add, "holdfast user add bea", "holdfast user add carl --role admin");
}

function addChanges(user: Command, { terminal }: Tree): void {
  const say = (changed: User, json: boolean | undefined): void => {
    if (json === true) return printJson(terminal, changed);
    terminal.stdout.write(`${changed.name} is ${changed.role}${changed.disabledAt === null ? "" : ", disabled"}.\n`);
  };
  const role = printing(user.command("role"))
    .argument("<user>", "name or id")
    .argument("<role>", userRoles.join(" or "))
    .description("Make a user admin or member; counts from their next request on")
    .action(async (wanted: string, wantedRole: string, { json }: { json?: boolean }) => {
      const known = userRoles.find((candidate) => candidate === wantedRole);
      if (known === undefined) throw new Failure("usage", `a role is ${userRoles.join(" or ")}, not ${wantedRole}`);
      const client = connect(terminal);
      const { id } = await findUser(client, wanted);
      say(await client.call("userRole", { params: { userId: id }, body: { role: known } }), json);
    });
  example(role, "holdfast user role bea admin");

  const verbs = [
    ["disable", "userDisable", "Revoke everything that a user holds and let them in no more"],
    ["enable", "userEnable", "Let a disabled user sign in again"],
  ] as const;
  for (const [verb, route, description] of verbs) {
    const command = printing(user.command(verb))
      .argument("<user>", "name or id")
      .description(description)
      .action(async (wanted: string, { json }: { json?: boolean }) => {
        const client = connect(terminal);
        say(await client.call(route, { params: { userId: (await findUser(client, wanted)).id } }), json);
      });
    example(command, `holdfast user ${verb} bea`);
  }

  const signOut = printing(user.command("sign-out"))
    .argument("<user>", "name or id")
    .description("Sign a user out of every browser; their tokens stay")
    .action(async (wanted: string, { json }) => {
      const client = connect(terminal);
      const done = await client.call("userSignOut", { params: { userId: (await findUser(client, wanted)).id } });
      if (json === true) return printJson(terminal, done);
      terminal.stdout.write(`Signed out of ${done.signedOut} ${done.signedOut === 1 ? "browser" : "browsers"}.\n`);
    });
  example(signOut, "holdfast user sign-out bea");
}

/** By name or id; names are unique in an organisation. */
async function findUser(client: Client, wanted: string): Promise<User> {
  const { items } = await client.call("userList", {});
  const found = items.find((item) => item.name === wanted || item.id === wanted);
  if (found !== undefined) return found;
  const names = items.map((item) => item.name).slice(0, 10);
  throw new Failure("not_found", `there is no user ${wanted}; there are ${names.join(", ")}`);
}

function addCredentialList(program: Command, { terminal }: Tree): void {
  const credential = program.command("credential").description("Everything that can be presented to the controller");
  example(credential, "holdfast credential list");
  const list = printing(credential.command("list"))
    .description("List tokens, signed-in browsers and nodes' credentials, those that work first")
    .action(async ({ json }) => {
      const { items } = await connect(terminal).call("credentialList", {});
      if (json === true) return printJson(terminal, items);
      const now = terminal.clock.now();
      terminal.stdout.write(
        table(
          ["KIND", "OF", "NAME", "SCOPES", "LAST USED", "STATE", "ID"],
          items.map((item) => [
            item.kind,
            item.userName ?? item.nodeName ?? "",
            visible(item.name),
            item.scopes.join(" "),
            ago(item.lastUsedAt, now),
            credentialState(terminal, item, now),
            item.id,
          ]),
        ),
      );
    });
  example(list, "holdfast credential list", "holdfast credential list --json");
}

function credentialState(terminal: Terminal, { revokedAt, expiresAt }: Credential, now: number): string {
  const colour = colours(terminal);
  if (revokedAt !== null) return colour.dim(`revoked ${ago(revokedAt, now)}`);
  if (expiresAt === null) return "valid";
  return Date.parse(expiresAt) < now ? colour.dim(`expired ${ago(expiresAt, now)}`) : `expires ${ago(expiresAt, now)}`;
}

function addAudit(program: Command, { terminal }: Tree): void {
  const audit = printing(program.command("audit"))
    .description("Everything that changed authority, newest first")
    .option("--action <action>", "only this action, or its first part, such as node or user.sign-in")
    .option("--subject <id>", "only about this id")
    .option("--limit <n>", "how many", parseWhole(1, PAGE_MAX), 50)
    .action(async ({ json, ...query }: { action?: string; subject?: string; limit: number; json?: boolean }) => {
      const { items } = await connect(terminal).call("auditList", { query });
      if (json === true) return printJson(terminal, items);
      terminal.stdout.write(
        table(
          ["AT", "BY", "ACTION", "SUBJECT", "MORE"],
          items.map((item) => [
            item.at,
            visible(item.actorName ?? item.actor),
            item.action,
            visible(item.subjectName ?? item.subject),
            Object.keys(item.data).length === 0 ? "" : visible(JSON.stringify(item.data)),
          ]),
        ),
      );
    });
  example(audit, "holdfast audit", "holdfast audit --action node --limit 20");
}
