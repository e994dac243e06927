// One capture: what it is, what may be changed, and its output.
import { useState } from "preact/hooks";
import { useKeys } from "../keys.ts";
import { useLoaded } from "../load.ts";
import { Empty, Shown } from "../parts/states.tsx";
import { link } from "../route.ts";
import { get, isGone, pathOf, Problem } from "../service/api.ts";
import type { Entry, SignedIn } from "../service/wire.ts";
import { useGrowth } from "../viewer/growth.ts";
import { Details } from "./details.tsx";
import { Header } from "./header.tsx";
import { Output } from "./output.tsx";

/** From this width on there is room for the facts beside the lines. */
const ROOMY = "(min-width: 1280px)";

/** What the reader has chosen lasts as long as the page: the next output is shown the same way. */
const chosen: { facts?: boolean; alone: boolean } = { alone: false };

export function CapturePage({ reference, who }: { reference: string; who: SignedIn }) {
  const [version, setVersion] = useState(0);
  const refresh = () => setVersion((before) => before + 1);
  const entry = useLoaded((signal) => get<Entry>(pathOf(reference), {}, signal), [reference, version]);
  useGrowth(entry.answer, refresh);
  if (entry.problem && isGone(entry.problem)) return <Missing problem={entry.problem} />;
  return <Shown of={entry}>{(answer) => <Capture entry={answer} who={who} onChanged={refresh} />}</Shown>;
}

function Capture({ entry, who, onChanged }: { entry: Entry; who: SignedIn; onChanged(): void }) {
  const [hasFacts, setFacts] = useState(chosen.facts ?? matchMedia(ROOMY).matches);
  const [isAlone, setAlone] = useState(chosen.alone);
  const toggleFacts = () => setFacts((chosen.facts = !hasFacts));
  const toggleAlone = () => setAlone((chosen.alone = !isAlone));
  useKeys({ i: toggleFacts, z: toggleAlone });
  return (
    <article class={`capture ${isAlone ? "alone" : ""}`}>
      <Header entry={entry} hasFacts={hasFacts} onFacts={toggleFacts} isAlone={isAlone} onAlone={toggleAlone} />
      <div class="body">
        <Output entry={entry} onGone={onChanged} />
        {hasFacts && !isAlone && <Details entry={entry} who={who} onChanged={onChanged} />}
      </div>
    </article>
  );
}

/** What to do next if a capture is not there, or not any more. */
function Missing({ problem }: { problem: Error }) {
  const wasThere = problem instanceof Problem && problem.status === 410;
  return (
    <Empty isPage title={wasThere ? "This output is gone" : "There is no such output here"}>
      <p>
        {wasThere
          ? "It has expired, or somebody has deleted it. Its bytes are not kept any longer."
          : "The handle may have a typing error, or its output belongs to another tenant or session, or expired long ago."}
      </p>
      <p class="actions"><a class="button" href={link(["captures"])}>All captures</a> <a class="button" href={link(["sessions"])}>All sessions</a></p>
    </Empty>
  );
}
