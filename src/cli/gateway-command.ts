// SPDX-License-Identifier: Apache-2.0
// gateway, gateway metrics: the address that apps use, and its counters. Only options are read here.

import { type Command, Option } from "commander";
import { example, type Tree } from "./command.ts";
import type { Programs } from "./programs.ts";
import { parseDuration } from "./units.ts";

type Options = Omit<Parameters<Programs["gateway"]>[0], "drainMs"> & { readonly drain?: number };

export function addGatewayCommand(program: Command, { terminal, programs, setExitCode }: Tree): void {
  const gateway = program
    .command("gateway")
    .enablePositionalOptions()
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

  const metrics = gateway
    .command("metrics")
    .description("Print the counters of the gateway that runs, in Prometheus' text format")
    .option("--root <directory>", "the root whose gateway is meant (default: HOLDFAST_ROOT)")
    .option("--control <socket>", "the control socket of another gateway")
    .option("--file <file>", "replace this file instead, for a collector that reads files")
    .action(async (options: { root?: string; control?: string; file?: string }) => {
      const text = await programs.gatewayMetrics(options);
      if (options.file === undefined) terminal.stdout.write(text);
    });
  example(
    metrics,
    "holdfast gateway metrics",
    "holdfast gateway metrics --file /var/lib/prometheus/node-exporter/holdfast-gateway.prom",
  );
}
