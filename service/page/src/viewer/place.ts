// Where the reader is in the lines of a capture, and what the bar, the wheel and the keys do to that.
//
// A browser cannot scroll over more than some 10 million pixels. So the bar of a long capture is scaled: small movements
// go line by line, large ones in proportion.
import { revealMark } from "./sideways.ts";
import { advanced, atEnd } from "./wrapping.ts";

/** Pixels of a row that is not wrapped. */
export const ROW = 20;
const MAX_HEIGHT = 8_000_000;
/** Wrapped lines that are drawn above the view, so that their heights are known. */
const ABOVE = 12;
/** Characters of a row on average: how long the bar of wrapped lines is. */
const WRAPPED_AT = 100;
/** Movements of fewer screens than this go line by line. */
const NEAR_SCREENS = 3;

export interface Shape {
  total: number;
  /** Bytes of the output: a live one grows inside its last line too. */
  size: number;
  /** Rows that fit into the view. */
  rows: number;
  isWrapped: boolean;
}

/** A position is a line counted from 0; its fraction is how much of that line is above the view. */
export class Place {
  box!: HTMLElement;
  /** What has the rows that are drawn. */
  drawn!: HTMLElement;
  private shape: Shape = { total: 0, size: 0, rows: 0, isWrapped: false };
  /** The position that is drawn. */
  private top = 0;
  /** Where the reader is by now, though it may not be drawn yet. */
  private now = 0;
  private lastScroll = 0;
  /** Whether the end of wrapped lines stays in view, whatever their heights turn out to be. */
  private wantsEnd = false;
  private isBarDue = false;
  /** The line whose match is to be in view once it is drawn. */
  private sought: number | undefined;

  /** `isFollowing`: whether the end is where the reader begins. */
  constructor(private readonly draw: (position: number) => void, private isFollowing: boolean) {}

  /** Note what is drawn next. */
  update(shape: Shape, top: number): void {
    this.shape = shape;
    this.top = top;
  }

  /** The line at the top of the view, counted from 0. */
  get first(): number {
    return Math.min(Math.floor(this.top), Math.max(0, this.shape.total - 1));
  }

  /** How many lines above the view are drawn. */
  get above(): number {
    return this.shape.isWrapped ? Math.min(this.first, ABOVE) : 0;
  }

  /** Whether the reader went to the end, and has not gone up since: they go on with a live output. */
  get isAtEnd(): boolean {
    return this.isFollowing;
  }

  /** Pixels of all lines, as far as a browser can scroll over them. */
  get height(): number {
    return Math.min(this.unscaled, MAX_HEIGHT);
  }

  /** Put a line into view, and what matches in it. */
  goToMatch(line: number): void {
    this.sought = line;
    this.goTo(line);
  }

  /** Put a line into view. */
  goTo(line: number): void {
    if (line !== this.sought) this.sought = undefined;
    const { total, rows, isWrapped } = this.shape;
    this.wantsEnd = isWrapped && line >= total;
    this.show(isWrapped ? line - 1 : line - 1 - Math.floor(rows / 3));
  }

  /** Go to the first of some lines unless all of them are in view. */
  reveal(first: number, last: number): void {
    const end = this.top + Math.floor(this.box.clientHeight / ROW);
    if (first - 1 < this.top || last > end) this.goTo(first);
  }

  move(lines: number): void {
    this.show(this.further(lines * ROW));
  }

  page(direction: 1 | -1): void {
    this.move(direction * (this.shape.rows - 2));
  }

  /** The bar has moved. */
  scrolled(): void {
    const moved = this.box.scrollTop - this.lastScroll;
    this.lastScroll = this.box.scrollTop;
    if (moved === 0) return;
    if (!this.isApart) this.setByOwnBar(moved);
    else if (Math.abs(moved) < NEAR_SCREENS * this.box.clientHeight) this.set(this.bounded(this.further(moved)));
    else this.setByBar(this.box.scrollTop / (this.box.scrollHeight - this.box.clientHeight));
  }

  /** The wheel moves over lines, not over the bar: one of its steps may be thousands of lines there. */
  turned(event: WheelEvent): void {
    if (!this.isApart || event.ctrlKey || event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? ROW : 1);
    this.set(this.bounded(this.further(pixels)));
    this.isBarDue = true;  // once a frame: the browser computes its layout for that
  }

  /** The bar has come to rest. */
  settled(): void {
    if (this.isApart) this.setBar(this.now);
  }

  /** Lines are wrapped from now on, or no longer. */
  wrapped(): void {
    if (!this.shape.isWrapped) this.drawn.style.transform = "";
    if (this.isFollowing) this.showEnd();
    else this.setBar(Math.min(this.now, this.furthest));
  }

  /** The capture has grown, or the view. Who looks at its end goes on with it; who has scrolled away stays there. */
  grown(): void {
    if (this.isFollowing) this.showEnd();
  }

  /** Rows are drawn: put wrapped ones where they belong, now that their heights are known. */
  placed(): void {
    if (this.isBarDue) this.setBar(this.top);
    this.isBarDue = false;
    if (this.sought !== undefined && revealMark(this.box, this.sought)) this.sought = undefined;
    if (!this.shape.isWrapped) {
      this.isFollowing ||= this.isAtFurthest(this.now);
      return;
    }
    const last = this.endOfWrapped();
    this.isFollowing ||= this.top >= last;
    const end = this.wantsEnd ? last : this.top;
    if (Math.abs(end - this.top) * this.heightOf(this.first) >= 1) this.show(end);
    else this.drawn.style.transform = `translateY(${-this.hidden()}px)`;
  }

  /** Show the line at this position at the top, and put the bar where it belongs. */
  private show(position: number): void {
    const wanted = this.bounded(position);
    this.setBar(wanted);
    this.set(wanted);
  }

  /** Put the last line into view. That of wrapped lines is, once their heights are known. */
  private showEnd(): void {
    if (this.shape.isWrapped) this.wantsEnd = true;
    else this.show(this.furthest);
  }

  private set(position: number): void {
    this.now = position;
    this.isFollowing = this.shape.isWrapped ? this.wantsEnd : this.isAtFurthest(position);
    this.draw(position);
  }

  /** Go to where a bar is that is not scaled. A larger view moves it up too: who follows goes on then. */
  private setByOwnBar(moved: number): void {
    const isAtEnd = this.box.scrollTop + this.box.clientHeight >= this.box.scrollHeight - 1;
    const isFollowing = isAtEnd && (moved > 0 || this.isFollowing);
    this.set(Math.min(this.box.scrollTop / ROW, Math.max(0, this.shape.total - 1)));
    this.isFollowing ||= isFollowing;
  }

  private setBar(position: number): void {
    const scaled = this.furthest ? (position / this.furthest) * (this.box.scrollHeight - this.box.clientHeight) : 0;
    this.box.scrollTop = this.isApart ? scaled : position * ROW;
    this.lastScroll = this.box.scrollTop;
  }

  /** Go to where the bar is, as a share of its way. */
  private setByBar(share: number): void {
    this.wantsEnd = this.shape.isWrapped && share > 0.999;
    this.set(share * this.furthest);
  }

  /** Return the position so many pixels further down. */
  private further(pixels: number): number {
    if (pixels < 0) this.wantsEnd = false;
    return this.shape.isWrapped ? advanced(this.now, pixels, this.heightOf, this.shape.total) : this.now + pixels / ROW;
  }

  private bounded(position: number): number {
    return Math.min(Math.max(0, position), this.furthest);
  }

  /** Return the pixels of drawn rows that are above the view. */
  private hidden(): number {
    let pixels = (this.top - this.first) * this.heightOf(this.first);
    for (let line = this.first - this.above; line < this.first; line += 1) pixels += this.heightOf(line);
    return pixels;
  }

  private readonly heightOf = (line: number): number => {
    const row = this.drawn.children[line - this.first + this.above] as HTMLElement | undefined;
    return row?.offsetHeight || ROW;
  };

  private isAtFurthest(position: number): boolean {
    return position >= this.furthest - 1;
  }

  /** Return where wrapped lines end at the end of the view; beyond all of them while the last is not drawn. */
  private endOfWrapped(): number {
    const { total, rows } = this.shape;
    if (!total) return this.top;
    const isDrawn = this.wantsEnd || this.first + rows >= total;
    return isDrawn ? atEnd(total, this.box.clientHeight, this.heightOf) : total;
  }

  /** The position that nobody can go beyond. */
  private get furthest(): number {
    const { total, rows, isWrapped } = this.shape;
    return isWrapped ? total - 0.001 : Math.max(0, total - Math.floor(rows * 0.8));
  }

  private get unscaled(): number {
    const { total, size, isWrapped } = this.shape;
    return isWrapped ? Math.max(total, size / WRAPPED_AT) * ROW : total * ROW;
  }

  /** Whether the bar only shows where the reader is, and movements are counted apart from it. */
  private get isApart(): boolean {
    return this.shape.isWrapped || this.unscaled > MAX_HEIGHT;
  }
}
