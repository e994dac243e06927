// Only the lines that match, with some lines around each.
import { useState } from "preact/hooks";
import { get, type Match, pathOf, type Text } from "../api.ts";
import { useLoaded } from "../load.ts";
import { Trouble, Waiting } from "../parts/small.tsx";
import { Excerpt, type Shown } from "./excerpt.tsx";
import { patternOf, query, type Wanted } from "./search.ts";

const PAGE = 100;
/** Bytes of one answer, the most that the service gives. */
const MAX_BYTES = 65_536;

interface Page {
  matches: Match[];
  next: Record<string, string> | null;
}

export function Matches({ reference, wanted, context, onGo }: { reference: string; wanted: Wanted; context: number; onGo(line: number): void }) {
  const [more, setMore] = useState<Page>({ matches: [], next: null });
  const [problem, setProblem] = useState<Error>();
  const asked = { ...query(wanted), context, max_matches: PAGE, max_bytes: MAX_BYTES };
  const first = useLoaded(async (signal) => {
    setMore({ matches: [], next: null });
    return pageOf(await get<Text>(`${pathOf(reference)}/grep`, asked, signal));
  }, [reference, JSON.stringify(asked)]);
  if (first.problem ?? problem) return <Trouble problem={(first.problem ?? problem)!} />;
  if (!first.answer || first.isLoading) return <Waiting />;
  const matches = [...first.answer.matches, ...more.matches];
  const next = more.matches.length ? more.next : first.answer.next;
  const lines = linesOf(matches);
  const readOn = async () => {
    const found = pageOf(await get<Text>(`${pathOf(reference)}/grep`, next ?? {}));
    setMore({ matches: [...more.matches, ...found.matches], next: found.next });
  };
  return (
    <Excerpt label="Only the lines that match" lines={lines} highlight={patternOf(wanted)} onGo={onGo}>
      {next && <p><button type="button" class="small" onClick={() => void readOn().catch(setProblem)}>More matches</button></p>}
      {lines.length === 0 && <p class="quiet">No line matches.</p>}
    </Excerpt>
  );
}

function pageOf(text: Text): Page {
  return { matches: text.matches ?? [], next: text.next };
}

/** Return each line once, in order: the lines around one match may be those of another, or match too. */
function linesOf(matches: Match[]): [number, Shown][] {
  const lines = new Map<number, Shown>();
  const add = (number: number, text: string, isMatch: boolean) => {
    if (isMatch || !lines.has(number)) lines.set(number, { text, isMatch });
  };
  for (const { line_number: number, line, before, after } of matches) {
    before.forEach((text, at) => add(number - before.length + at, text, false));
    add(number, line, true);
    after.forEach((text, at) => add(number + 1 + at, text, false));
  }
  return [...lines].sort(([one], [other]) => one - other);
}
