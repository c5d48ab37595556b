// SPDX-License-Identifier: Apache-2.0
// What is around every page: navigation, the state of the connection, who is signed in, the keys, the version.

import { type ReactNode, useState } from "react";
import { useApi } from "./api.ts";
import { KeysDialog, useKeys } from "./keys.tsx";
import { type Connection, useLive } from "./live.ts";
import { Navigation } from "./navigation.tsx";

export function Shell({ children }: { readonly children: ReactNode }) {
  const connection = useLive();
  const [areKeysShown, showKeys] = useState(false);
  useKeys(() => showKeys(true));
  return (
    <div className="shell">
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <Navigation />
      <div className="page">
        <ConnectionBar connection={connection} />
        <main id="main" tabIndex={-1}>
          {children}
        </main>
        <Footer connection={connection} onKeys={() => showKeys(true)} />
      </div>
      {areKeysShown && <KeysDialog onClose={() => showKeys(false)} />}
    </div>
  );
}

function ConnectionBar({ connection }: { readonly connection: Connection }) {
  return (
    <div role="status" className="connection">
      {connection === "lost" && <p className="lost">▲ Connection lost, trying again. What you see may be old.</p>}
    </div>
  );
}

const liveText: Readonly<Record<Connection, string>> = { connecting: "connecting", live: "live", lost: "not live" };

function Footer({ connection, onKeys }: { readonly connection: Connection; readonly onKeys: () => void }) {
  const overview = useApi("overview", {});
  return (
    <footer>
      <span>Holdfast {overview.data?.version ?? ""}</span>
      <span>{liveText[connection]}</span>
      <button type="button" className="link" onClick={onKeys}>
        Keys <kbd>?</kbd>
      </button>
    </footer>
  );
}
