import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/shown.ts';
import { linesFrom } from '../lines/row-layout.ts';
import type { RowWindow } from '../lines/row-window.ts';
import { countFields } from './record-scanner.ts';

/** The lines before the first row or header. */
export interface TextHead {
  /** Position in the window after them. */
  readonly end: number;
  readonly comments: number;
  /** The delimiter that Excel's first line, such as `sep=;`, gives. */
  readonly delimiter?: string;
}

/** Throws UsageError for a text that cannot begin comment lines. */
export function checkComment(comment: string): void {
  if (typeof comment === 'string' && /^[\x20-\x7e]{0,16}$/.test(comment) && !comment.startsWith('"')) return;
  throw new UsageError(`lines that begin with ${shown(comment)} cannot be comments`, {
    advice: "Use ASCII characters other than quotes and line ends, such as # or %, or '' for no comments",
  });
}

/**
 * Finds Excel's line `sep=;` and comment lines at the beginning of a file. `comment`: see TextOptions.
 * `delimiterOf` finds the delimiter of the rows from a position on.
 */
export function findHead(
  window: RowWindow,
  comment: string | undefined,
  delimiterOf: (from: number) => string,
): TextHead {
  const marked: Line[] = [];
  const isMarked = (text: string) =>
    comment === undefined ? /^[%#]/.test(text) : comment !== '' && text.startsWith(comment);
  let row: number | undefined;
  for (const line of linesFrom(window, window.from)) {
    const separator = marked.length === 0 ? /^sep=(.)$/i.exec(line.text)?.[1] : undefined;
    if (separator !== undefined) return { end: line.end, comments: 0, delimiter: separator };
    if (!isMarked(line.text)) {
      row = line.start;
      break;
    }
    marked.push(line);
  }
  const comments =
    comment !== undefined
      ? marked
      : row === undefined
        ? []
        : commentsBefore(window, row, marked, delimiterOf(row));
  return { end: comments.at(-1)?.end ?? window.from, comments: comments.length };
}

interface Line {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/** The marked lines before the first that has as many fields as the row; a mark between spaces is no field. */
function commentsBefore(
  { bytes, to }: RowWindow,
  row: number,
  marked: readonly Line[],
  delimiter: string,
): readonly Line[] {
  const fieldsAt = (start: number) => countFields(bytes, start, to, { delimiter, quotes: true });
  const fields = fieldsAt(row);
  const first = marked.findIndex(
    ({ text, start }) => fieldsAt(start) === fields && !(delimiter === ' ' && /^[%#]+ /.test(text)),
  );
  return first < 0 ? marked : marked.slice(0, first);
}
