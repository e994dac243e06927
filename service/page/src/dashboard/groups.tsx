// A table of tools, or of tenants, in the order that the reader chooses.
import { Bar, Panel, Scrolling } from "../parts/boxes.tsx";
import { Name } from "../parts/text.tsx";
import { bytes, count, percent, rough } from "../format.ts";
import { link, setQuery, useRoute } from "../route.ts";
import { MOST_TOOLS } from "./asked.ts";
import { type Group, OTHER } from "./sums.ts";

interface Column {
  name: string;
  title: string;
  /** What the order goes by. */
  of(group: Group): number;
  show(group: Group): preact.ComponentChild;
}

const share = (part: number, whole: number) => (whole ? part / whole : -1);

/** A figure of outputs, a dash for what stored captures and told of no output. */
function ofOutputs({ outputs }: Group, shown: preact.ComponentChild) {
  return outputs > 0 ? shown : <span class="quiet">–</span>;
}

const COLUMNS: Column[] = [
  { name: "outputs", title: "Outputs", of: (each) => each.outputs, show: (each) => ofOutputs(each, count(each.outputs)) },
  { name: "large", title: "Too large", of: (each) => each.spilled, show: (each) => ofOutputs(each, count(each.spilled)) },
  {
    name: "share",
    title: "Share",
    of: (each) => share(each.spilled, each.outputs),
    show: (each) => <><Bar share={share(each.spilled, each.outputs)} /> <span>{percent(each.spilled, each.outputs)}</span></>,
  },
  { name: "kept", title: "Bytes kept out", of: (each) => each.bytes - each.kept, show: (each) => ofOutputs(each, bytes(Math.max(0, each.bytes - each.kept))) },
  { name: "tokens", title: "Tokens kept out", of: (each) => each.tokens, show: (each) => ofOutputs(each, <span title={count(each.tokens)}>{rough(each.tokens)}</span>) },
  { name: "captures", title: "Captures", of: (each) => each.captures, show: (each) => count(each.captures) },
  { name: "read", title: "Read back", of: (each) => share(each.read, each.captures), show: (each) => percent(each.read, each.captures) },
  { name: "again", title: "Run again", of: (each) => each.bursts, show: (each) => count(each.bursts) },
];
const USUAL = "kept";

export function Groups({ groups, kind }: { groups: Group[]; kind: string }) {
  const column = COLUMNS.find(({ name }) => name === useRoute().query.get("sort")) ?? COLUMNS.find(({ name }) => name === USUAL)!;
  const rank = (group: Group) => (group.name === OTHER ? -Infinity : column.of(group));
  const sorted = [...groups].sort((one, other) => rank(other) - rank(one));
  const hasOther = groups.some((each) => each.name === OTHER);
  return (
    <Panel title={`By ${kind.toLowerCase()}`}>
      <Scrolling label={`Figures by ${kind.toLowerCase()}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">{kind}</th>
              {COLUMNS.map((each) => <Head key={each.name} column={each} isChosen={each === column} />)}
            </tr>
          </thead>
          <tbody>{sorted.map((each) => <Line key={each.name} group={each} kind={kind} />)}</tbody>
        </table>
      </Scrolling>
      {hasOther && groups.length <= MOST_TOOLS && (
        <p><button type="button" class="small" onClick={() => setQuery({ all: 1 })}>Tell more {kind.toLowerCase()}s apart</button></p>
      )}
    </Panel>
  );
}

function Head({ column: { name, title }, isChosen }: { column: Column; isChosen: boolean }) {
  return (
    <th scope="col" class="figure" aria-sort={isChosen ? "descending" : "none"}>
      <button type="button" class="sort" onClick={() => setQuery({ sort: name === USUAL ? null : name }, true)} title={`The most first by “${title}”`}>
        {title}
        <span aria-hidden="true">{isChosen ? " ↓" : ""}</span>
      </button>
    </th>
  );
}

function Line({ group, kind }: { group: Group; kind: string }) {
  return (
    <tr>
      <td><GroupName name={group.name} kind={kind} /></td>
      {COLUMNS.map((each) => <td key={each.name} class="figure">{each.show(group)}</td>)}
    </tr>
  );
}

function GroupName({ name, kind }: { name: string; kind: string }) {
  const { query } = useRoute();
  if (name === OTHER) return <span class="quiet">all other {kind.toLowerCase()}s</span>;
  if (!name) return <Name text="" empty="without a name" />;
  return <a href={link([], { ...Object.fromEntries(query), tool: name })} title={`Only this ${kind.toLowerCase()}`}><Name text={name} /></a>;
}
