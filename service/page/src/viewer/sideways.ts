// A match that stands far into its line is brought into view, sideways.

/** Scroll to the first mark of a line unless it is in view. Return whether that line has a mark by now. */
export function revealMark(box: HTMLElement, line: number): boolean {
  const mark = box.querySelector(`[data-line="${line}"] mark`)?.getBoundingClientRect();
  const number = box.querySelector(`[data-line="${line}"] .number`)?.getBoundingClientRect();
  if (!mark || !number) return false;
  const end = box.getBoundingClientRect().left + box.clientWidth;
  if (mark.left >= number.right && mark.right <= end) return true;
  const fromStart = box.scrollLeft + mark.left - number.right;
  const room = end - number.right;
  box.scrollLeft = fromStart + mark.width < room ? 0 : fromStart - room / 3;
  return true;
}
