// SPDX-License-Identifier: Apache-2.0
// Keys for the whole page. Rule: a key that is typed into a field, or with a modifier, is left alone.

import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { Dialog } from "../parts/dialog.tsx";

const SEQUENCE_MS = 1_500;

const places = { o: "/", n: "/nodes", j: "/jobs", a: "/audit", m: "/models", p: "/people" } as const;

const keys: readonly (readonly [string, string])[] = [
  ["/", "Search, on pages that have one"],
  ["g o", "Overview"],
  ["g n", "Nodes"],
  ["g j", "Jobs"],
  ["g a", "Audit"],
  ["g m", "Models"],
  ["g p", "People"],
  ["?", "These keys"],
  ["Esc", "Close a dialog"],
];

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("input, textarea, select, dialog") !== null;
}

function isPlace(key: string): key is keyof typeof places {
  return Object.hasOwn(places, key);
}

function focusSearch(): boolean {
  const search = document.querySelector<HTMLInputElement>("input[type=search]");
  search?.focus();
  search?.select();
  return search !== null;
}

export function useKeys(onHelp: () => void): void {
  const navigate = useNavigate();
  const wentAt = useRef(0);
  const help = useRef(onHelp);
  useEffect(() => {
    help.current = onHelp;
  });
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const isSecond = performance.now() - wentAt.current < SEQUENCE_MS;
      wentAt.current = 0;
      if (isSecond && isPlace(event.key)) {
        event.preventDefault();
        void navigate({ to: places[event.key] });
      } else if (event.key === "g") wentAt.current = performance.now();
      else if (event.key === "?") help.current();
      else if (event.key === "/" && focusSearch()) event.preventDefault();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [navigate]);
}

export function KeysDialog({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl className="keys">
        {keys.map(([key, text]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <div className="buttons">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
