// Dialogs. While one is open no key reaches the page behind it.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface DialogProps {
  title: string;
  /** Whether it is closed at its head: it may be longer than the screen. */
  isLong?: boolean;
  onClose(): void;
  children(close: () => void): ComponentChildren;
}

export function Dialog({ title, isLong = false, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="dialog-title">
      <header>
        <h2 id="dialog-title">{title}</h2>
        {isLong && <button type="button" class="small" autofocus onClick={() => dialog.current?.close()}>Close</button>}
      </header>
      {children(() => dialog.current?.close())}
    </dialog>
  );
}

/** Ask before something is done that nobody can undo. */
export function Confirm({ title, action, onDo, onClose, children }: { title: string; action: string; onDo(): void; onClose(): void; children: ComponentChildren }) {
  return (
    <Dialog title={title} onClose={onClose}>
      {(close) => (
        <>
          {children}
          <p class="actions">
            <button type="button" autofocus onClick={close}>Cancel</button>
            <button type="button" class="danger" onClick={() => (close(), onDo())}>{action}</button>
          </p>
        </>
      )}
    </Dialog>
  );
}
