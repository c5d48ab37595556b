// SPDX-License-Identifier: Apache-2.0
// The frame of every page: its title in the tab and as the heading, its actions, and lists of facts.

import { type ReactNode, useEffect } from "react";

export type PageProps = {
  readonly title: string;
  readonly heading?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
};

export function Page({ title, heading, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Holdfast`;
  }, [title]);
  return (
    <>
      <header className="page-head">
        <h1>{heading ?? title}</h1>
        <div className="buttons">{actions}</div>
      </header>
      {children}
    </>
  );
}

export function Section({
  title,
  actions,
  children,
}: {
  readonly title: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}) {
  return (
    <section aria-label={title}>
      <header className="section-head">
        <h2>{title}</h2>
        {actions}
      </header>
      {children}
    </section>
  );
}

export type Fact = readonly [string, ReactNode];

export function fact(name: string, value: ReactNode): Fact {
  return [name, value];
}

/** Names and values; a value that is null is left out. */
export function Facts({ rows }: { readonly rows: readonly Fact[] }) {
  return (
    <dl className="facts">
      {rows
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** In a cell that has nothing to show; on a narrow screen such cells are left out. */
export const none = <span className="quiet none">–</span>;

export type Column<Row> = {
  readonly head: string;
  readonly cell: (row: Row) => ReactNode;
  /** Right-aligned digits. */
  readonly isNumber?: true;
  /** Takes the room that is left. */
  readonly isWide?: true;
};

export type TableProps<Row> = {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  readonly empty: ReactNode;
  readonly isFaded?: (row: Row) => boolean;
};

/** On a narrow screen each row becomes a card whose cells carry their heads. */
export function Table<Row>({ label, columns, rows, keyOf, empty, isFaded }: TableProps<Row>) {
  if (rows.length === 0) return <div className="empty">{empty}</div>;
  return (
    <table aria-label={label}>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.head} scope="col" className={column.isNumber ? "number" : undefined}>
              {column.head === "" ? <span className="reader-only">Actions</span> : column.head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)} className={isFaded?.(row) === true ? "faded" : undefined}>
            {columns.map((column) => (
              <td key={column.head} data-head={column.head} className={classOf(column)}>
                <div>{column.cell(row)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function classOf<Row>({ isNumber, isWide }: Column<Row>): string | undefined {
  return isNumber ? "number" : isWide ? "wide" : undefined;
}
