// Only the lines that match, with some lines around each.
import { useState } from "preact/hooks";
import { useLoaded } from "../load.ts";
import { Trouble, Waiting } from "../parts/states.tsx";
import { get, pathOf } from "../service/api.ts";
import type { Match, Text } from "../service/wire.ts";
import { Excerpt, type Shown } from "./excerpt.tsx";
import type { Highlighter } from "./highlighter.ts";
import { query, type Wanted } from "./search.ts";

const PAGE = 100;
/** Bytes of one answer, the most that the service gives. */
const MAX_BYTES = 65_536;

interface Page {
  matches: Match[];
  next: Record<string, string> | null;
}

interface MatchesProps {
  reference: string;
  /** Lines of the whole output. */
  total: number;
  wanted: Wanted;
  context: number;
  highlighter: Highlighter | null;
  onGo(line: number): void;
}

export function Matches({ reference, total, wanted, context, highlighter, onGo }: MatchesProps) {
  const [more, setMore] = useState<Page>({ matches: [], next: null });
  const [problem, setProblem] = useState<Error>();
  const asked = { ...query(wanted), context, max_matches: PAGE, max_bytes: MAX_BYTES };
  const first = useLoaded(async (signal) => {
    setMore({ matches: [], next: null });
    return found(reference, asked, signal);
  }, [reference, JSON.stringify(asked)]);
  if (first.problem) return <Trouble problem={first.problem} onRetry={first.retry} />;
  if (!first.answer || first.isLoading) return <Waiting />;
  const matches = [...first.answer.matches, ...more.matches];
  const next = more.matches.length ? more.next : first.answer.next;
  const lines = linesOf(matches);
  const readOn = async () => {
    setProblem(undefined);
    const page = await found(reference, next ?? {});
    setMore({ matches: [...more.matches, ...page.matches], next: page.next });
  };
  return (
    <Excerpt label="Only the lines that match" lines={lines} total={total} highlighter={highlighter} onGo={onGo}>
      {problem && <Trouble problem={problem} />}
      {next && <p><button type="button" class="small" onClick={() => void readOn().catch(setProblem)}>More matches</button></p>}
      {lines.length === 0 && <p class="quiet">No line matches.</p>}
    </Excerpt>
  );
}

/** Return a page of matches. An answer without any, whose time was over, is gone on from. */
async function found(reference: string, asked: Record<string, string | number | boolean>, signal?: AbortSignal): Promise<Page> {
  let text = await get<Text>(`${pathOf(reference)}/grep`, asked, signal);
  while (!text.matches?.length && text.next) text = await get<Text>(`${pathOf(reference)}/grep`, text.next, signal);
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
