// What a terminal shows of a line that was written to more than once: progress bars, edited commands. The same as the service's
// readers say it (overspill/reading/terminal_line.py, which explains the sequences), with the colours.

interface Cell {
  text: string;
  style: string;
}

interface Token {
  text: string;
  /** What moves the cursor or erases: `\r`, `\b`, `\t`, the letter of a control sequence, or 7 and 8 of ESC. */
  move: string;
  amount: number;
}

const TOKEN =
  /\u001b(?:\[([0-?]*)[ -/]*([@-~])|([78M])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|[ -/]+[0-~]|[0-Z\\-~]|)|[\r\b\t]|[^\u001b\r\b\t]+/g;
const TO_START = /\u001b\[[01]?G/g;
const MOVES = "@ABCDGHJKPXf";
/** In a line without it, the cursor goes nowhere but to the start. */
const EDITED = /[\b]|\u001bM|\u001b\[[0-9;]*[@-DGPX]|\u001b7\u001b\[[0-9;]*[Hf]/;
const WRITTEN_TWICE = /\r[^\r]|[\b]|\u001b(?:\[[0-9;]*[@-DGHJKPXf]|[7M])/;
const COLUMNS = /\u001b\]633;P;Columns=(\d{1,5})(?:\u0007|\u001b\\)/g;
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const NO_WIDTH = /[\p{M}\p{Cf}\p{Cc}]/u;
const TAB = 8;
const MOST_COLUMNS = 1_000;
const LONGEST_STYLE = 256;
const BLANK: Cell = { text: " ", style: "" };

/**
 * Return a line as a terminal of so many columns shows it in the end; 0 columns if nobody knows how many. The line itself may
 * say how many there are.
 */
export function shownLine(line: string, columns: number): string {
  if (!WRITTEN_TWICE.test(line)) return line;
  columns = Number([...line.matchAll(COLUMNS)].at(-1)?.[1] ?? columns);
  const drawn = line.replace(TO_START, "\r");
  const room = 2 * line.length + MOST_COLUMNS;
  return new Line(columns <= MOST_COLUMNS ? columns : 0, room, !EDITED.test(drawn)).draw(shownTokens(drawn));
}

/** Return the parts of a line, without returns at its end: they overwrite nothing, and a bar that is erased then stays. */
function shownTokens(line: string): Token[] {
  const tokens = [...line.matchAll(TOKEN)].map(([text, parameters, letter, cursor]) => {
    const move = cursor?.replace("M", "A") ?? (letter !== undefined && (MOVES.includes(letter) || letter === "m") ? letter : text.length === 1 && "\r\b\t".includes(text) ? text : "");
    const amount = Math.min(Number.parseInt(parameters ?? "", 10) || 0, MOST_COLUMNS);
    return { text, move: /^[<=>?]/.test(parameters ?? "") ? "" : move, amount };
  });
  let end = tokens.length;
  for (let at = end - 1; at >= 0 && (tokens[at]!.move || tokens[at]!.text.startsWith("\u001b")); at -= 1) {
    if (tokens[at]!.move === "\r") end = at;
    else if (tokens[at]!.move && !"KJm".includes(tokens[at]!.move)) break;
  }
  return tokens.slice(0, end);
}

/** A line on a screen: one cell for each column, in one row after another. */
class Line {
  private cells: Cell[] = [];
  private at = 0;
  private style = "";
  /** Whether the last column is written, so that the next character wraps. */
  private isAtEdge = false;
  private isAnew = false;
  private saved: number | undefined;
  private rowsAbove = 0;
  /** What is drawn outside of the line, while the cursor is there. */
  private elsewhere: Cell[] | undefined;

  constructor(
    private readonly columns: number,
    private readonly room: number,
    private readonly hasOnlyReturns: boolean,
  ) {}

  draw(tokens: Token[]): string {
    for (const token of tokens) {
      if (token.move) this.move(token.move, token.amount, token.text);
      else if (!token.text.startsWith("\u001b")) this.write(token.text);
    }
    const end = this.elsewhere ? 0 : this.at;
    while (this.cells.length > end && this.cells.at(-1)!.text === " ") this.cells.pop();
    for (const cell of this.elsewhere ?? []) this.cells.push(cell);
    return joined(this.cells);
  }

  private write(text: string): void {
    const cells = cellsOf(text, this.style);
    if (this.elsewhere) {
      for (const cell of cells) this.elsewhere.push(cell);
      this.at += cells.length;
      return;
    }
    if (this.isAnew) this.cells.length = Math.min(this.cells.length, this.at);
    this.pad(this.at);
    if (cells.length) {
      this.split(this.at);
      this.split(this.at + cells.length);
    }
    for (const cell of cells) this.cells[this.at++] = cell;
    this.isAnew = false;
    this.isAtEdge = this.columns > 0 && cells.length > 0 && this.at % this.columns === 0;
  }

  private move(what: string, amount: number, text: string): void {
    if (what === "m") return this.take(text);
    if (this.isAtEdge) {
      if ("KJ".includes(what) && !amount) return;
      this.at -= 1;
      this.isAtEdge = false;
    }
    if ("78Hf".includes(what)) this.save(what);
    else if ("\rKJP@X".includes(what) && this.elsewhere) this.beginElsewhere(what);
    else if ("KJ".includes(what)) this.erase(what, amount);
    else if ("P@X".includes(what)) this.change(what, amount || 1);
    else if (what === "\r") this.comeBack();
    else if (what === "A") this.goUp(amount || 1);
    else if (what === "B") this.goDown(amount || 1);
    else this.go(what, amount || 1);
  }

  private take(style: string): void {
    const isEnd = /^\u001b\[[0;]*m$/.test(style);
    this.style = isEnd ? "" : (this.style.length + style.length > LONGEST_STYLE ? "" : this.style) + style;
  }

  /** Go to the start of the row. Where nothing else moves, to that of the line: a bar begins anew. */
  private comeBack(): void {
    const start = this.rowStart();
    const isWrapped = start > 0 && this.at === start + 1 && this.cells.length === this.at && this.cells[start]!.text === " ";
    this.at = isWrapped || !this.hasOnlyReturns ? start : 0;
    this.isAnew = this.hasOnlyReturns;
  }

  private go(what: string, amount: number): void {
    const start = this.rowStart();
    const most = Math.min(start + (this.columns || this.cells.length + MOST_COLUMNS) - 1, this.room);
    if (what === "\t") this.tab(Math.min(this.at + TAB - ((this.at - start) % TAB), most));
    else if (what === "\b") this.at = Math.max(start, this.at - 1);
    else if (what === "D") this.at = Math.max(start, this.at - amount);
    else this.at = Math.min(what === "C" ? this.at + amount : start + amount - 1, most);
  }

  private goUp(rows: number): void {
    const inLine = this.columns ? Math.min(rows, Math.floor(this.at / this.columns)) : 0;
    this.at -= inLine * this.columns;
    this.rowsAbove += rows - inLine;
    if (this.rowsAbove) this.elsewhere ??= [];
  }

  private goDown(rows: number): void {
    const back = Math.min(rows, this.rowsAbove);
    this.rowsAbove -= back;
    if (back && !this.rowsAbove) this.elsewhere = undefined;
    if (!this.columns) return;
    const below = Math.floor(Math.max(0, this.cells.length - 1 - this.rowStart()) / this.columns);
    this.at += this.columns * Math.min(rows - back, below);
  }

  /** Go to the next stop. A tab behind all that is written is kept. */
  private tab(stop: number): void {
    if (!this.elsewhere) {
      if (this.isAnew) this.cells.length = Math.min(this.cells.length, this.at);
      this.isAnew = false;
      if (this.at >= this.cells.length) {
        this.pad(this.at);
        this.cells.push({ text: "\t", style: this.style });
        while (this.cells.length < stop) this.cells.push({ text: "", style: this.style });
      }
    }
    this.at = Math.max(stop, this.at);
  }

  private erase(what: string, amount: number): void {
    let start = this.at;
    let stop = what === "J" || !this.columns ? this.cells.length : this.rowStop();
    if (amount === 1) {
      start = Math.max(this.rowStart(), this.at - MOST_COLUMNS);
      stop = Math.min(stop, this.at + 1);
    } else if (amount) {
      start = what === "J" ? 0 : this.rowStart();
      if (what === "J") this.at = 0;
    }
    if (stop === this.cells.length) this.cells.length = Math.min(start, stop);
    else this.cells.fill(BLANK, start, stop);
  }

  private change(what: string, amount: number): void {
    const [start, stop] = [this.at, this.rowStop()];
    if (start >= stop) return;
    const row = this.cells.slice(start, stop);
    const blanks = Array<Cell>(amount).fill(BLANK);
    const changed =
      what === "@"
        ? [...blanks, ...row]
        : what === "P"
          ? [...row.slice(amount), ...(stop < this.cells.length ? blanks : [])]
          : [...blanks.slice(0, row.length), ...row.slice(amount)];
    const left = this.columns ? this.columns - (start - this.rowStart()) : changed.length;
    this.cells.splice(start, stop - start, ...changed.slice(0, left));
  }

  /** Begin the row outside of the line anew, if it is erased or returned to. */
  private beginElsewhere(what: string): void {
    if ("\rKJ".includes(what)) this.elsewhere = [];
    if (what === "\r") this.at = this.rowStart();
  }

  private save(what: string): void {
    if (what === "7") this.saved = this.at;
    else if (what === "8") {
      this.at = this.saved ?? this.at;
      this.saved = this.elsewhere = undefined;
      this.rowsAbove = 0;
    } else if (this.saved !== undefined) this.elsewhere = [];
  }

  /** Make blanks of a wide character or a tab that has this column, but does not begin there. */
  private split(at: number): void {
    if (this.cells[at]?.text !== "") return;
    let [start, stop] = [at, at];
    while (start && !this.cells[start]!.text) start -= 1;
    while (stop < this.cells.length && !this.cells[stop]!.text) stop += 1;
    this.cells.fill(BLANK, start, stop);
  }

  private pad(stop: number): void {
    while (this.cells.length < stop) this.cells.push(BLANK);
  }

  private rowStart(): number {
    return this.columns ? this.at - (this.at % this.columns) : 0;
  }

  private rowStop(): number {
    return Math.min(this.columns ? this.rowStart() + this.columns : this.at + MOST_COLUMNS, this.cells.length);
  }
}

/** Return what each column has: wide characters take two, marks and controls none. */
function cellsOf(text: string, style: string): Cell[] {
  const cells: Cell[] = [];
  for (const character of text) {
    if (cells.length && NO_WIDTH.test(character)) cells[cells.length - 1]!.text += character;
    else {
      cells.push({ text: character, style });
      if (WIDE.test(character)) cells.push({ text: "", style });
    }
  }
  return cells;
}

function joined(cells: Cell[]): string {
  const parts: string[] = [];
  let style = "";
  for (const cell of cells) {
    if (cell.style !== style) parts.push(style && "\u001b[0m", cell.style);
    style = cell.style;
    parts.push(cell.text);
  }
  return parts.join("");
}
