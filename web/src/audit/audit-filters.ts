// SPDX-License-Identifier: Apache-2.0
// What the audit is filtered by, as it stands in the address.

import { searchText } from "../app/address.ts";

export type AuditFilters = { readonly action?: string | undefined; readonly subject?: string | undefined };

export function auditFiltersOf(search: unknown): AuditFilters {
  return { action: searchText(search, "action"), subject: searchText(search, "subject") };
}
