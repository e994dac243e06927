// Advice per tool: what `overspill advise` says, with the lines of a policy file to copy.
import { count } from "../format.ts";
import { Panel, Scrolling } from "../parts/boxes.tsx";
import { Copy } from "../parts/copy.tsx";
import { Name } from "../parts/text.tsx";
import type { Advice } from "../service/wire.ts";
import { visible } from "../viewer/text.ts";

const VERSION = "version = 1\n";

export function AdviceOnTools({ advice }: { advice: Advice[] }) {
  const told = advice.filter((each) => each.reasons.length > 0);
  const lacking = advice.filter((each) => each.missing).length;
  const fine = advice.length - told.length - lacking;
  const file = VERSION + told.map((each) => each.policy && `\n${each.policy}`).join("");
  if (advice.length === 0) return null;
  return (
    <Panel title="Advice" aside={file !== VERSION && <Copy text={file} label="Copy policy file" title="All of it, for Policy.load" />}>
      {told.length > 0 && <Told advice={told} />}
      {file !== VERSION && (
        <details>
          <summary>All of it as a policy file</summary>
          <p>It is for <code>Policy.load("policy.toml")</code>.</p>
          <pre tabIndex={0} role="region" aria-label="Policy file">{visible(file)}</pre>
        </details>
      )}
      <p class="quiet small">
        {fine > 0 && <>{toolsOf(fine)} may stay as {fine === 1 ? "it is" : "they are"}. </>}
        {lacking > 0 && <>{toolsOf(lacking)} {lacking === 1 ? "has" : "have"} fewer captures in this time than advice needs. </>}
        The present settings are taken to be those of a policy that sets nothing. For a policy of your own:{" "}
        <code>overspill advise --policy policy.toml</code>
      </p>
    </Panel>
  );
}

function toolsOf(number: number): string {
  return number === 1 ? "1 tool" : `${count(number)} tools`;
}

function Told({ advice }: { advice: Advice[] }) {
  return (
    <Scrolling label="Advice on tools">
      <table>
        <thead><tr><th scope="col">Tool</th><th scope="col" class="figure">Limit in bytes</th><th scope="col">Preview</th><th scope="col">Why</th><th scope="col"><span class="unseen">Policy</span></th></tr></thead>
        <tbody>
          {advice.map((each) => (
            <tr key={each.tool}>
              <td><Name text={each.tool} /></td>
              <td class="figure">{count(each.usual_max_bytes)}{each.max_bytes !== null && <> → <strong>{count(each.max_bytes)}</strong></>}</td>
              <td>{each.usual_strategy}{each.strategy !== null && <> → <strong>{each.strategy}</strong></>}</td>
              <td class="text">{each.reasons.join("; ")}</td>
              <td>{each.policy && <Copy text={each.policy} label="Copy policy lines" />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolling>
  );
}
