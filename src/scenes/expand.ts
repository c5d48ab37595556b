// SPDX-License-Identifier: Apache-2.0
// ${NAME} in scenes.yaml: the model's own PORT, HOST, MODEL and HOME first, then the environment of whoever reads the file; in
// env values the secrets of env_file too. $$ is a dollar; ~/ begins a path in the home directory. Rule: a secret never gets
// into argv, which every account can read.

import fs from "node:fs";
import { messageOf } from "../std/errors.ts";

export type Environment = Readonly<Record<string, string | undefined>> & { readonly [name: string]: string };

export type ExpanderOptions = {
  readonly own: Environment;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly secrets: Environment;
  readonly fault: (place: string, problem: string) => void;
};

export class Expander {
  readonly #options: ExpanderOptions;

  constructor(options: ExpanderOptions) {
    this.#options = options;
  }

  argument(text: string, place: string): string {
    const { secrets, fault } = this.#options;
    return this.#home(
      this.#expand(text, place, (name) => {
        if (!Object.hasOwn(secrets, name)) return undefined;
        fault(place, `${name} is a secret of env_file, and argv can be read by everybody: name it in secrets`);
        return "";
      }),
    );
  }

  value(text: string, place: string): string {
    const { secrets } = this.#options;
    return this.#expand(text, place, (name) => (Object.hasOwn(secrets, name) ? secrets[name] : undefined));
  }

  path(text: string, place: string): string {
    return this.#home(this.#expand(text, place, () => undefined));
  }

  #home(text: string): string {
    return text.startsWith("~/") ? `${this.#options.own["HOME"] ?? ""}${text.slice(1)}` : text;
  }

  #expand(text: string, place: string, before: (name: string) => string | undefined): string {
    const { own, env, fault } = this.#options;
    return text.replaceAll(/\$\$|\$\{([^}]*)\}/g, (whole, name: string | undefined) => {
      if (name === undefined) return "$";
      const found = own[name] ?? before(name) ?? env[name];
      if (found === undefined) fault(place, `\${${name}} is not set`);
      return found ?? whole;
    });
  }
}

export type EnvFileRead =
  | { readonly kind: "read"; readonly values: Environment }
  | { readonly kind: "refused"; readonly problems: readonly string[] };

/** NAME=VALUE lines; blank lines and # are skipped; quotes around a value are taken off. */
export function readEnvFile(file: string): EnvFileRead {
  let text: string;
  try {
    const { mode } = fs.statSync(file);
    if ((mode & 0o077) !== 0)
      return {
        kind: "refused",
        problems: [`${file} can be read by others (mode ${(mode & 0o777).toString(8)}): chmod 600 ${file}`],
      };
    text = fs.readFileSync(file, "utf8");
  } catch (error) {
    return { kind: "refused", problems: [`cannot be read: ${messageOf(error)}`] };
  }
  const values: Record<string, string> = {};
  const problems: string[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    const match = /^\s*(?:export\s+)?([A-Za-z_]\w{0,127})=(.*)$/.exec(line);
    if (match === null) problems.push(`line ${index + 1} of ${file} is not NAME=VALUE`);
    else values[match[1] ?? ""] = (match[2] ?? "").trim().replace(/^(["'])(.*)\1$/, "$2");
  }
  return problems.length > 0 ? { kind: "refused", problems } : { kind: "read", values };
}
