// SPDX-License-Identifier: Apache-2.0
// Tables: what is taken, and that every fault of another is told at once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { addressText, parseAddress, parseTable, type Table } from "./table.ts";

const whole: Table = {
  fronts: [
    {
      listen: { host: "127.0.0.1", port: 8011 },
      target: {
        kind: "serving",
        upstream: {
          address: { host: "::1", port: 8001 },
          model: "qwen3-8b",
          identity: { bootId: "b", pid: 7, startTicks: "12", pidfdInode: "4" },
          marker: {
            path: "/v1/models",
            pointer: "/data/*/id",
            value: { any: ["json"] },
            generation: { path: "/v1/completions", body: {}, pointer: "/text", text: "red" },
          },
        },
      },
      httpStatus: true,
      drainMs: 0,
    },
    { listen: { host: "127.0.0.1", port: 8012 }, target: { kind: "holding", why: "the scene switches" } },
    { listen: { host: "::1", port: 8011 }, target: { kind: "refusing", why: "no scene is active" } },
  ],
};

test("a table comes through JSON as it was", () => {
  const parsed = parseTable(JSON.parse(JSON.stringify(whole)));
  assert.deepEqual(parsed, { kind: "table", table: whole });
});

test("every fault of a table is told with its place", () => {
  const upstream = {
    address: { host: "localhost", port: 0, path: "/" },
    identity: { bootId: "b", pid: "7", startTicks: "x" },
    marker: { path: "v1/models HTTP/1.1", pointer: "/id" },
  };
  const parsed = parseTable({
    fronts: [
      { listen: { host: "a name", port: 70_000 }, target: { kind: "serving", upstream }, drainMs: -1, tls: true },
      { listen: { host: "127.0.0.1", port: 1 }, target: { kind: "closed" } },
      { listen: { host: "127.0.0.1", port: 1 }, target: { kind: "holding" }, httpStatus: "yes" },
      7,
    ],
    version: 2,
  });
  const places = parsed.kind === "invalid" ? parsed.faults.map(({ place }) => place) : [];
  for (const place of [
    "/version",
    "/fronts/0/tls",
    "/fronts/0/listen/port",
    "/fronts/0/listen/host",
    "/fronts/0/target/upstream/address/path",
    "/fronts/0/target/upstream/address/host",
    "/fronts/0/target/upstream/address/port",
    "/fronts/0/target/upstream/model",
    "/fronts/0/target/upstream/identity/pid",
    "/fronts/0/target/upstream/identity/startTicks",
    "/fronts/0/target/upstream/marker/path",
    "/fronts/0/target/upstream/marker/value",
    "/fronts/0/drainMs",
    "/fronts/1/target/kind",
    "/fronts/2/listen",
    "/fronts/2/target/why",
    "/fronts/2/httpStatus",
    "/fronts/3",
  ])
    assert.ok(places.includes(place), `${place} in ${places.join(" ")}`);
});

test("addresses are read as they are written", () => {
  for (const text of ["127.0.0.1:8011", "[::1]:80", "localhost:1"])
    assert.equal(addressText(parseAddress(text) ?? { host: "", port: 0 }), text);
  for (const none of ["8011", ":8011", "a:b", "127.0.0.1:70000", "::1:80", "a b:1", ""])
    assert.equal(parseAddress(none), undefined, none);
});
