// SPDX-License-Identifier: Apache-2.0
// The command of a job: one line that is split as a shell would quote it, or one argument a line; and what comes of it.

import { shown } from "../parts/foreign.tsx";
import { AreaField, SelectField, TextField } from "../parts/field.tsx";
import { splitCommand } from "./split-command.ts";
import { type Draft, wordsOf } from "./submission.ts";

export type CommandFieldsProps = {
  readonly draft: Draft;
  readonly onChange: (changed: Partial<Draft>) => void;
  readonly faultsOf: (key: keyof Draft) => readonly string[];
};

export function CommandFields({ draft, onChange, faultsOf }: CommandFieldsProps) {
  const words = wordsOf(draft);
  const warning = draft.way === "line" ? splitCommand(draft.command).warning : undefined;
  const props = {
    label: "Command",
    value: draft.command,
    onChange: (command: string) => onChange({ command }),
    faults: faultsOf("command"),
  };
  return (
    <fieldset>
      <legend>What to run</legend>
      <SelectField
        label="Written as"
        value={draft.way}
        onChange={(way) => onChange({ way: way === "arguments" ? "arguments" : "line" })}
        choices={[
          ["line", "one line, with quotes as in a shell"],
          ["arguments", "one argument a line, nothing quoted"],
        ]}
      />
      {draft.way === "line" ? (
        <TextField {...props} placeholder="python3 train.py --epochs 3" hint={warning} />
      ) : (
        <AreaField {...props} rows={5} />
      )}
      <ol className="arguments" aria-label="Arguments">
        {words.map((word, index) => (
          <li key={`${index} ${word}`}>
            <code>{word === "" ? "(empty)" : shown(word)}</code>
          </li>
        ))}
      </ol>
    </fieldset>
  );
}
