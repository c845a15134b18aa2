/** A label next to a point of a drawing: its position in percent, and its number of letters. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly letters: number;
}

/**
 * Pixels: the width of a letter and the height of a line of small type, and the gap between a point and its
 * label.
 */
const LETTER = 6.4;
const LINE = 17;
const GAP = 8;

/**
 * The labels, in order, that overlap no earlier label and fit inside; labels in the right half extend to the
 * left.
 */
export function freePlaces(
  boxes: readonly Box[],
  { width, height }: { readonly width: number; readonly height: number },
): ReadonlySet<number> {
  const taken: { readonly x: number; readonly y: number; readonly end: number }[] = [];
  const free = new Set<number>();
  for (const [at, { left, top, letters }] of boxes.entries()) {
    const size = letters * LETTER;
    const anchor = (left * width) / 100;
    const x = left > 50 ? anchor - GAP - size : anchor + GAP;
    const y = (top * height) / 100;
    if (x < 0 || x + size > width) continue;
    if (taken.some((other) => Math.abs(other.y - y) < LINE && x < other.end && other.x < x + size)) continue;
    taken.push({ x: x - GAP, y, end: x + size + GAP });
    free.add(at);
  }
  return free;
}
