// SPDX-License-Identifier: Apache-2.0
// The ledger of one job as a timeline: what happened, when, in which epoch, by whom.

import { useInfiniteQuery } from "@tanstack/react-query";
import type { JobEvent } from "../../../src/protocol/job-schema.ts";
import { PAGE_MAX } from "../../../src/protocol/limits.ts";
import { api, type Reply } from "../app/api.ts";
import { ActionButton } from "../parts/button.tsx";
import { Loaded } from "../parts/failure.tsx";
import { Section } from "../parts/page.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Ago } from "../parts/time.tsx";

export function JobEvents({ jobId }: { readonly jobId: string }) {
  const events = useInfiniteQuery({
    queryKey: ["jobEvents", jobId],
    queryFn: ({ pageParam, signal }): Promise<Reply<"jobEvents">> =>
      api.call("jobEvents", { params: { jobId }, query: { after: pageParam, limit: PAGE_MAX } }, { signal }),
    initialPageParam: 0,
    getNextPageParam: ({ events: page }) => (page.length < PAGE_MAX ? undefined : page.at(-1)?.seq),
  });
  return (
    <Section title="What happened">
      <Loaded query={events}>
        {({ pages }) => (
          <ol className="timeline">
            {pages
              .flatMap((page) => page.events)
              .map((event) => (
                <EventLine key={event.seq} event={event} />
              ))}
          </ol>
        )}
      </Loaded>
      {events.hasNextPage && (
        <ActionButton onClick={() => void events.fetchNextPage()} isPending={events.isFetchingNextPage}>
          Load more
        </ActionButton>
      )}
    </Section>
  );
}

function EventLine({ event }: { readonly event: JobEvent }) {
  const data = Object.entries(event.data).map(
    ([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return (
    <li>
      <span className="number quiet">{event.seq}</span>
      <strong>{event.kind.replaceAll("_", " ")}</strong>
      <span>
        <Ago at={event.at} />{" "}
        <time className="quiet exact" dateTime={event.at}>
          {event.at}
        </time>
      </span>
      <span className="quiet">
        by <Foreign text={event.actorName ?? event.actor} />, epoch {event.epoch}
      </span>
      {data.length > 0 && (
        <span className="data code">
          <Foreign text={data.join("  ")} />
        </span>
      )}
    </li>
  );
}
