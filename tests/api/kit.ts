// SPDX-License-Identifier: Apache-2.0
// A second organisation on the same controller, with an admin's token and a node of its own: the stranger of access tests.

import { type Client, createClient } from "../../src/client/client.ts";
import { drawSecret, hashSecret } from "../../src/controller/access/credential.ts";
import { systemRandom } from "../../src/std/random.ts";
import { newNodeKey, NodeDouble, pairWith } from "../kit/node-double.ts";
import type { World } from "../kit/world.ts";

export type Stranger = { readonly client: Client; readonly token: string; readonly node: NodeDouble };

export async function secondOrganisation(world: World): Promise<Stranger> {
  const token = drawSecret("token", systemRandom);
  const [org, user, cred] = [world.ids("org"), world.ids("user"), world.ids("cred")];
  await world.sql("insert into app.organisation (id, name) values ($1, 'other')", [org]);
  await world.sql(`insert into app."user" (organisation_id, id, name, role) values ($1, $2, 'admin', 'admin')`, [
    org,
    user,
  ]);
  await world.sql(
    `insert into app.credential (organisation_id, id, kind, name, user_id, hash, scopes) values ($1, $2, 'token', 't', $3, $4, '{fleet:read,fleet:write,fleet:admin}')`,
    [org, cred, user, hashSecret(token)],
  );
  const client = createClient({ baseUrl: world.url, credential: token });
  const { code } = await client.call("pairingCreate", { body: { name: "anna" } });
  const key = newNodeKey();
  const { nodeId } = await pairWith(world.url, code, key);
  const node = new NodeDouble({ baseUrl: world.url, nodeId, credential: key.credential });
  await node.hello();
  return { client, token, node };
}
