// The keys of the page, over everything else.
import { Fragment } from "preact";
import { HELP } from "../keys.ts";
import { Dialog } from "../parts/dialog.tsx";

export function Help({ onClose }: { onClose(): void }) {
  return (
    <Dialog title="Keys" isLong onClose={onClose}>
      {() => (
        <div class="keys">
          {HELP.map(([heading, keys]) => (
            <Fragment key={heading}>
              <h3>{heading}</h3>
              <dl>
                {keys.map(([names, meaning]) => (
                  <div key={meaning}>
                    <dt>{names.split(" ").map((name) => <kbd key={name}>{name}</kbd>)}</dt>
                    <dd>{meaning}</dd>
                  </div>
                ))}
              </dl>
            </Fragment>
          ))}
        </div>
      )}
    </Dialog>
  );
}
