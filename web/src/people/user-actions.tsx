// SPDX-License-Identifier: Apache-2.0
// What may be done to a user: the rule (whyNotUser) and the scopes decide, and say why not.

import { useState } from "react";
import { type UserAction, whyNotUser } from "../../../src/protocol/user.ts";
import type { User } from "../../../src/protocol/user-schema.ts";
import { useAction, type Reply } from "../app/api.ts";
import { useWho, useWhyNot } from "../app/session.tsx";
import { ActionButton } from "../parts/button.tsx";
import { Confirm } from "../parts/dialog.tsx";
import { FailureOf } from "../parts/failure.tsx";

export type UserActionsProps = {
  readonly user: User;
  readonly users: readonly User[];
  readonly onLink: (link: Reply<"loginLinkCreate">) => void;
};

function ruleOf(user: User, users: readonly User[]): (action: UserAction) => string | undefined {
  const activeAdmins = users.filter((each) => each.role === "admin" && each.disabledAt === null).length;
  return (action) => whyNotUser(action, { role: user.role, isDisabled: user.disabledAt !== null, activeAdmins });
}

export function UserActions({ user, users, onLink }: UserActionsProps) {
  const params = { userId: user.id };
  const rule = ruleOf(user, users);
  const role = useAction("userRole");
  const enable = useAction("userEnable");
  const link = useAction("loginLinkCreate", onLink);
  const whyNotRole = useWhyNot("userRole");
  const whyNotEnable = useWhyNot("userEnable");
  const whyNotLink = useWhyNot("loginLinkCreate");
  const isAdmin = user.role === "admin";
  const disabled = user.disabledAt === null ? undefined : "the user is disabled: enable them first";
  return (
    <div className="buttons tight">
      <ActionButton
        whyNot={whyNotRole ?? (isAdmin ? rule("demote") : disabled)}
        isPending={role.isPending}
        onClick={() => role.mutate({ params, body: { role: isAdmin ? "member" : "admin" } })}
        label={`Make ${user.name} ${isAdmin ? "member" : "admin"}`}
      >
        Make {isAdmin ? "member" : "admin"}
      </ActionButton>
      <ActionButton
        whyNot={whyNotLink ?? disabled}
        isPending={link.isPending}
        onClick={() => link.mutate({ body: { userId: user.id } })}
        label={`Login link for ${user.name}`}
      >
        Login link
      </ActionButton>
      <SignOutButton user={user} />
      {user.disabledAt === null ? (
        <DisableButton user={user} rule={rule} />
      ) : (
        <ActionButton
          whyNot={whyNotEnable ?? rule("enable")}
          isPending={enable.isPending}
          onClick={() => enable.mutate({ params })}
          label={`Enable ${user.name}`}
        >
          Enable
        </ActionButton>
      )}
      <FailureOf error={role.error ?? link.error ?? enable.error} />
    </div>
  );
}

/** One may sign oneself out everywhere, and an admin anyone. */
function SignOutButton({ user }: { readonly user: User }) {
  const who = useWho();
  const [done, setDone] = useState<number>();
  const signOut = useAction("userSignOut", ({ signedOut }) => setDone(signedOut));
  // Reading suffices for oneself; for others the route itself asks for what disabling them would need.
  const whyNotOthers = useWhyNot("userDisable");
  const whyNot = user.id === who.userId ? undefined : whyNotOthers;
  return (
    <>
      <ActionButton
        whyNot={whyNot}
        isPending={signOut.isPending}
        onClick={() => signOut.mutate({ params: { userId: user.id } })}
        label={`Sign ${user.name} out everywhere`}
      >
        Sign out everywhere
      </ActionButton>
      {done !== undefined && (
        <span role="status" className="quiet">
          {done} {done === 1 ? "browser" : "browsers"} signed out
        </span>
      )}
      <FailureOf error={signOut.error} />
    </>
  );
}

function DisableButton({
  user,
  rule,
}: {
  readonly user: User;
  readonly rule: (action: UserAction) => string | undefined;
}) {
  const [isAsking, setAsking] = useState(false);
  const disable = useAction("userDisable", () => setAsking(false));
  const whyNotRoute = useWhyNot("userDisable");
  return (
    <>
      <ActionButton
        kind="danger"
        whyNot={whyNotRoute ?? rule("disable")}
        onClick={() => setAsking(true)}
        label={`Disable ${user.name}`}
      >
        Disable
      </ActionButton>
      {isAsking && (
        <Confirm
          title={`Disable ${user.name}?`}
          verb={`Disable ${user.name}`}
          isPending={disable.isPending}
          error={disable.error}
          onConfirm={() => disable.mutate({ params: { userId: user.id } })}
          onClose={() => setAsking(false)}
        >
          <p>
            Everything that {user.name} holds is revoked: browsers and tokens, also those that programs use. Enabling
            them again brings none of it back.
          </p>
        </Confirm>
      )}
    </>
  );
}
