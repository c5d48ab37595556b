// SPDX-License-Identifier: Apache-2.0
// Retires a model or a project, after it was asked whether that is meant.

import { useState } from "react";
import type { Input } from "../../../src/client/client.ts";
import { useAction } from "../app/api.ts";
import { useWhyNot } from "../app/session.tsx";
import { ActionButton } from "../parts/button.tsx";
import { Confirm } from "../parts/dialog.tsx";
import { Ago } from "../parts/time.tsx";

type Retirable = "modelRetire" | "projectRetire";

export type RetireButtonProps<Name extends Retirable> = {
  readonly route: Name;
  readonly item: { readonly name: string; readonly retiredAt: string | null };
  readonly input: Input<Name>;
  readonly what: string;
};

export function RetireButton<Name extends Retirable>({ route, item, input, what }: RetireButtonProps<Name>) {
  const [isAsking, setAsking] = useState(false);
  const retire = useAction(route, () => setAsking(false));
  const whyNot = useWhyNot(route);
  if (item.retiredAt !== null) {
    return (
      <span className="quiet">
        retired <Ago at={item.retiredAt} />
      </span>
    );
  }
  return (
    <>
      <ActionButton whyNot={whyNot} onClick={() => setAsking(true)} label={`Retire ${item.name}`}>
        Retire
      </ActionButton>
      {isAsking && (
        <Confirm
          title={`Retire the ${what} ${item.name}?`}
          verb={`Retire ${item.name}`}
          isPending={retire.isPending}
          error={retire.error}
          onConfirm={() => retire.mutate(input)}
          onClose={() => setAsking(false)}
        >
          <p>No new job can name it. Its jobs stay as they are, and its name is free for another one.</p>
        </Confirm>
      )}
    </>
  );
}
