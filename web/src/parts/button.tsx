// SPDX-License-Identifier: Apache-2.0
// Buttons that say why they cannot be used. Rule: what is not possible is shown disabled with its reason, never hidden; it
// stays focusable, so that the reason is reached by keyboard, by screen reader and by a tap.

import { type ReactNode, useId, useState } from "react";

export type ActionButtonProps = {
  readonly children: ReactNode;
  readonly onClick: () => void;
  /** Undefined: it can be done. */
  readonly whyNot?: string | undefined;
  readonly isPending?: boolean;
  readonly kind?: "plain" | "primary" | "danger";
  /** What it does, for those who do not see what it stands beside. */
  readonly label?: string;
};

export function ActionButton({
  children,
  onClick,
  whyNot,
  isPending = false,
  kind = "plain",
  label,
}: ActionButtonProps) {
  const [isAsked, setAsked] = useState(false);
  const reasonId = useId();
  const isOff = whyNot !== undefined;
  const click = (): void => {
    if (isOff) setAsked(!isAsked);
    else if (!isPending) onClick();
  };
  return (
    <span className="action">
      <button
        type="button"
        className={kind}
        onClick={click}
        aria-disabled={isOff || isPending}
        aria-busy={isPending}
        aria-label={label}
        title={whyNot}
        aria-describedby={isOff ? reasonId : undefined}
      >
        {children}
      </button>
      {isOff && (
        <span id={reasonId} className={isAsked ? "reason" : "reader-only"}>
          {whyNot}
        </span>
      )}
    </span>
  );
}

/** The button that sends a form; it says why it cannot. */
export function SubmitButton(props: Omit<ActionButtonProps, "onClick" | "kind">) {
  const reasonId = useId();
  const { whyNot, isPending = false } = props;
  return (
    <span className="action">
      <button
        type="submit"
        className="primary"
        aria-disabled={whyNot !== undefined || isPending}
        aria-busy={isPending}
        title={whyNot}
        aria-describedby={whyNot === undefined ? undefined : reasonId}
      >
        {props.children}
      </button>
      {whyNot !== undefined && (
        <span id={reasonId} className="reason">
          {whyNot}
        </span>
      )}
    </span>
  );
}
