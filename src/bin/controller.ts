// SPDX-License-Identifier: Apache-2.0
// `holdfast controller`: a controller without a node. It says so when it has no database, and never invents one.

import path from "node:path";
import { createClient } from "../client/client.ts";
import { contextFileFrom, readContext, writeContext } from "../cli/context-file.ts";
import { startController } from "../controller/controller.ts";
import { Failure } from "../std/errors.ts";
import { openEmbedded, openExternal } from "./database.ts";
import { stderrLog } from "./logs.ts";
import { pageDirectory } from "./page.ts";
import { type ServeOptions, servingOf } from "./serve.ts";
import { configFrom, type Environment, rootFrom } from "./settings.ts";
import { trustAlso } from "./tls.ts";
import { VERSION } from "./version.ts";

export type ControllerCommand = ServeOptions & {
  readonly embedded?: boolean;
  readonly root?: string;
  /** False: refuse an older schema instead of migrating it. */
  readonly migrate?: boolean;
};

/** Runs until the signal aborts; returns the exit code. */
export async function runController(
  options: ControllerCommand,
  env: Environment,
  signal: AbortSignal,
): Promise<number> {
  const config = { ...configFrom(env), version: VERSION };
  const log = await stderrLog(env);
  const root = rootFrom(env, options.root);
  const { authority, ownUrl, ...serving } = await servingOf(root, options, env);
  if (authority !== undefined) trustAlso(authority);
  await using stack = new AsyncDisposableStack();
  const database =
    options.embedded === true
      ? await openEmbedded({ root, stack })
      : await openExternal({ env, stack, log, isMigrating: options.migrate !== false });
  const controller = stack.use(
    await startController({
      db: database.db,
      listenConnection: database.listenConnection,
      log,
      ...serving,
      pageDirectory,
      config,
    }),
  );
  await keepContext(env, { url: ownUrl(controller.url), ca: authority }, database.replaceToken);
  log.info({ context: contextFileFrom(env) }, "this account's command line is set up for it");
  const ended = await Promise.race([
    database.exited,
    new Promise<undefined>((resolve) => {
      // It may have been told to stop while it started.
      if (signal.aborted) resolve(undefined);
      else signal.addEventListener("abort", () => resolve(undefined), { once: true });
    }),
  ]);
  if (ended !== undefined) throw new Failure("database_ended", `the embedded PostgreSQL ended by itself: ${ended}`);
  log.info({}, "stopping");
  return 0;
}

/** The command line of the account that runs the controller finds it by a 0600 context file; a token that works is kept. */
export async function keepContext(
  env: Environment,
  { url, ca }: { readonly url: string; readonly ca: string | undefined },
  replaceToken: () => Promise<string>,
): Promise<string> {
  const file = path.resolve(contextFileFrom(env));
  const known = readContext(file, "local");
  const works =
    known !== undefined &&
    (await createClient({ baseUrl: url, credential: known.token })
      .call("whoami", {})
      .then(
        () => true,
        () => false,
      ));
  const token = works ? known.token : await replaceToken();
  writeContext(file, "local", { url, token, ...(ca === undefined ? {} : { ca }) });
  return token;
}
