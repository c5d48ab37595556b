// SPDX-License-Identifier: Apache-2.0
// One field of a form with its label, its hint and its faults: those found here and those the controller named by place.

import { type ReactNode, useId } from "react";
import { Failure } from "../../../src/std/errors.ts";

export type Faults = readonly { readonly place: string; readonly problem: string }[];

export type FieldProps = {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly faults?: readonly string[];
  readonly children: (ids: {
    readonly id: string;
    readonly "aria-describedby": string;
    readonly "aria-invalid": boolean;
  }) => ReactNode;
};

export function Field({ label, hint, faults = [], children }: FieldProps) {
  const id = useId();
  const aboutId = `${id}-about`;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-describedby": aboutId, "aria-invalid": faults.length > 0 })}
      <div id={aboutId}>
        {faults.map((fault) => (
          <p key={fault} className="fault">
            {fault}
          </p>
        ))}
        {hint !== undefined && <p className="hint">{hint}</p>}
      </div>
    </div>
  );
}

export type TextFieldProps = Omit<FieldProps, "children"> & {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly type?: "text" | "password" | "number" | "search";
  readonly autoComplete?: string;
  readonly isRequired?: boolean;
  readonly placeholder?: string;
};

export function TextField({
  value,
  onChange,
  type = "text",
  autoComplete = "off",
  isRequired,
  placeholder,
  ...field
}: TextFieldProps) {
  return (
    <Field {...field}>
      {(ids) => (
        <input
          {...ids}
          type={type}
          value={value}
          placeholder={placeholder}
          required={isRequired}
          autoComplete={autoComplete}
          spellCheck={false}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

export type AreaFieldProps = Omit<FieldProps, "children"> & {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly rows?: number;
  readonly placeholder?: string;
};

export function AreaField({ value, onChange, rows = 3, placeholder, ...field }: AreaFieldProps) {
  return (
    <Field {...field}>
      {(ids) => (
        <textarea
          {...ids}
          rows={rows}
          value={value}
          placeholder={placeholder}
          spellCheck={false}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

export type SelectFieldProps = Omit<FieldProps, "children"> & {
  readonly value: string;
  readonly onChange: (value: string) => void;
  /** Value and text. */
  readonly choices: readonly (readonly [string, string])[];
};

export function SelectField({ value, onChange, choices, ...field }: SelectFieldProps) {
  return (
    <Field {...field}>
      {(ids) => (
        <select {...ids} value={value} onChange={(event) => onChange(event.target.value)}>
          {choices.map(([choice, text]) => (
            <option key={choice} value={choice}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** The faults that the controller found at one place of the body or below it. */
export function faultsAt(error: Error | null, place: string): readonly string[] {
  if (!(error instanceof Failure)) return [];
  return error.details
    .filter((fault) => fault.place === place || fault.place.startsWith(`${place}/`))
    .map((fault) =>
      fault.place === place ? fault.problem : `${fault.place.slice(place.length + 1)} ${fault.problem}`,
    );
}
