// SPDX-License-Identifier: Apache-2.0
// Lets in who is signed in, and shows everybody else how to sign in, at the same address.

import type { ReactNode } from "react";
import { Outlet } from "@tanstack/react-router";
import { FailureBox } from "../parts/failure.tsx";
import { Shell } from "./shell.tsx";
import { SignIn } from "./sign-in.tsx";
import { useSession, WhoProvider } from "./session.tsx";

export function Gate(): ReactNode {
  const session = useSession();
  if (session.data === null) return <SignIn secret={undefined} onDone={() => {}} />;
  if (session.data === undefined) {
    return (
      <main className="alone">
        {session.error === null ? (
          <p className="loading quiet">Loading…</p>
        ) : (
          <FailureBox error={session.error} onRetry={() => void session.refetch()} />
        )}
      </main>
    );
  }
  return (
    <WhoProvider value={session.data}>
      <Shell>
        <Outlet />
      </Shell>
    </WhoProvider>
  );
}
