// SPDX-License-Identifier: Apache-2.0
// Dialogs on the browser's own <dialog>: Esc closes them, the focus stays inside and goes back after.

import { type ReactNode, useId, useLayoutEffect, useRef } from "react";
import { ActionButton } from "./button.tsx";
import { FailureOf } from "./failure.tsx";

export type DialogProps = {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
  /** For commands, which are long. */
  readonly isWide?: boolean;
};

export function Dialog({ title, onClose, children, isWide = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  // Closed while it is still in the page: only then does the browser give the focus back.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={element} aria-labelledby={titleId} onClose={onClose} className={isWide ? "wide" : undefined}>
      <h2 id={titleId}>{title}</h2>
      {children}
    </dialog>
  );
}

export type ConfirmProps = {
  readonly title: string;
  readonly verb: string;
  readonly isPending: boolean;
  readonly error: Error | null;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
  readonly children: ReactNode;
};

/** Asks before what cannot be undone. */
export function Confirm({ title, verb, isPending, error, onConfirm, onClose, children }: ConfirmProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <FailureOf error={error} />
      <div className="buttons">
        <ActionButton kind="danger" onClick={onConfirm} isPending={isPending}>
          {verb}
        </ActionButton>
        <button type="button" onClick={onClose}>
          Keep it as it is
        </button>
      </div>
    </Dialog>
  );
}
