// SPDX-License-Identifier: Apache-2.0
// gateway: the address that apps use. Only its options are read here.

import { type Command, Option } from "commander";
import { example, type Tree } from "./command.ts";
import type { Programs } from "./programs.ts";
import { parseDuration } from "./units.ts";

type Options = Omit<Parameters<Programs["gateway"]>[0], "drainMs"> & { readonly drain?: number };

export function addGatewayCommand(program: Command, { programs, setExitCode }: Tree): void {
  const gateway = program
    .command("gateway")
    .description("Pass connections on to a model server, byte for byte")
    .option("--listen <host:port>", "the address that apps use")
    .option("--upstream <host:port>", "where the model server listens")
    .option("--marker <value>", "serve only while an id in /v1/models of the model server is exactly this")
    .option("--http-status", "refuse with a 503 that says why, instead of a TCP reset")
    .addOption(new Option("--control <socket>", "unix socket that takes tables and tells state and counters"))
    .option("--drain <duration>", "how long open connections may go on after SIGTERM (default: 30s)", parseDuration)
    .action(async ({ drain, ...options }: Options) =>
      setExitCode(await programs.gateway({ ...options, ...(drain === undefined ? {} : { drainMs: drain }) })),
    );
  example(
    gateway,
    "holdfast gateway --listen 127.0.0.1:8011 --upstream 127.0.0.1:8001",
    "holdfast gateway --listen 127.0.0.1:8011 --upstream 127.0.0.1:8001 --marker qwen3-8b",
    "holdfast gateway --control /run/holdfast/gateway.sock",
  );
}
