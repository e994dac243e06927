// What changes a capture, for those who may.
import { useState } from "preact/hooks";
import { bytes } from "../format.ts";
import { Confirm } from "../parts/dialog.tsx";
import { Trouble } from "../parts/states.tsx";
import { Name } from "../parts/text.tsx";
import { link } from "../route.ts";
import { change, pathOf } from "../service/api.ts";
import type { Entry, SignedIn } from "../service/wire.ts";

const DAY = 86_400;
const TIMES: [seconds: number, name: string][] = [[DAY, "1 day"], [7 * DAY, "7 days"], [30 * DAY, "30 days"], [90 * DAY, "90 days"]];

export function Changes({ entry, who, onChanged }: { entry: Entry; who: SignedIn; onChanged(): void }) {
  const [problem, setProblem] = useState<Error>();
  const [isAsking, setAsking] = useState(false);
  const attempt = (work: Promise<unknown>, then: () => void) => {
    setProblem(undefined);
    void work.then(then, setProblem);
  };
  const remove = () => attempt(change("DELETE", pathOf(entry.id)), () => (location.hash = link(["captures"])));
  const keep = (ttl: number) => attempt(change("PATCH", pathOf(entry.id), { ttl }), onChanged);
  const may = (scope: string) => who.scopes.includes(scope) && !entry.held;
  if (!may("write") && !may("delete")) return null;
  return (
    <div class="changes">
      {may("write") && (
        <label class="small">
          Keep for{" "}
          <select value="" onChange={(event) => keep(Number(event.currentTarget.value))}>
            <option value="" disabled>choose</option>
            {TIMES.map(([seconds, name]) => <option key={name} value={seconds}>{name}</option>)}
          </select>
        </label>
      )}
      {may("delete") && <button type="button" class="small danger" onClick={() => setAsking(true)}>Delete…</button>}
      {isAsking && (
        <Confirm title="Delete this output for good?" action="Delete for good" onDo={remove} onClose={() => setAsking(false)}>
          <p><Name text={entry.tool} empty="A tool without a name" />, {bytes(entry.size)}, <code>{entry.id}</code>. Its bytes cannot be brought back, and its handle leads nowhere.</p>
        </Confirm>
      )}
      {problem && <Trouble problem={problem} />}
    </div>
  );
}
