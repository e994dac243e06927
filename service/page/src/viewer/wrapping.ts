// Where the reader is among wrapped lines, whose heights differ. A position is a line counted from 0, and as its
// fraction how much of that line is above the view.

export type HeightOf = (line: number) => number;

/** Return the position so many pixels further down. */
export function advanced(position: number, pixels: number, heightOf: HeightOf, total: number): number {
  let line = Math.min(Math.floor(position), total - 1);
  let into = (position - line) * heightOf(line) + pixels;
  while (into < 0 && line > 0) {
    line -= 1;
    into += heightOf(line);
  }
  while (into >= heightOf(line) && line < total - 1) {
    into -= heightOf(line);
    line += 1;
  }
  const height = heightOf(line);
  return line + Math.min(Math.max(0, into), Math.max(0, height - 1)) / height;
}

/** Return the position at which the end of the last line is at the end of a view of this height. */
export function atEnd(total: number, height: number, heightOf: HeightOf): number {
  return advanced(total - 1, heightOf(total - 1) - height, heightOf, total);
}
