// What happened over time: how often outputs were too large, what that kept out of conversations, what was read back.
import { useState } from "preact/hooks";
import { Panel } from "../parts/boxes.tsx";
import { FirstSteps } from "../parts/first_steps.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { Name } from "../parts/text.tsx";
import { type Loaded, useLoaded, useTicks } from "../load.ts";
import { useRoute } from "../route.ts";
import { get } from "../service/api.ts";
import type { Listing, Overview, SignedIn, Usage } from "../service/wire.ts";
import { AdviceOnTools } from "./advice.tsx";
import { type Asked, asked, figures } from "./asked.ts";
import { Cards } from "./cards.tsx";
import { Charts } from "./charts.tsx";
import { Controls, Since } from "./controls.tsx";
import { Modes, Sizes } from "./distributions.tsx";
import { Groups } from "./groups.tsx";
import { Largest, LARGEST } from "./largest.tsx";
import { byGroup, sum, type Sums } from "./sums.ts";

/** How often figures of a time that moves on are fetched: sooner while there are none. */
const AGAIN_MS = 60_000;
const FIRST_MS = 5_000;

export function Dashboard({ who }: { who: SignedIn }) {
  const view = asked(useRoute().query, who);
  const [isEmpty, setEmpty] = useState(false);
  const ticks = useTicks(view.span === null, isEmpty ? FIRST_MS : AGAIN_MS);
  const found = useLoaded(async (signal) => {
    const answer = await figures(view, view.tool, signal);
    setEmpty(isNothing(sum(answer.series)));
    return answer;
  }, [JSON.stringify(view), ticks]);
  const stored = useLoaded((signal) => get<Usage>("usage", {}, signal), [ticks]);
  const largest = useLoaded((signal) => get<Listing>("captures", { sort: "size", limit: LARGEST }, signal), [ticks]);
  return (
    <div class="dashboard">
      <h1>
        {view.isFleet ? "All tenants" : `Tenant ${who.tenant}`}
        {view.tool !== null && <>, {view.isFleet ? "tenant" : "tool"} <Name text={view.tool} empty="without a name" /></>}
      </h1>
      <Controls view={view} who={who} />
      <div class={found.isLoading ? "is-loading" : ""} aria-busy={found.isLoading}>
        <Shown of={found}>{(answer) => <Figures found={answer} view={view} stored={stored} largest={largest} />}</Shown>
      </div>
    </div>
  );
}

function isNothing(total: Sums): boolean {
  return total.outputs === 0 && total.captures === 0;
}

interface FiguresProps {
  found: Overview;
  view: Asked;
  stored: Loaded<Usage>;
  largest: Loaded<Listing>;
}

function Figures({ found, view, stored, largest }: FiguresProps) {
  const { isFleet, tool } = view;
  const total = sum(found.series);
  const isOne = tool !== null;
  if (isNothing(total)) return <NothingYet isOne={isOne} />;
  const groups = byGroup(found.tools, isFleet ? "tenant" : "tool");
  return (
    <>
      <Since found={found} view={view} />
      <Cards total={total} stored={isFleet || isOne ? undefined : stored.answer} />
      <Charts found={found} view={view} groups={groups} />
      {!isOne && <Groups groups={groups} kind={isFleet ? "Tenant" : "Tool"} />}
      {!isFleet && <AdviceOnTools advice={found.advice} />}
      <div class="side-by-side">
        <Sizes rows={found.series} />
        <Modes rows={found.series} />
      </div>
      {!isFleet && !isOne && <Panel title="The captures that cost most"><Shown of={largest}>{({ captures }) => <Largest captures={captures} />}</Shown></Panel>}
    </>
  );
}

function NothingYet({ isOne }: { isOne: boolean }) {
  return (
    <Empty title="Nothing happened in this time">
      <p>{isOne ? "Choose a longer time, or all tools." : "Choose a longer time, or bring the first output here. This page fills itself."}</p>
      {!isOne && <FirstSteps what="its figures appear" />}
    </Empty>
  );
}
