// SPDX-License-Identifier: Apache-2.0
// What is shown when an address leads nowhere, or when a part of the page itself breaks.

import type { ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { FailureBox } from "../parts/failure.tsx";

export function NotFound(): ReactNode {
  return (
    <main className="alone">
      <h1>There is no such page</h1>
      <p>
        <Link to="/">Go to the overview</Link>
      </p>
    </main>
  );
}

export function PageFault({ error }: { readonly error: unknown }): ReactNode {
  return (
    <main className="alone">
      <h1>This part of the page broke</h1>
      <FailureBox
        error={error instanceof Error ? error : new Error(String(error))}
        onRetry={() => window.location.reload()}
      />
    </main>
  );
}
